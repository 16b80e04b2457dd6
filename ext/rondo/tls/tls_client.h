/* SPDX-License-Identifier: MIT
 *
 * The transport of outgoing connections with TLS: the other side of tls_context.h, in the same flow
 * and with the same handshake. The peer is verified by a list of authorities and by the name that
 * was asked for. Reads no files. Connections with the same options share one transport.
 */
#ifndef RD_TLS_TLS_CLIENT_H
#define RD_TLS_TLS_CLIENT_H

#include "tls/tls_context.h"

typedef struct rd_tls_client_options {
    bool verifies;
    rd_slice ca; /* PEM: the authorities that may have signed the peer's certificate */
    const char *ca_name;
    const rd_tls_pair *pair; /* what the peer is shown if it asks, or NULL */
    rd_slice protocols;      /* for ALPN, each behind its length; empty: none */
} rd_tls_client_options;

#ifndef RD_WITHOUT_TLS

/* Returns a transport with one owner, for connections of one loop. NULL: it cannot be made, and
 * `error` says why. Takes its time: without a lock. Each connection is an owner, too, from
 * name_peer() until the end of the turn in which it is closed. */
const rd_transport *rd_tls_client_new(const rd_tls_client_options *options,
                                      char error[RD_TLS_ERROR_MAX]);

/* Whether the caller, who is an owner, is the only one. Nobody else makes it more. Any thread. */
bool rd_tls_client_is_unused(const rd_transport *transport);

#else

static inline const rd_transport *rd_tls_client_new(const rd_tls_client_options *options,
                                                    char error[RD_TLS_ERROR_MAX]) {
    (void)options;
    snprintf(error, RD_TLS_ERROR_MAX, "this build has no TLS");
    return NULL;
}

static inline bool rd_tls_client_is_unused(const rd_transport *transport) {
    (void)transport;
    return true;
}

#endif

#endif
