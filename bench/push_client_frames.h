/* SPDX-License-Identifier: MIT
 *
 * WebSocket frames as a client sees them: reads those of a server from bytes that come in any
 * pieces, writes masked ones. Does no input or output itself. Belongs to push_client.c. */
#ifndef BENCH_PUSH_CLIENT_FRAMES_H
#define BENCH_PUSH_CLIENT_FRAMES_H

#include <stddef.h>
#include <stdint.h>

enum { RD_FRAME_TEXT = 1, RD_FRAME_BINARY = 2, RD_FRAME_CLOSE = 8, RD_FRAME_PING = 9 };
enum { RD_FRAME_PONG = 10, RD_FRAME_KEPT = 125, RD_FRAME_MOST_HEAD = 14 };

/* A frame's beginning while it is not whole; all zero between two frames. */
typedef struct rd_frame_reader {
    unsigned char head[10], head_len;
    unsigned char kept[RD_FRAME_KEPT], kept_len; /* control frames whole, others their beginning */
    uint64_t len, left;
} rd_frame_reader;

typedef struct rd_frame {
    unsigned opcode;
    const unsigned char *payload; /* the first `kept` bytes of it */
    size_t kept;
    uint64_t len;
} rd_frame;

typedef enum rd_frame_progress { RD_FRAME_MORE, RD_FRAME_WHOLE, RD_FRAME_BAD } rd_frame_progress;

/* Takes bytes up to the end of one frame at most; *used is their number. *frame is valid until the
 * next call. Masked, fragmented or extended frames are bad, because no client here asked for them.
 */
rd_frame_progress rd_frame_take(rd_frame_reader *reader, const unsigned char *at, size_t len,
                                size_t *used, rd_frame *frame);

/* Writes a whole masked frame; there must be room for len + RD_FRAME_MOST_HEAD. Returns its bytes.
 */
size_t rd_frame_write(unsigned char *to, unsigned opcode, const void *payload, size_t len);

#endif
