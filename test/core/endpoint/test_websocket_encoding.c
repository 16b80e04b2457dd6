/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket_encoding: which frame a client gets of a published message, and that all who
 * get the same one share its bytes.
 */
#include "check.h"
#include "client_frames.h"

#include <zlib.h>

#include "endpoint/websocket_encoding.h"

enum { NONE = 0, PLAIN = 0, DEFLATED = RSV1 };

static rd_ws_deflate *shared;

static rd_message *publish(const char *payload, size_t len, bool is_text) {
    return rd_message_new(RD_SLICE("room"), rd_slice_of(payload, len), is_text, 0);
}

/* What a client with a window of at most this many bits makes of the frame. */
static void check_payload(rd_slice frame, unsigned window_bits, rd_slice expected) {
    static unsigned char out[100000];
    const size_t header = ((uint8_t)frame.ptr[1] == 126) ? 4
                          : (uint8_t)frame.ptr[1] == 127 ? 10
                                                         : 2;
    z_stream stream = {0};

    if (!((uint8_t)frame.ptr[0] & RSV1)) {
        CHECK(rd_slice_equal(rd_slice_of(frame.ptr + header, frame.len - header), expected));
        return;
    }
    CHECK_INT(inflateInit2(&stream, -(int)window_bits), Z_OK);
    stream.next_in = (unsigned char *)(uintptr_t)frame.ptr + header;
    stream.avail_in = (uInt)(frame.len - header);
    stream.next_out = out;
    stream.avail_out = sizeof out;
    CHECK_INT(inflate(&stream, Z_SYNC_FLUSH), Z_OK);
    CHECK(rd_slice_equal(rd_slice_of((char *)out, stream.total_out), expected));
    inflateEnd(&stream);
}

static rd_encoding *check_frame(rd_message *message, rd_receive_as as, unsigned window_bits,
                                unsigned first) {
    rd_encoding *encoding = rd_ws_encoding(message, as, window_bits ? shared : NULL, window_bits);

    if (!CHECK(encoding != NULL)) return NULL;
    CHECK_INT((uint8_t)rd_encoding_bytes(encoding).ptr[0], FIN | first);
    check_payload(rd_encoding_bytes(encoding), window_bits ? window_bits : 15,
                  rd_message_payload(message));
    return encoding;
}

static void test_kinds(void) {
    static char text[3000];
    memset(text, 'a', sizeof text);
    rd_message *sent_text = publish(text, sizeof text, true);
    rd_message *sent_binary = publish(text, sizeof text, false);
    text[2999] = '\xff';
    rd_message *no_text = publish(text, sizeof text, false);

    check_frame(sent_text, RD_AS_SENT, NONE, PLAIN | TEXT);
    check_frame(sent_text, RD_AS_SENT, 15, DEFLATED | TEXT);
    check_frame(sent_text, RD_AS_BINARY, NONE, PLAIN | BINARY);
    check_frame(sent_text, RD_AS_BINARY, 15, DEFLATED | BINARY);
    check_frame(sent_binary, RD_AS_SENT, 15, DEFLATED | BINARY);
    check_frame(sent_binary, RD_AS_TEXT, NONE, PLAIN | TEXT);
    check_frame(sent_binary, RD_AS_TEXT, 15, DEFLATED | TEXT);
    check_frame(no_text, RD_AS_TEXT, NONE, PLAIN | BINARY);
    check_frame(no_text, RD_AS_TEXT, 15, DEFLATED | BINARY);
    CHECK(check_frame(sent_text, RD_AS_SENT, 15, DEFLATED | TEXT) ==
          check_frame(sent_text, RD_AS_TEXT, 12, DEFLATED | TEXT));
    rd_message_unref(sent_text);
    rd_message_unref(sent_binary);
    rd_message_unref(no_text);
}

/* Clients share one deflated frame if their windows have room for the whole message. */
static void test_windows(void) {
    static char text[70000];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * i % 1009 % 23);
    for (unsigned bits = RD_WS_WINDOW_MIN; bits <= RD_WS_WINDOW_MAX; bits++) {
        const size_t window = (size_t)1 << bits;
        rd_message *fits = publish(text, window, true);
        rd_message *over = publish(text, window + 1, true);
        check_frame(fits, RD_AS_SENT, bits, DEFLATED | TEXT);
        check_frame(over, RD_AS_SENT, bits,
                    bits == RD_WS_WINDOW_MAX ? DEFLATED | TEXT : PLAIN | TEXT);
        rd_message_unref(fits);
        rd_message_unref(over);
    }
}

static void test_not_worth_it(void) {
    rd_message *message = publish("short", 5, true), *empty = publish("", 0, true);

    CHECK(check_frame(message, RD_AS_SENT, 15, PLAIN | TEXT) ==
          check_frame(message, RD_AS_SENT, NONE, PLAIN | TEXT));
    check_frame(message, RD_AS_BINARY, 15, PLAIN | BINARY);
    check_frame(empty, RD_AS_SENT, 15, PLAIN | TEXT);
    rd_message_unref(message);
    rd_message_unref(empty);
}

int main(void) {
    shared = rd_ws_deflate_new(100);
    test_kinds();
    test_windows();
    test_not_worth_it();
    rd_ws_deflate_free(shared);
    return check_summary();
}
