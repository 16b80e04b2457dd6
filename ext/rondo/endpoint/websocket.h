/* SPDX-License-Identifier: MIT
 *
 * WebSocket (RFC 6455) on a connection that began as HTTP/1.1, as its server or as its client: then
 * the server is the peer, and "client" in the names here is the server. Under the loop lock.
 *
 *   OPEN ──close()──▶ CLOSING ──────client's Close, or the deadline──────▶ OVER
 *     └──client's Close, or a broken rule──▶ ENDING ──messages handled, Close sent──┘
 */
#ifndef RD_ENDPOINT_WEBSOCKET_H
#define RD_ENDPOINT_WEBSOCKET_H

#include "endpoint/endpoint.h"
#include "request/request.h"
#include "endpoint/websocket_call.h"
#include "endpoint/websocket_message.h"
#include "transport/protocol.h"

typedef enum rd_websocket_phase {
    RD_WEBSOCKET_OPEN,
    RD_WEBSOCKET_ENDING,  /* nothing more is read; messages that came before are still answered */
    RD_WEBSOCKET_CLOSING, /* the server's Close is queued, the client's is expected */
    RD_WEBSOCKET_OVER,    /* both were sent, or the connection has ended */
} rd_websocket_phase;

typedef struct rd_websocket {
    rd_endpoint endpoint;
    uint8_t window_bits; /* of deflated output; 0: permessage-deflate was not negotiated */
    uint8_t phase;       /* rd_websocket_phase */
    bool pinged;         /* and nothing was received since */
    bool is_client;      /* this process has asked for it: what it sends is masked */
    uint8_t pongs_behind;
    uint8_t subprotocol;       /* of a client: rd_ws_answer.subprotocol */
    uint64_t message_since_ms; /* when the message being received began; 0: none */
    size_t counted;            /* memory of messages that the ledger counts */
} rd_websocket;

/* The state of the connection. It takes the place of the state that HTTP/1.1 had. */
typedef struct rd_websocket_input {
    rd_endpoint *endpoint;
    rd_ws_reader reader;
} rd_websocket_input;

extern const rd_protocol rd_protocol_websocket;

/* The endpoint of a request that is upgraded. `window_bits`: 0, or of permessage-deflate. */
rd_endpoint *rd_websocket_new(rd_conn *conn, unsigned window_bits);

/* For a connection that is still to be made. Returns the protocol's reference. */
rd_endpoint *rd_websocket_dialing(struct rd_http_shared *shared);

/* The handshake of that connection is over; what was read behind it is in conn->input. */
void rd_websocket_connected(rd_endpoint *endpoint, rd_conn *conn, const rd_ws_answer *answer);

/* Of such a connection: the place of the sub-protocol that the server has chosen among those that
 * were offered, from 1 on; 0: none. */
unsigned rd_websocket_subprotocol(rd_endpoint *endpoint);

/* Whether the request asks for a WebSocket, judged by its fields only, RFC 6455 section 4.2.1. */
bool rd_websocket_is_asked(const rd_request *request);

/* See rd_ws_handshake_choose(). */
size_t rd_websocket_choose(const rd_request *request, rd_field *fields, size_t count);

/* Answers the request with 101 and `fields` (except those that the handshake sets itself), and
 * makes its connection a WebSocket. Returns a reference for the caller, or NULL when the client has
 * gone or its key is invalid. */
rd_endpoint *rd_websocket_upgrade(rd_request *request, const rd_field *fields, size_t count);

#endif
