/* SPDX-License-Identifier: MIT
 *
 * WebSocket frames (RFC 6455, section 5): the header that the peer sends, with every rule that a
 * single header can break; the mask; the header that this side sends. websocket_message.h handles
 * the relations between frames. One owner, no lock.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_FRAME_H
#define RD_ENDPOINT_WEBSOCKET_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum {
    RD_WS_CONTINUATION = 0x0,
    RD_WS_TEXT = 0x1,
    RD_WS_BINARY = 0x2,
    RD_WS_CLOSE = 0x8,
    RD_WS_PING = 0x9,
    RD_WS_PONG = 0xa
};

enum {
    RD_WS_CONTROL_MAX = 125,                  /* payload of a control frame */
    RD_WS_REASON_MAX = RD_WS_CONTROL_MAX - 2, /* reason of a close */
    RD_WS_HEADER_MAX = 10,                    /* header that a server sends */
    RD_WS_CLOSE_MAX = 2 + RD_WS_CONTROL_MAX,  /* Close frame that a server sends */
    RD_WS_MASK_LEN = 4
};

/* Zeroed, it is ready for a header. All members but `at` are filled as the bytes come. */
typedef struct rd_ws_frame {
    uint64_t length; /* bytes of payload */
    uint8_t mask[4];
    uint8_t at; /* bytes of the header so far */
    uint8_t opcode;
    uint8_t extended; /* bytes of the header that the length takes beyond the second */
    bool fin : 1;
    bool rsv1 : 1;
    bool is_bare : 1; /* set before the first byte: a server sends it, without a mask */
} rd_ws_frame;

/*
 * Takes the next bytes of a header and stops behind its last one. `deflate`: RSV1 is allowed on the
 * first frame of a message (RFC 7692, section 6). Returns 1 when the header is complete, 0 when
 * more is needed, or an error at the first wrong byte. `used` is how many bytes it took. Zero the
 * frame before the next header.
 */
int rd_ws_frame_read(rd_ws_frame *frame, bool deflate, const char *bytes, size_t len, size_t *used);

static inline bool rd_ws_is_control(unsigned opcode) {
    return (opcode & 0x8) != 0;
}

/* Removes the mask from bytes that begin at `offset` of the payload, or applies it. */
void rd_ws_mask(char *bytes, size_t len, const uint8_t mask[4], uint64_t offset);

/*
 * Writes the header of an unfragmented frame of a server, without a mask and as short as possible.
 * Returns its length.
 */
size_t rd_ws_header_write(char header[RD_WS_HEADER_MAX], unsigned opcode, bool rsv1,
                          uint64_t length);

/* Adds a whole frame of a client to `out`: its header, the mask, and the payload with it. */
void rd_ws_masked_write(rd_buffer *out, unsigned opcode, bool rsv1, const uint8_t mask[4],
                        rd_slice payload);

/*
 * Writes a whole Close frame of a server. Returns its length. A reason that is too long is cut
 * between two characters. Code 0: neither code nor reason.
 */
size_t rd_ws_close_write(char frame[RD_WS_CLOSE_MAX], unsigned code, rd_slice reason);

#endif
