/* SPDX-License-Identifier: MIT
 *
 * What a client offers in Sec-WebSocket-Extensions (RFC 6455, section 9.1), and what the server
 * makes of it: permessage-deflate (RFC 7692, section 7.1) or nothing. Reads every byte once. Any
 * thread.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_EXTENSION_H
#define RD_ENDPOINT_WEBSOCKET_EXTENSION_H

#include "http/head.h"

/* Bits of the window in which a message may refer back to itself. */
enum { RD_WS_WINDOW_MIN = 8, RD_WS_WINDOW_MAX = 15 };

enum { RD_WS_EXTENSION_MAX = 112 };

typedef struct rd_ws_extension {
    uint8_t window_bits; /* of what the server sends; 0: no extension */
    bool window_asked;   /* the client wants to read of it in the answer */
} rd_ws_extension;

/*
 * The first offer that can be kept to, whatever else is offered before or behind it. An offer with
 * a parameter that is unknown, malformed, there twice or not to be kept to is passed over, as other
 * extensions are: nothing here fails.
 */
rd_ws_extension rd_ws_extension_choose(const rd_head *head, const char *buf);

/* The value of Sec-WebSocket-Extensions in the answer; returns its length, 0: there is none. */
size_t rd_ws_extension_write(const rd_ws_extension *extension, char text[RD_WS_EXTENSION_MAX]);

#endif
