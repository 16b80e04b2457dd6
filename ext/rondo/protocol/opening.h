/* SPDX-License-Identifier: MIT
 *
 * What comes before the protocol of a connection, in this order and each only where its listener
 * has it: the PROXY header of a trusted load balancer; the handshake of the transport; what that
 * agreed upon. Then the connection switches to its protocol.
 *
 *   PROXY ──▶ HANDSHAKE ──▶ the protocol, with what has come of it
 *     └───────────────────────▲
 *
 * All of it together has head_timeout_ms, and so has the beginning of the first request. A listener
 * with none of it begins with the first protocol at once. Under the loop lock.
 */
#ifndef RD_PROTOCOL_OPENING_H
#define RD_PROTOCOL_OPENING_H

#include "transport/conn.h"

/* Whether a connection that nobody has read from needs one. */
bool rd_opening_is_needed(const rd_conn_set *set, const rd_transport *transport,
                          const rd_address *peer);

extern const rd_protocol rd_protocol_opening;

#endif
