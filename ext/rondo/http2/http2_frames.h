/* SPDX-License-Identifier: MIT
 *
 * Looks at the headers of a client's frames before the library does. The library does not tell of
 * frames that it ignores: those that carry nothing cost points of the account, and those on streams
 * that are over or never were end the connection (RFC 9113, section 5.1). It forgets a stream as
 * soon as both sides have ended it, so the last streams are remembered here. Knows neither library
 * nor connection.
 */
#ifndef RD_HTTP2_HTTP2_FRAMES_H
#define RD_HTTP2_HTTP2_FRAMES_H

#include <stddef.h>

#include "http2/http2_account.h"

#define RD_HTTP2_HEADER_LEN 9   /* of a frame: RFC 9113, section 4.1 */
#define RD_HTTP2_REMEMBERED 128 /* streams, more than a connection has at the same time */

/* Why a frame ends its connection. */
typedef enum rd_http2_fault {
    RD_HTTP2_FINE,
    RD_HTTP2_FLOOD,     /* the points did not suffice */
    RD_HTTP2_MISPLACED, /* PROTOCOL_ERROR */
    RD_HTTP2_CLOSED,    /* STREAM_CLOSED */
} rd_http2_fault;

typedef struct rd_http2_frames {
    uint32_t skip; /* bytes until the next header of a frame */
    uint8_t header[RD_HTTP2_HEADER_LEN];
    uint8_t header_len; /* bytes of it that have come */
    bool in_block;      /* a head goes on: the library accepts nothing else */
    bool opens_none;    /* the client was told that no more streams are served */
    uint32_t last;      /* the highest stream that the client has opened */
    uint8_t opened[RD_HTTP2_REMEMBERED / 8], ended[RD_HTTP2_REMEMBERED / 8]; /* by the client */
} rd_http2_frames;

void rd_http2_frames_init(rd_http2_frames *frames);

/* Bytes of heads or of small frames, each of which may stand for kilobytes. */
#define RD_HTTP2_PIECE 256

/* Returns how many of the bytes make a piece that takes the library little time: RD_HTTP2_PIECE, or
 * any number of bytes of bodies. */
size_t rd_http2_frames_piece(const rd_http2_frames *frames, const char *bytes, size_t len);

/* Returns how many of the bytes the library may have: all of them, or those before the rest of a
 * header whose frame has a fault. */
size_t rd_http2_frames_read(rd_http2_frames *frames, rd_http2_account *account, uint64_t now_ms,
                            const char *bytes, size_t len, rd_http2_fault *fault);

#endif
