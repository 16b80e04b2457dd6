/* SPDX-License-Identifier: MIT
 *
 * Messages deflated and inflated one by one (RFC 7692), without a window that outlives a message:
 * so zlib's states are the server's, not the connections', and a deflated message is the same for
 * everybody. Knows no frames. Under the loop lock.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_DEFLATE_H
#define RD_ENDPOINT_WEBSOCKET_DEFLATE_H

#include "base/error.h"
#include "base/slice.h"
#include "endpoint/websocket_extension.h"

#define RD_WS_INFLATER_BYTES 40960 /* about: zlib's window and state */

/* What all connections of a server share. */
typedef struct rd_ws_deflate rd_ws_deflate;

/* A message being inflated: between two reads it belongs to its connection. */
typedef struct rd_ws_inflater rd_ws_inflater;

/* Messages shorter than `threshold` are not deflated. */
rd_ws_deflate *rd_ws_deflate_new(size_t threshold);

/* All inflaters must have been given back. */
void rd_ws_deflate_free(rd_ws_deflate *shared);

/*
 * The payload deflated for a window of so many bits, without the 00 00 ff ff at its end; valid
 * until the next call. NULL when that is not worth it: too short, too long for the loop to wait
 * for, or for its window where zlib makes no such one (8 bits), or not made shorter.
 */
rd_slice rd_ws_deflate_pack(rd_ws_deflate *shared, unsigned window_bits, rd_slice payload);

/* At the beginning of a message. */
rd_ws_inflater *rd_ws_inflater_take(rd_ws_deflate *shared);

/* NULL is fine. */
void rd_ws_inflater_give(rd_ws_inflater *inflater);

/*
 * Inflates the next bytes of the message, a step at a time: takes them off `in` and leaves what
 * came out of them, at most `limit` bytes, in `out` until the next call. Returns 1 when there may
 * be more, 0 when all of `in` is used and came out, RD_ERR_WS_DEFLATE when it is nothing that
 * deflate makes.
 */
int rd_ws_inflate(rd_ws_inflater *inflater, rd_slice *in, size_t limit, rd_slice *out);

/* Compressed bytes of the message so far. */
uint32_t rd_ws_inflater_taken(const rd_ws_inflater *inflater);

/* The message may end here: no block has begun that is not complete. */
bool rd_ws_inflater_is_complete(const rd_ws_inflater *inflater);

/* What the sender has taken off the end (RFC 7692, section 7.2.2), to be inflated when the message
 * is not complete without it. */
extern const rd_slice rd_ws_inflate_tail;

#endif
