/* SPDX-License-Identifier: MIT
 *
 * The transport of a listener for TLS, out of what lib/rondo/config/tls.rb has read.
 */
#ifndef RD_RUBY_RB_TLS_H
#define RD_RUBY_RB_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include <ruby.h>

typedef struct rd_transport rd_transport;
typedef struct rd_tls_named rd_tls_named;
typedef struct rd_server rd_server;

/* The transports of a server's listeners for TLS, or of its outgoing connections. Those with the
 * same words share one, so the memory in which it works is there once. Zeroed: there are none. The
 * rows are owners: of listeners there are as many as the configuration has different words. */
typedef struct rd_tls_transports {
    rd_tls_named *rows;
    size_t count;
} rd_tls_transports;

void rd_tls_transports_clear(rd_tls_transports *transports);

/* `tls`: a Hash with name (of its words), address (for messages), certificates (an Array of Hashes:
 * certificate, key, certificate_name, key_name, password), ca, ca_name, verify_mode,
 * verification_flags, ciphers, ciphersuites. If there is a transport of that name, it shows these
 * certificates from now on. The rows keep it. `tickets`: a Rondo::TLS::Tickets, or nil: each
 * transport has its own. Takes the loop lock. Raises Rondo::AddressError. */
const rd_transport *rd_tls_from(rd_server *server, rd_tls_transports *transports, VALUE tickets,
                                VALUE tls);

/* The same for a transport that is there. Returns false if none has the name. */
bool rd_tls_reload(rd_server *server, const rd_tls_transports *transports, VALUE tls);

/* The transport of outgoing connections with these options: a Hash with name (equal for equal
 * options), address (for messages), verifies, ca, ca_name, pair (a Hash as in `certificates`
 * above), protocols (names behind their lengths). The caller becomes an owner. The rows keep it
 * while connections have it, and those that were used last beyond that; 64 may be in use. Raises
 * Rondo::AddressError. */
const rd_transport *rd_tls_client_from(rd_tls_transports *transports, VALUE tls);

/* Defines Rondo::TLS.seal, Rondo::TLS.library, Rondo::TLS.check and Rondo::TLS::Tickets. */
void rd_init_tls(VALUE rondo);

#endif
