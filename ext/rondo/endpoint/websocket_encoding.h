/* SPDX-License-Identifier: MIT
 *
 * A published message as a WebSocket frame, made once for all clients that get it in that form:
 * text or binary, deflated or not. Under the loop lock.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_ENCODING_H
#define RD_ENDPOINT_WEBSOCKET_ENCODING_H

#include "endpoint/websocket_deflate.h"
#include "pubsub/channel.h"

/*
 * Never returns NULL. Binary if text was requested but the message is not UTF-8. Not deflated if
 * the client does not accept that (`window_bits` 0), its window may be too small, or it is not
 * worth it.
 */
rd_encoding *rd_ws_encoding(rd_message *message, rd_receive_as as, rd_ws_deflate *deflate,
                            unsigned window_bits);

#endif
