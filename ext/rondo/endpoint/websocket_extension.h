/* SPDX-License-Identifier: MIT
 *
 * What a client offers in Sec-WebSocket-Extensions (RFC 6455, section 9.1), and what the server
 * accepts: permessage-deflate (RFC 7692, section 7.1) or nothing. Reads every byte once. Any
 * thread.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_EXTENSION_H
#define RD_ENDPOINT_WEBSOCKET_EXTENSION_H

#include "http/head.h"

/* Bits of the window within which a message may refer back to itself. */
enum { RD_WS_WINDOW_MIN = 8, RD_WS_WINDOW_MAX = 15 };

enum { RD_WS_EXTENSION_MAX = 112 };

typedef struct rd_ws_extension {
    uint8_t window_bits; /* of what the server sends; 0: no extension */
    bool window_asked;   /* the client wants to see it in the answer */
} rd_ws_extension;

/*
 * Chooses the first offer that the server can keep to, whatever else is offered before or after it.
 * An offer is skipped if a parameter is unknown, malformed, repeated, or cannot be kept to. Other
 * extensions are skipped, too: nothing here fails.
 */
rd_ws_extension rd_ws_extension_choose(const rd_head *head, const char *buf);

/* Writes the value of Sec-WebSocket-Extensions for the answer. Returns its length, 0 for none. */
size_t rd_ws_extension_write(const rd_ws_extension *extension, char text[RD_WS_EXTENSION_MAX]);

/* What this side offers as a client: no window outlives a message. */
#define RD_WS_EXTENSION_OFFER                                                                      \
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

/* Whether an answer agrees to that offer: permessage-deflate alone, with a server that keeps no
 * window between messages (RFC 7692, sections 7.1.1.1 and 7.1.2.1). */
bool rd_ws_extension_is_agreed(rd_slice answer);

#endif
