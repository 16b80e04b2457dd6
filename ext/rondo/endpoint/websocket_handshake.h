/* SPDX-License-Identifier: MIT
 *
 * Whether a request opens a WebSocket (RFC 6455, section 4.2), judged by the head alone. Other code
 * decides whether the application wants it, and checks the origin and extensions. Also writes the
 * answer: the reply to the key, and which of the application's subprotocols it names. Any thread.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_HANDSHAKE_H
#define RD_ENDPOINT_WEBSOCKET_HANDSHAKE_H

#include "base/error.h"
#include "http/head.h"
#include "request/responder.h"

enum { RD_WS_ACCEPT_LEN = 28 };

/* The only version; the value of Sec-WebSocket-Version in an answer of 426. */
#define RD_WS_VERSION "13"

/*
 * Returns 1 when the request may be upgraded; `key` is then the value of Sec-WebSocket-Key, a piece
 * of `buf`. Returns 0 when it does not ask for a WebSocket, or asks in a way in which Upgrade must
 * be ignored (HTTP/1.0, not named by Connection, a method other than GET): it is an ordinary
 * request. Returns an error when it asks, but not as the RFC requires: RD_ERR_WS_VERSION (426, the
 * answer must have Sec-WebSocket-Version), RD_ERR_WS_KEY and RD_ERR_WS_BODY (400).
 */
int rd_ws_handshake_check(const rd_head *head, const char *buf, rd_slice *key);

/* The value of Sec-WebSocket-Accept that answers a key (section 4.2.2, 5.4). */
void rd_ws_handshake_accept(rd_slice key, char accept[RD_WS_ACCEPT_LEN]);

/*
 * Keeps only the first Sec-WebSocket-Protocol of the application's fields that has a name offered
 * by the client, and of its names the first such one: a client ends a connection that answers with
 * any other (section 4.1). Returns how many fields are left.
 */
size_t rd_ws_handshake_choose(const rd_head *head, const char *buf, rd_field *fields, size_t count);

#endif
