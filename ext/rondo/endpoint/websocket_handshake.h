/* SPDX-License-Identifier: MIT
 *
 * Does a request open a WebSocket (RFC 6455, section 4.2)? Judged by the head alone; whether
 * anybody wants it, the origin and extensions are for others to decide. And the answer: to the key,
 * and which of the application's subprotocols may be in it. Any thread.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_HANDSHAKE_H
#define RD_ENDPOINT_WEBSOCKET_HANDSHAKE_H

#include "base/error.h"
#include "http/head.h"
#include "http/responder.h"

enum { RD_WS_ACCEPT_LEN = 28 };

/* The only version there is; what Sec-WebSocket-Version says in an answer of 426. */
#define RD_WS_VERSION "13"

/*
 * Returns 1 when the request may be upgraded and leaves the value of Sec-WebSocket-Key in `key`, a
 * piece of `buf`; 0 when it asks for no WebSocket, or in a way in which Upgrade has to be ignored
 * (HTTP/1.0, not named by Connection, a method other than GET): it is a request like any other.
 * RD_ERR_WS_VERSION (426, Sec-WebSocket-Version has to be in the answer), RD_ERR_WS_KEY and
 * RD_ERR_WS_BODY (400) when it does ask, but not as the RFC wants it.
 */
int rd_ws_handshake_check(const rd_head *head, const char *buf, rd_slice *key);

/* The value of Sec-WebSocket-Accept that answers a key (section 4.2.2, 5.4). */
void rd_ws_handshake_accept(rd_slice key, char accept[RD_WS_ACCEPT_LEN]);

/*
 * Of the application's fields only the first Sec-WebSocket-Protocol stays that names one the client
 * has offered, and of its names the first such one: a client ends a connection that has got any
 * other (section 4.1). Returns how many fields are left.
 */
size_t rd_ws_handshake_choose(const rd_head *head, const char *buf, rd_field *fields, size_t count);

#endif
