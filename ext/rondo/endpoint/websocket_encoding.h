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

/* The same as a client sends it, with a mask of its own, so nobody else gets these bytes. They are
 * those of a message that was made for them: the caller owns the only reference to it. */
rd_encoding *rd_ws_masked_encoding(const rd_message *message, rd_receive_as as,
                                   rd_ws_deflate *deflate, unsigned window_bits);

/* Adds a whole frame of a client. Nobody can foresee its mask (RFC 6455, section 10.3). */
void rd_ws_write_masked(rd_buffer *out, unsigned opcode, bool deflated, rd_slice payload);

#endif
