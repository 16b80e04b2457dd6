/* SPDX-License-Identifier: MIT
 *
 * Published messages as frames; see websocket_encoding.h.
 */
#include "endpoint/websocket_encoding.h"

#include "base/utf8.h"
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
