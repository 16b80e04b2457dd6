/* SPDX-License-Identifier: MIT
 *
 * WebSocket (RFC 6455) on a connection that came as HTTP/1.1. Under the loop lock.
 *
 *   OPEN ──close()──▶ CLOSING ──────────peer's Close, or the deadline──────────▶ OVER
 *     └──peer's Close, or a broken rule──▶ ENDING ──messages told, our Close sent──┘
 */
#ifndef RD_ENDPOINT_WEBSOCKET_H
#define RD_ENDPOINT_WEBSOCKET_H

#include "http/push.h"
#include "http/request.h"
#include "endpoint/websocket_message.h"
#include "transport/protocol.h"

typedef enum rd_websocket_phase {
    RD_WEBSOCKET_OPEN,
    RD_WEBSOCKET_ENDING,  /* nothing more is read; messages that came before are still answered */
    RD_WEBSOCKET_CLOSING, /* our Close is queued, theirs is to come */
    RD_WEBSOCKET_OVER,    /* both are, or the connection is */
} rd_websocket_phase;

typedef struct rd_websocket {
    rd_push push;
    uint8_t window_bits; /* of what is sent deflated; 0: permessage-deflate was not negotiated */
    uint8_t phase;       /* rd_websocket_phase */
    bool pinged;         /* and has said nothing since */
    uint8_t pongs_behind;
    uint64_t message_since_ms; /* when the message that is being received began; 0: none is */
    size_t counted;            /* memory of messages, in the ledger */
} rd_websocket;

/* The state of the connection, in the place of what the protocol of the request knew of it. */
typedef struct rd_websocket_input {
    rd_push *push;
    rd_ws_reader reader;
} rd_websocket_input;

extern const rd_protocol rd_protocol_websocket;

/* Whether the request asks for a WebSocket: its fields alone, RFC 6455 section 4.2.1. */
bool rd_websocket_is_asked(const rd_request *request);

/* See rd_ws_handshake_choose(). */
size_t rd_websocket_choose(const rd_request *request, rd_field *fields, size_t count);

/* Answers the request with 101 and `fields` (without those that the handshake sets itself), and
 * makes its connection a WebSocket. A reference for the caller, or NULL when the client has gone
 * or its key is none. */
rd_push *rd_websocket_upgrade(rd_request *request, const rd_field *fields, size_t count);

#endif
