/* SPDX-License-Identifier: MIT
 *
 * The reader and writer of frames, see push_client_frames.h. */
#include "push_client_frames.h"

#include <stdbool.h>
#include <string.h>

static const unsigned char MASK[4] = {0x37, 0xfa, 0x21, 0x3d};

/* Bytes of a head that begins like this; 0 if it is invalid. */
static size_t head_bytes(const unsigned char *head) {
    unsigned opcode = head[0] & 15;
    if ((head[0] & 0xf0) != 0x80 || head[1] & 0x80 || opcode == 0) return 0;
    if (opcode >= 8 && head[1] > 125) return 0;
    return head[1] < 126 ? 2 : head[1] == 126 ? 4 : 10;
}

static uint64_t head_length(const unsigned char *head, size_t bytes) {
    uint64_t length = 0;
    if (bytes == 2) return head[1];
    for (size_t i = 2; i < bytes; i++) length = length << 8 | head[i];
    return length;
}

/* Returns whether the head is whole. */
static bool head_take(rd_frame_reader *reader, const unsigned char *at, size_t len, size_t *used,
                      bool *bad) {
    for (;;) {
        size_t bytes = reader->head_len < 2 ? 2 : head_bytes(reader->head);
        *bad = bytes == 0;
        if (*bad) return false;
        if (reader->head_len == bytes) break;
        if (*used == len) return false;
        reader->head[reader->head_len++] = at[(*used)++];
    }
    reader->len = reader->left = head_length(reader->head, reader->head_len);
    return true;
}

static void payload_take(rd_frame_reader *reader, const unsigned char *at, size_t len) {
    size_t room = sizeof reader->kept - reader->kept_len;
    size_t kept = len < room ? len : room;
    memcpy(reader->kept + reader->kept_len, at, kept);
    reader->kept_len = (unsigned char)(reader->kept_len + kept);
    reader->left -= len;
}

/* A frame that is complete, as nearly every one is, needs no copy. */
static bool whole_frame(const unsigned char *at, size_t len, size_t *used, rd_frame *frame) {
    size_t head = len < 2 ? 0 : head_bytes(at);
    if (head == 0 || len < head) return false;
    uint64_t length = head_length(at, head);
    if (len - head < length) return false;
    size_t kept = length < RD_FRAME_KEPT ? (size_t)length : RD_FRAME_KEPT;
    *used = head + (size_t)length;
    *frame = (rd_frame){.opcode = at[0] & 15u, .payload = at + head, .kept = kept, .len = length};
    return true;
}

rd_frame_progress rd_frame_take(rd_frame_reader *reader, const unsigned char *at, size_t len,
                                size_t *used, rd_frame *frame) {
    bool bad, begun = reader->head_len >= 2 && reader->left > 0;
    *used = 0;
    if (reader->head_len == 0 && whole_frame(at, len, used, frame)) return RD_FRAME_WHOLE;
    if (!begun && !head_take(reader, at, len, used, &bad))
        return bad ? RD_FRAME_BAD : RD_FRAME_MORE;
    size_t rest = len - *used;
    size_t taken = reader->left < rest ? (size_t)reader->left : rest;
    payload_take(reader, at + *used, taken);
    *used += taken;
    if (reader->left > 0) return RD_FRAME_MORE;
    *frame = (rd_frame){.opcode = reader->head[0] & 15u,
                        .payload = reader->kept,
                        .kept = reader->kept_len,
                        .len = reader->len};
    reader->head_len = reader->kept_len = 0;
    return RD_FRAME_WHOLE;
}

size_t rd_frame_write(unsigned char *to, unsigned opcode, const void *payload, size_t len) {
    const unsigned char *from = payload;
    size_t head = 2;
    to[0] = (unsigned char)(0x80 | opcode);
    to[1] = (unsigned char)(0x80 | (len < 126 ? len : 126));
    if (len >= 126) {
        to[2] = (unsigned char)(len >> 8);
        to[3] = (unsigned char)len;
        head = 4;
    }
    memcpy(to + head, MASK, sizeof MASK);
    for (size_t i = 0; i < len; i++) to[head + 4 + i] = from[i] ^ MASK[i & 3];
    return head + 4 + len;
}
