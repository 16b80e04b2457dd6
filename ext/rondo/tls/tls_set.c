/* SPDX-License-Identifier: MIT
 *
 * The rules of a set of certificates: versions, ciphers, clients, tickets; see tls_set.h.
 */
#include "tls/tls_set.h"

#include <string.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tls/tls_pair.h"
#include "tls/tls_tickets.h"

#define CIPHERS                                                                                    \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                                   \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                                   \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define CIPHERSUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

static bool complain(char *error, const char *name, const char *reason) {
    snprintf(error, RD_TLS_ERROR_MAX, "%s: %s", name, reason);
    return false;
}

/* ---- ciphers ---- */

/* The server chooses, but a client that puts ChaCha first has no AES in its hardware. */
static bool set_ciphers(const rd_tls_options *options, SSL_CTX *set, char *error) {
    const char *ciphers = options->ciphers == NULL ? CIPHERS : options->ciphers;
    const char *suites = options->ciphersuites == NULL ? CIPHERSUITES : options->ciphersuites;
    SSL_CTX_set_options(set, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    if (SSL_CTX_set_cipher_list(set, ciphers) != 1) {
        return complain(error, "ssl_cipher_filter", rd_tls_reason());
    }
    if (SSL_CTX_set_ciphersuites(set, suites) != 1) {
        return complain(error, "ssl_ciphersuites", rd_tls_reason());
    }
    return true;
}

/* ---- clients ---- */

#define EACH_FLAG(X)                                                                               \
    X(USE_CHECK_TIME)                                                                              \
    X(CRL_CHECK)                                                                                   \
    X(CRL_CHECK_ALL)                                                                               \
    X(IGNORE_CRITICAL)                                                                             \
    X(X509_STRICT)                                                                                 \
    X(ALLOW_PROXY_CERTS)                                                                           \
    X(POLICY_CHECK)                                                                                \
    X(EXPLICIT_POLICY)                                                                             \
    X(INHIBIT_ANY)                                                                                 \
    X(INHIBIT_MAP)                                                                                 \
    X(NOTIFY_POLICY)                                                                               \
    X(EXTENDED_CRL_SUPPORT)                                                                        \
    X(USE_DELTAS)                                                                                  \
    X(CHECK_SS_SIGNATURE)                                                                          \
    X(TRUSTED_FIRST)                                                                               \
    X(SUITEB_128_LOS_ONLY)                                                                         \
    X(SUITEB_192_LOS)                                                                              \
    X(SUITEB_128_LOS)                                                                              \
    X(PARTIAL_CHAIN)                                                                               \
    X(NO_ALT_CHAINS)                                                                               \
    X(NO_CHECK_TIME)

typedef struct rd_tls_flag {
    rd_slice name;
    unsigned long bits;
} rd_tls_flag;

#define ROW(name) {RD_SLICE_INIT(#name), X509_V_FLAG_##name},
static const rd_tls_flag flags[] = {EACH_FLAG(ROW)};
#undef ROW

/* 0: there is none of this name. */
static unsigned long flag_of(rd_slice name) {
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (rd_slice_equal(flags[i].name, name)) return flags[i].bits;
    }
    return 0;
}

static bool set_flags(const rd_tls_options *options, X509_STORE *store, char *error) {
    const char *at = options->verification_flags;
    char reason[64];
    while (at != NULL && *at != '\0') {
        const size_t len = strcspn(at, ",");
        const unsigned long bits = flag_of(rd_slice_of(at, len));
        if (bits == 0) {
            snprintf(reason, sizeof(reason), "unknown flag %.*s", len < 40 ? (int)len : 40, at);
            return complain(error, "verification_flags", reason);
        }
        X509_STORE_set_flags(store, bits);
        at += at[len] == ',' ? len + 1 : len;
    }
    return true;
}

typedef struct rd_tls_authorities {
    int all, trusted; /* certificates in a file, and those of authorities */
} rd_tls_authorities;

/* Certificates, whose subjects clients are told, and lists of revoked ones. */
static rd_tls_authorities add_authorities(SSL_CTX *set, STACK_OF(X509_INFO) * infos) {
    X509_STORE *store = SSL_CTX_get_cert_store(set);
    rd_tls_authorities count = {0};
    for (int i = 0; i < sk_X509_INFO_num(infos); i++) {
        const X509_INFO *info = sk_X509_INFO_value(infos, i);
        if (info->crl != NULL) X509_STORE_add_crl(store, info->crl);
        if (info->x509 == NULL) continue;
        X509_STORE_add_cert(store, info->x509);
        SSL_CTX_add_client_CA(set, info->x509);
        count.all++;
        if (X509_check_ca(info->x509) > 0) count.trusted++;
    }
    return count;
}

/* With PARTIAL_CHAIN the certificate of anybody may be trusted. */
static bool can_verify(rd_tls_authorities count, X509_STORE *store) {
    const unsigned long set = X509_VERIFY_PARAM_get_flags(X509_STORE_get0_param(store));
    return count.trusted > 0 || (set & X509_V_FLAG_PARTIAL_CHAIN) != 0;
}

static bool set_clients(const rd_tls_options *options, SSL_CTX *set, char *error) {
    if (options->verify == RD_TLS_VERIFY_NONE) return true;
    BIO *bio = BIO_new_mem_buf(options->ca.ptr, (int)options->ca.len);
    STACK_OF(X509_INFO) *infos = PEM_X509_INFO_read_bio(bio, NULL, NULL, NULL);
    const rd_tls_authorities count = add_authorities(set, infos);
    X509_STORE *store = SSL_CTX_get_cert_store(set);
    sk_X509_INFO_pop_free(infos, X509_INFO_free);
    BIO_free(bio);
    if (count.all == 0) return complain(error, options->ca_name, "it has no certificate");
    if (!set_flags(options, store, error)) return false;
    if (!can_verify(count, store)) {
        return complain(error, options->ca_name, "no certificate in it is that of an authority");
    }
    const bool is_forced = options->verify == RD_TLS_VERIFY_FORCE;
    SSL_CTX_set_verify(set, SSL_VERIFY_PEER | (is_forced ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       NULL);
    return true;
}

/* ---- a set ---- */

/* Elliptic curves, and what newer versions add against quantum computers. Not the finite fields
 * that OpenSSL offers as well: a client that wants one of 8192 bits costs the server much. */
static void set_groups(SSL_CTX *set) {
    if (SSL_CTX_set1_groups_list(set, "X25519MLKEM768:X25519:P-256:X448:P-384:P-521") == 1) return;
    SSL_CTX_set1_groups_list(set, "X25519:P-256:X448:P-384:P-521");
}

/* No renegotiation. An end without close_notify is an end: the lengths of HTTP decide what is
 * whole. */
SSL_CTX *rd_tls_set_new(const rd_tls_options *options, char error[RD_TLS_ERROR_MAX]) {
    SSL_CTX *set = SSL_CTX_new(TLS_server_method());
    if (set == NULL) {
        complain(error, "OpenSSL", rd_tls_reason());
        return NULL;
    }
    SSL_CTX_set_min_proto_version(set, TLS1_2_VERSION);
    SSL_CTX_set_options(set, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* No partial writes: a client may ask for records of 512 bytes, and a piece is then several. */
    SSL_CTX_set_mode(set, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(set, 0); /* tls_read() needs what OpenSSL keeps to be one record */
    set_groups(set);
    rd_tls_prepare_tickets(set);
    if (set_ciphers(options, set, error) && set_clients(options, set, error)) return set;
    SSL_CTX_free(set);
    return NULL;
}
