/* SPDX-License-Identifier: MIT
 *
 * The handshake of TLS, and what OpenSSL asks meanwhile: which certificates it shows, which
 * protocol follows. It also counts the messages behind the handshake. Under the loop lock.
 */
#ifndef RD_TLS_TLS_HANDSHAKE_H
#define RD_TLS_TLS_HANDSHAKE_H

#include "tls/tls_flow.h"

/* These are of the transport; see transport.h. */
void rd_tls_begin(rd_conn *conn, const char *ahead, size_t len);
int rd_tls_handshake(rd_conn *conn);
rd_slice rd_tls_agreed(rd_conn *conn);
const char *rd_tls_failure(rd_conn *conn);

/* The handshake of an outgoing connection, in place of rd_tls_handshake(). */
int rd_tls_call(rd_conn *conn);

/* The end of a connection: frees what belongs to its handshake. */
void rd_tls_end(rd_conn *conn);

/* Sets the callback that limits messages behind the handshake. */
void rd_tls_limit_messages(SSL_CTX *set);

/* Sets the callbacks of a set: that one, the certificates by name, the protocol by ALPN. */
void rd_tls_prepare_set(SSL_CTX *set);

#endif
