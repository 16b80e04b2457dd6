/* SPDX-License-Identifier: MIT
 *
 * Published messages as frames; see websocket_encoding.h.
 */
#include "endpoint/websocket_encoding.h"

#include "base/apart.h"
#include "base/utf8.h"
#include "system/random.h"
#include "endpoint/websocket_frame.h"

static int write_frame(rd_buffer *out, unsigned opcode, bool deflated, rd_slice payload) {
    char header[RD_WS_HEADER_MAX];
    rd_buffer_append(out, header, rd_ws_header_write(header, opcode, deflated, payload.len));
    rd_buffer_append(out, payload.ptr, payload.len);
    return 0;
}

static int write_deflated(const rd_message *message, rd_ws_deflate *deflate, unsigned opcode,
                          rd_buffer *out) {
    const rd_slice payload = rd_message_payload(message);
    const rd_slice packed = rd_ws_deflate_pack(deflate, RD_WS_WINDOW_MAX, payload);
    return packed.ptr != NULL ? write_frame(out, opcode, true, packed) : -1;
}

/* For subscribers that want text however it was published. */
static bool is_text_possible(const rd_message *message) {
    rd_utf8 utf8 = {0};
    const rd_slice payload = rd_message_payload(message);
    if (message->is_text) return true;
    return rd_utf8_feed(&utf8, payload.ptr, payload.len) == payload.len &&
           rd_utf8_is_boundary(&utf8);
}

static int encode_text(const rd_message *message, void *with, rd_buffer *out) {
    (void)with;
    if (!is_text_possible(message)) return -1;
    return write_frame(out, RD_WS_TEXT, false, rd_message_payload(message));
}

static int encode_binary(const rd_message *message, void *with, rd_buffer *out) {
    (void)with;
    return write_frame(out, RD_WS_BINARY, false, rd_message_payload(message));
}

static int encode_text_deflated(const rd_message *message, void *with, rd_buffer *out) {
    return is_text_possible(message) ? write_deflated(message, with, RD_WS_TEXT, out) : -1;
}

static int encode_binary_deflated(const rd_message *message, void *with, rd_buffer *out) {
    return write_deflated(message, with, RD_WS_BINARY, out);
}

/* Whether a client with this window can read the message. It was deflated for the largest window,
 * but no message refers back further than to its own beginning. */
static bool reads_deflated(const rd_message *message, unsigned window_bits) {
    return window_bits > 0 &&
           (window_bits == RD_WS_WINDOW_MAX || message->payload_len <= (size_t)1 << window_bits);
}

rd_encoding *rd_ws_encoding(rd_message *message, rd_receive_as as, rd_ws_deflate *deflate,
                            unsigned window_bits) {
    const bool is_text = as == RD_AS_SENT ? message->is_text : as == RD_AS_TEXT;
    const bool deflated = reads_deflated(message, window_bits);
    rd_encoding *encoding = NULL;
    if (is_text && deflated) {
        encoding = rd_message_encoding(message, RD_ENCODING_WS_TEXT_DEFLATED, encode_text_deflated,
                                       deflate);
    }
    if (is_text && encoding == NULL) {
        encoding = rd_message_encoding(message, RD_ENCODING_WS_TEXT, encode_text, NULL);
    }
    if (encoding == NULL && deflated) {
        encoding = rd_message_encoding(message, RD_ENCODING_WS_BINARY_DEFLATED,
                                       encode_binary_deflated, deflate);
    }
    if (encoding == NULL) {
        encoding = rd_message_encoding(message, RD_ENCODING_WS_BINARY, encode_binary, NULL);
    }
    return encoding;
}

/* ---- of a client ---- */

RD_APART void rd_ws_write_masked(rd_buffer *out, unsigned opcode, bool deflated, rd_slice payload) {
    uint8_t mask[RD_WS_MASK_LEN];
    rd_random(mask, sizeof(mask));
    rd_ws_masked_write(out, opcode, deflated, mask, payload);
}

typedef struct rd_ws_masking {
    const rd_message *message;
    rd_ws_deflate *deflate;
    unsigned opcode, window_bits;
} rd_ws_masking;

static int encode_masked(const rd_message *holder, void *with, rd_buffer *out) {
    const rd_ws_masking *masking = with;
    const rd_slice payload = rd_message_payload(masking->message);
    rd_slice packed = {NULL, 0};
    (void)holder;
    if (masking->window_bits > 0)
        packed = rd_ws_deflate_pack(masking->deflate, masking->window_bits, payload);
    rd_ws_write_masked(out, masking->opcode, packed.ptr != NULL,
                       packed.ptr != NULL ? packed : payload);
    return 0;
}

RD_APART rd_encoding *rd_ws_masked_encoding(const rd_message *message, rd_receive_as as,
                                            rd_ws_deflate *deflate, unsigned window_bits) {
    const bool wants_text = as == RD_AS_SENT ? message->is_text : as == RD_AS_TEXT;
    const bool is_text = wants_text && is_text_possible(message);
    rd_ws_masking masking = {message, deflate, is_text ? RD_WS_TEXT : RD_WS_BINARY, window_bits};
    rd_message *holder = rd_message_new(RD_SLICE(""), RD_SLICE(""), is_text, 0);
    return rd_message_encoding(holder, RD_ENCODING_WS_BINARY, encode_masked, &masking);
}
