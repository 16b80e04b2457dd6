/* SPDX-License-Identifier: MIT
 *
 * What TLS knows of a client, for the application: its certificate, and with the setting tls_env
 * the version, the cipher and the name of the server that it asked for. Under the loop lock.
 */
#ifndef RD_TLS_TLS_IDENTITY_H
#define RD_TLS_TLS_IDENTITY_H

#include "tls/tls_flow.h"

/* When the handshake is over: gives the connection an identity, if it has one to tell. */
void rd_tls_note_identity(rd_conn *conn);

/* Keeps the name of the server from a ClientHello. A name that has other than visible characters is
 * none. */
void rd_tls_note_server_name(rd_conn *conn, rd_slice name);

/* Of the transport; see transport.h. */
void rd_tls_identify(rd_conn *conn, rd_identity *identity);

#endif
