/* SPDX-License-Identifier: MIT
 *
 * A transport with owners, and the certificates that it shows; see tls_context.h.
 */
#include "tls/tls_context.h"

#include <string.h>

#include <openssl/crypto.h>

#include "base/alloc.h"
#include "tls/ticket_keys.h"
#include "tls/tls.h"
#include "tls/tls_flow.h"
#include "tls/tls_handshake.h"
#include "tls/tls_sets.h"

static rd_tls_context *context_of(const rd_transport *transport) {
    return RD_CONTAINER((char *)(uintptr_t)transport, rd_tls_context, transport);
}

/* ---- owners ---- */

static void free_context(rd_tls_context *context) {
    rd_tls_sets_free(context->sets);
    rd_ticket_keys_unref(context->keys);
    rd_tls_flow_clear(context);
    rd_free(context);
}

static void ref(const rd_transport *transport) {
    atomic_fetch_add(&context_of(transport)->refs, 1);
}

static void unref(const rd_transport *transport) {
    rd_tls_context *context = context_of(transport);
    if (atomic_fetch_sub(&context->refs, 1) == 1) free_context(context);
}

static void show(rd_tls_context *context, rd_tls_sets *sets) {
    for (size_t i = 0; i < sets->count; i++) rd_tls_prepare_set(sets->all[i]);
    context->sets = sets;
}

static rd_tls_context *new_context(rd_tls_sets *sets, rd_ticket_keys *keys) {
    rd_tls_context *context = rd_alloc_zero(sizeof(*context));
    context->transport = rd_tls_transport;
    context->transport.ref = ref;
    context->transport.unref = unref;
    atomic_init(&context->refs, 1);
    context->keys = keys;
    show(context, sets);
    rd_tls_flow_init(context);
    return context;
}

static rd_ticket_keys *keys_for(const rd_tls_options *options) {
    return options->keys == NULL ? rd_ticket_keys_new(-1) : rd_ticket_keys_ref(options->keys);
}

const rd_transport *rd_tls_new(const rd_tls_options *options, char error[RD_TLS_ERROR_MAX]) {
    rd_tls_sets *sets = rd_tls_sets_new(options, error);
    if (sets == NULL) return NULL;
    rd_ticket_keys *keys = keys_for(options);
    if (keys != NULL) return &new_context(sets, keys)->transport;
    snprintf(error, RD_TLS_ERROR_MAX, "no memory for the keys of tickets");
    rd_tls_sets_free(sets);
    return NULL;
}

/* ---- a reload ---- */

bool rd_tls_shows(const rd_transport *transport, const rd_tls_options *options) {
    unsigned char digest[RD_TLS_DIGEST_BYTES];
    rd_tls_options_digest(options, digest);
    return memcmp(digest, context_of(transport)->sets->digest, sizeof(digest)) == 0;
}

rd_tls_sets *rd_tls_show(const rd_transport *transport, rd_tls_sets *sets) {
    rd_tls_context *context = context_of(transport);
    rd_tls_sets *before = context->sets;
    show(context, sets);
    return before;
}

const char *rd_tls_library(void) {
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}
