/* SPDX-License-Identifier: MIT
 *
 * WebSocket frames; see websocket_frame.h.
 *
 *      0               1               2 ..            2 + extended ..
 *     +-+-+-+-+-------+-+-------------+---------------+---------------+
 *     |F|R|R|R| opcode|M| length      | 0, 2, 8 bytes | 4 bytes       |
 *     |I|S|S|S|       |A| or 126, 127 | of length     | of mask       |
 *     |N|V|V|V|       |S|             |               |               |
 *     | |1|2|3|       |K|             |               |               |
 *     +-+-+-+-+-------+-+-------------+---------------+---------------+
 */
#include "endpoint/websocket_frame.h"

#include <assert.h>

enum { FIN = 0x80, RSV1 = 0x40, RSV2_OR_3 = 0x30, OPCODE = 0x0f, MASKED = 0x80, LENGTH = 0x7f };

/* Values of the 7-bit length that announce a longer field. */
enum { LENGTH_16 = 126, LENGTH_64 = 127 };

enum { SHORT_HEADER = 2 + RD_WS_MASK_LEN };

static bool is_opcode(unsigned opcode) {
    return opcode <= RD_WS_BINARY || (opcode >= RD_WS_CLOSE && opcode <= RD_WS_PONG);
}

static int read_first(rd_ws_frame *frame, bool deflate, uint8_t byte) {
    frame->fin = (byte & FIN) != 0;
    frame->rsv1 = (byte & RSV1) != 0;
    frame->opcode = byte & OPCODE;
    if (byte & RSV2_OR_3) return RD_ERR_WS_RESERVED_BITS;
    if (!is_opcode(frame->opcode)) return RD_ERR_WS_OPCODE;
    if (frame->rsv1 && !(deflate && (frame->opcode == RD_WS_TEXT || frame->opcode == RD_WS_BINARY)))
        return RD_ERR_WS_RESERVED_BITS;
    return rd_ws_is_control(frame->opcode) && !frame->fin ? RD_ERR_WS_CONTROL_FRAGMENTED : 0;
}

static int read_second(rd_ws_frame *frame, uint8_t byte) {
    const uint8_t length = byte & LENGTH;

    const bool is_masked = (byte & MASKED) != 0;

    if (is_masked == frame->is_bare) return is_masked ? RD_ERR_WS_MASKED : RD_ERR_WS_NOT_MASKED;
    if (length < LENGTH_16) {
        frame->length = length;
        return 0;
    }
    if (rd_ws_is_control(frame->opcode)) return RD_ERR_WS_CONTROL_TOO_LONG;
    frame->extended = length == LENGTH_16 ? 2 : 8;
    return 0;
}

/* Reads a byte of the longer length: most significant byte first. A length that fits a shorter form
 * is an error. */
static int read_length(rd_ws_frame *frame, uint8_t byte) {
    if (frame->at == 2 && frame->extended == 8 && (byte & 0x80)) return RD_ERR_WS_LENGTH_SIGN;
    frame->length = frame->length << 8 | byte;
    if (frame->at + 1 < 2 + frame->extended) return 0;
    if (frame->length < (frame->extended == 2 ? LENGTH_16 : UINT16_MAX + 1))
        return RD_ERR_WS_LENGTH_PADDED;
    return 0;
}

static int read_byte(rd_ws_frame *frame, bool deflate, uint8_t byte) {
    if (frame->at == 0) return read_first(frame, deflate, byte);
    if (frame->at == 1) return read_second(frame, byte);
    if (frame->at < 2 + frame->extended) return read_length(frame, byte);
    frame->mask[frame->at - 2 - frame->extended] = byte;
    return 0;
}

static bool is_complete(const rd_ws_frame *frame) {
    const unsigned mask = frame->is_bare ? 0 : RD_WS_MASK_LEN;

    return frame->at >= 2 && frame->at == 2 + frame->extended + mask;
}

