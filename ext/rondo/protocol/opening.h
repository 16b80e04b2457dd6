/* SPDX-License-Identifier: MIT
 *
 * What comes before the protocol of a connection. In this order, each only if the listener has it:
 * the PROXY header of a trusted load balancer; the handshake of the transport; the result of the
 * handshake. Then the connection switches to its protocol.
 *
 *   PROXY ──▶ HANDSHAKE ──▶ the protocol, with the bytes received for it
 *     └───────────────────────▲
 *
 * All of it together, with the beginning of the first request, has head_timeout_ms. A handshake has
 * ten seconds of it. A listener with none of it begins with the first protocol at once. Under the
 * loop lock.
 */
#ifndef RD_PROTOCOL_OPENING_H
#define RD_PROTOCOL_OPENING_H

#include "transport/conn.h"

/* Whether a connection from which nothing was read needs an opening. */
bool rd_opening_is_needed(const rd_conn_set *set, const rd_transport *transport,
                          const rd_address *peer);

extern const rd_protocol rd_protocol_opening;

/* The same before a raw connection (endpoint/raw.h). Its handshake agrees upon no protocol, and who
 * is refused reads no HTTP. */
extern const rd_protocol rd_protocol_raw_opening;

/* The number for rd_raw_set_maker(). Call it when the connection was just opened. */
void rd_opening_set_maker(rd_conn *conn, uint32_t number);

#endif
