/* SPDX-License-Identifier: MIT
 *
 * The part of the table (protocols.h) for protocols that carry requests.
 */
#ifndef RD_PROTOCOL_REQUEST_PROTOCOLS_H
#define RD_PROTOCOL_REQUEST_PROTOCOLS_H

#include "transport/conn.h"

/* A protocol that carries requests, and its name in ALPN (RFC 7301). */
typedef struct rd_protocol_row {
    rd_slice alpn;
    const rd_protocol *protocol;
} rd_protocol_row;

/* In the order in which the server prefers them. */
extern const rd_protocol_row rd_protocols[];
extern const size_t rd_protocol_count;

/* The protocol of a new connection when nothing else is known of it. */
extern const rd_protocol *const rd_protocol_first;

/* The protocol with this ALPN name, or NULL. */
const rd_protocol *rd_protocol_find(rd_slice alpn);

/* The name by which another process finds the protocol of the connection in its table. Empty for
 * the first protocol and the opening before it. */
rd_slice rd_protocol_name_of(const rd_conn *conn);

/* The name of the protocol at this index, for rd_conn_set.offer. Empty: there are no more. */
rd_slice rd_protocol_offer(size_t index);

/* The same with HTTP/2 before the others, for servers whose rd_http_shared has it. */
rd_slice rd_protocol_offer_http2(size_t index);

/* The protocol that a handshake of the connection agreed upon by this name, or NULL. */
const rd_protocol *rd_protocol_agreed(const rd_conn *conn, rd_slice alpn);

#endif