/* Most frames of a client: a short one, whose header is there as a whole. */
static bool is_short(const rd_ws_frame *frame, const char *bytes, size_t len) {
    if (frame->at > 0 || frame->is_bare || len < SHORT_HEADER) return false;
    const uint8_t second = (uint8_t)bytes[1];
    return (second & MASKED) && (second & LENGTH) < LENGTH_16;
}

static int read_short(rd_ws_frame *frame, bool deflate, const char *bytes, size_t *used) {
    const int rc = read_first(frame, deflate, (uint8_t)bytes[0]);
    if (rc < 0) {
        *used = frame->at = 1;
        return rc;
    }
    frame->length = (uint8_t)bytes[1] & LENGTH;
    memcpy(frame->mask, bytes + 2, RD_WS_MASK_LEN);
    *used = frame->at = SHORT_HEADER;
    return 1;
}

int rd_ws_frame_read(rd_ws_frame *frame, bool deflate, const char *bytes, size_t len,
                     size_t *used) {
    int rc = 0;
    size_t at = 0;

    if (is_short(frame, bytes, len)) return read_short(frame, deflate, bytes, used);
    while (rc == 0 && at < len && !is_complete(frame)) {
        rc = read_byte(frame, deflate, (uint8_t)bytes[at++]);
        frame->at++;
    }
    *used = at;
    return rc < 0 ? rc : is_complete(frame);
}

void rd_ws_mask(char *bytes, size_t len, const uint8_t mask[4], uint64_t offset) {
    uint8_t turned[8];
    uint64_t wide, word;
    size_t at = 0;

    for (unsigned i = 0; i < sizeof turned; i++) turned[i] = mask[(offset + i) & 3];
    memcpy(&wide, turned, sizeof wide);
    for (; len - at >= sizeof word; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        word ^= wide;
        memcpy(bytes + at, &word, sizeof word);
    }
    for (unsigned i = 0; at < len; i++, at++) bytes[at] = (char)(bytes[at] ^ turned[i]);
}

size_t rd_ws_header_write(char header[RD_WS_HEADER_MAX], unsigned opcode, bool rsv1,
                          uint64_t length) {
    unsigned extended = 0;
    uint8_t small = LENGTH_64;

    assert(is_opcode(opcode));
    if (length < LENGTH_16) {
        small = (uint8_t)length;
    } else if (length <= UINT16_MAX) {
        small = LENGTH_16;
        extended = 2;
    } else {
        extended = 8;
    }
    header[0] = (char)(FIN | (rsv1 ? RSV1 : 0) | opcode);
    header[1] = (char)small;
    for (unsigned i = 0; i < extended; i++)
        header[2 + i] = (char)(length >> (8 * (extended - 1 - i)));
    return 2 + extended;
}

void rd_ws_masked_write(rd_buffer *out, unsigned opcode, bool rsv1, const uint8_t mask[4],
                        rd_slice payload) {
    char header[RD_WS_HEADER_MAX];
    const size_t len = rd_ws_header_write(header, opcode, rsv1, payload.len);
    const size_t before = rd_buffer_len(out) + len + RD_WS_MASK_LEN;

    header[1] = (char)(header[1] | MASKED);
    rd_buffer_append(out, header, len);
    rd_buffer_append(out, (const char *)mask, RD_WS_MASK_LEN);
    rd_buffer_append(out, payload.ptr, payload.len);
    rd_ws_mask(rd_buffer_ptr(out) + before, payload.len, mask, 0);
}

size_t rd_ws_close_write(char frame[RD_WS_CLOSE_MAX], unsigned code, rd_slice reason) {
    size_t len = code == 0 ? 0 : reason.len, header;

    if (len > RD_WS_REASON_MAX) {
        len = RD_WS_REASON_MAX;
        while (len > 0 && ((uint8_t)reason.ptr[len] & 0xc0) == 0x80) len--;
    }
    header = rd_ws_header_write(frame, RD_WS_CLOSE, false, code == 0 ? 0 : 2 + len);
    if (code == 0) return header;
    frame[header] = (char)(code >> 8);
    frame[header + 1] = (char)code;
    if (len > 0) memcpy(frame + header + 2, reason.ptr, len);
    return header + 2 + len;
}
