/* SPDX-License-Identifier: MIT
 *
 * The rules of outgoing connections: versions, authorities, names, a certificate of our own; see
 * tls_client.h.
 */
#include "tls/tls_client.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "tls/tls.h"
#include "tls/tls_flow.h"
#include "tls/tls_handshake.h"
#include "tls/tls_pair.h"

static bool complain(char *error, const char *name, const char *reason) {
    snprintf(error, RD_TLS_ERROR_MAX, "%s: %s", name, reason);
    return false;
}

/* ---- the rules ---- */

/* All of them are in memory: a lookup in a folder would read files in the handshake. OpenSSL looks
 * at lists of revoked certificates only if it is told to. */
static bool set_authorities(const rd_tls_client_options *options, SSL_CTX *rules, char *error) {
    X509_STORE *store = SSL_CTX_get_cert_store(rules);
    int count = 0, lists = 0;
    if (!options->verifies) return true;
    BIO *bio = BIO_new_mem_buf(options->ca.ptr, (int)options->ca.len);
    STACK_OF(X509_INFO) *infos = PEM_X509_INFO_read_bio(bio, NULL, NULL, NULL);
    for (int i = 0; i < sk_X509_INFO_num(infos); i++) {
        const X509_INFO *info = sk_X509_INFO_value(infos, i);
        if (info->crl != NULL) lists += X509_STORE_add_crl(store, info->crl);
        if (info->x509 != NULL) count += X509_STORE_add_cert(store, info->x509);
    }
    sk_X509_INFO_pop_free(infos, X509_INFO_free);
    BIO_free(bio);
    if (count == 0) return complain(error, options->ca_name, "it has no certificate");
    if (lists > 0) X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    SSL_CTX_set_verify(rules, SSL_VERIFY_PEER, NULL);
    return true;
}

static bool set_pair(const rd_tls_client_options *options, SSL_CTX *rules, char *error) {
    rd_tls_loaded loaded = {0};
    if (options->pair == NULL) return true;
    bool is_fine = rd_tls_pair_load(&loaded, options->pair, error);
    if (is_fine &&
        SSL_CTX_use_cert_and_key(rules, loaded.certificate, loaded.key, loaded.chain, 1) != 1) {
        is_fine = complain(error, options->pair->certificates_name, rd_tls_reason());
    }
    rd_tls_pair_clear(&loaded);
    return is_fine;
}

static bool set_protocols(const rd_tls_client_options *options, SSL_CTX *rules, char *error) {
    const rd_slice names = options->protocols;
    if (names.len == 0) return true;
    if (SSL_CTX_set_alpn_protos(rules, (const unsigned char *)names.ptr, (unsigned)names.len) == 0)
        return true;
    return complain(error, "alpn", "a name is not valid");
}

/* No renegotiation, no sessions. An end without close_notify is an end, as on the other side. */
static SSL_CTX *new_rules(const rd_tls_client_options *options, char *error) {
    SSL_CTX *rules = SSL_CTX_new(TLS_client_method());
    if (rules == NULL) {
        complain(error, "OpenSSL", rd_tls_reason());
        return NULL;
    }
    SSL_CTX_set_min_proto_version(rules, TLS1_2_VERSION);
    SSL_CTX_set_options(rules, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(rules, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(rules, 0); /* tls_read() needs what OpenSSL keeps to be one record */
    SSL_CTX_set_session_cache_mode(rules, SSL_SESS_CACHE_OFF);
    rd_tls_limit_messages(rules);
    if (set_authorities(options, rules, error) && set_pair(options, rules, error) &&
        set_protocols(options, rules, error)) {
        return rules;
    }
    SSL_CTX_free(rules);
    return NULL;
}

/* ---- the transport ---- */

static rd_tls_context *context_of(const rd_transport *transport) {
    return RD_CONTAINER((char *)(uintptr_t)transport, rd_tls_context, transport);
}

static void ref(const rd_transport *transport) {
    atomic_fetch_add(&context_of(transport)->refs, 1);
}

static void unref(const rd_transport *transport) {
    rd_tls_context *context = context_of(transport);
    if (atomic_fetch_sub(&context->refs, 1) != 1) return;
    SSL_CTX_free(context->rules);
    rd_tls_flow_clear(context);
    rd_free(context);
}

/* The name is there until the handshake begins. */
static void name_peer(rd_conn *conn, const char *name) {
    const size_t size = strlen(name) + 1;
    rd_tls_of(conn)->server_name = memcpy(rd_alloc(size), name, size);
    ref(conn->transport);
}

/* Whoever closes a connection may be in the middle of a call that works in its transport's room. */
typedef struct rd_tls_parting {
    rd_disposal disposal;
    const rd_transport *transport;
} rd_tls_parting;

static void part(rd_disposal *disposal) {
    rd_tls_parting *parting = RD_CONTAINER(disposal, rd_tls_parting, disposal);
    unref(parting->transport);
    rd_free(parting);
}

static void close_conn(rd_conn *conn) {
    rd_tls_parting *parting = rd_alloc_zero(sizeof(*parting));
    parting->disposal.free = part;
    parting->transport = conn->transport;
    rd_tls_transport.close(conn);
    rd_loop_free_later(conn->set->loop, &parting->disposal);
}

bool rd_tls_client_is_unused(const rd_transport *transport) {
    return atomic_load(&context_of(transport)->refs) == 1;
}

const rd_transport *rd_tls_client_new(const rd_tls_client_options *options,
                                      char error[RD_TLS_ERROR_MAX]) {
    SSL_CTX *rules = new_rules(options, error);
    ERR_clear_error(); /* the application's thread has it, too */
    if (rules == NULL) return NULL;
    rd_tls_context *context = rd_alloc_zero(sizeof(*context));
    context->transport = rd_tls_transport;
    context->transport.ref = ref;
    context->transport.unref = unref;
    context->transport.handshake = rd_tls_call;
    context->transport.name_peer = name_peer;
    context->transport.close = close_conn;
    atomic_init(&context->refs, 1);
    context->rules = rules;
    rd_tls_flow_init(context);
    return &context->transport;
}
