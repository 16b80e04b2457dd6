/* SPDX-License-Identifier: MIT
 *
 * Deflates and inflates single messages (RFC 7692). No window outlives a message, so zlib's states
 * belong to the server, not to connections, and a deflated message is the same for all clients.
 * Knows no frames. Under the loop lock.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_DEFLATE_H
#define RD_ENDPOINT_WEBSOCKET_DEFLATE_H

#include "base/error.h"
#include "base/slice.h"
#include "endpoint/websocket_extension.h"

#define RD_WS_INFLATER_BYTES 40960 /* approximately: zlib's window and state */

/* Shared by all connections of a server. */
typedef struct rd_ws_deflate rd_ws_deflate;

/* A message being inflated. Between two reads its connection owns it. */
typedef struct rd_ws_inflater rd_ws_inflater;

/* Messages shorter than `threshold` are not deflated. */
rd_ws_deflate *rd_ws_deflate_new(size_t threshold);

/* All inflaters must have been returned. */
void rd_ws_deflate_free(rd_ws_deflate *shared);

/*
 * Returns the payload deflated for a window of this many bits, without the 00 00 ff ff at its end,
 * valid until the next call. Returns NULL when it is not worth it: the payload is too short, too
 * long for the loop to wait for, too long for a window of 8 bits (which zlib cannot make), or not
 * made shorter.
 */
rd_slice rd_ws_deflate_pack(rd_ws_deflate *shared, unsigned window_bits, rd_slice payload);

/* An inflater at the beginning of a message. */
rd_ws_inflater *rd_ws_inflater_take(rd_ws_deflate *shared);

/* Accepts NULL. */
void rd_ws_inflater_give(rd_ws_inflater *inflater);

/*
 * Inflates the next bytes of the message, a step at a time. Removes the bytes it used from `in` and
 * sets `out` to their output, at most `limit` bytes, valid until the next call. Returns 1 when
 * there may be more, 0 when all of `in` is used and its output complete, RD_ERR_WS_DEFLATE when the
 * bytes are not valid deflate data.
 */
int rd_ws_inflate(rd_ws_inflater *inflater, rd_slice *in, size_t limit, rd_slice *out);

/* Compressed bytes of the message so far. */
uint32_t rd_ws_inflater_taken(const rd_ws_inflater *inflater);

/* Whether the message may end here: no block is incomplete. */
bool rd_ws_inflater_is_complete(const rd_ws_inflater *inflater);

/* What the sender has removed from the end (RFC 7692, section 7.2.2). Must be inflated if the
 * message is not complete without it. */
extern const rd_slice rd_ws_inflate_tail;

#endif
