/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket_deflate: compressed messages of a client as the message layer hands them out,
 * each row cut at every offset; and what a server packs, read by zlib itself.
 */
#include "message_feed.h"

#include <zlib.h>

#include "endpoint/websocket_deflate.h"

static rd_ws_deflate *shared;

#define C (FIN | RSV1)

/* "Hello" as in RFC 7692, section 7.2.3, and 40 and 41 times "a". */
#define HELLO "\xf2\x48\xcd\xc9\xc9\x07\x00"
#define A40   "\x4a\x4c\x24\x0e\x00\x00"
#define TAIL  "\x00\x00\xff\xff"

static const row rows[] = {
    {"text(Hello)", {F(C | TEXT, HELLO)}},
    {"binary(Hello) text(plain) text(Hello)",
     {F(C | BINARY, HELLO), F(FIN | TEXT, "plain"), F(C | TEXT, HELLO)}},
    {"text(Hello)", {F(RSV1 | TEXT, "\xf2\x48\xcd"), F(FIN, "\xc9\xc9\x07\x00")}},
    {"ping(p) text(Hello) text(x)",
     {F(RSV1 | TEXT, ""), F(0, "\xf2"), F(FIN | PING, "p"), F(0, ""), F(0, "\x48\xcd\xc9"),
      F(0, "\xc9\x07\x00"), F(FIN, ""), F(FIN | TEXT, "x")}},
    /* stored, with a last block, two blocks, two streams */
    {"text(Hello)", {F(C | TEXT, "\x00\x05\x00\xfa\xffHello\x00")}},
    {"text(Hello)", {F(C | TEXT, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00")}},
    {"text(Hello)", {F(C | TEXT, "\xf2\x48\x05\x00" TAIL "\xca\xc9\xc9\x07\x00")}},
    {"text(HelloHello)", {F(C | TEXT, "\xf3\x48\xcd\xc9\xc9\x07\x00" HELLO)}},
    {"text(HelloHello)",
     {F(C | TEXT, "\xf3\x48\xcd\xc9\xc9\x07\x00\xf3\x48\xcd\xc9\xc9\x07\x00\x00")}},
    /* empty messages */
    {"text()", {F(C | TEXT, "\x00")}},
    {"binary()", {F(C | BINARY, "\x03\x00\x00")}},
    {"text() text(a)", {F(C | TEXT, ""), F(FIN | TEXT, "a")}},
    {"binary()", {F(RSV1 | BINARY, ""), F(0, ""), F(FIN, "")}},
    /* with the tail that should be removed; without the byte that a last block leaves */
    {"text(Hello)", {F(C | TEXT, HELLO TAIL)}},
    {"text(Hello)", {F(C | TEXT, "\xf3\x48\xcd\xc9\xc9\x07\x00")}},
    {"text()", {F(C | TEXT, "\x03\x00")}},
    {"text()", {F(C | TEXT, "\x00" TAIL)}},
    /* invalid deflate data: refused at the first byte that makes it invalid, or at the end */
    {"!WS_DEFLATE", {CUT(C | BINARY, 1000, "\x06")}},
    {"!WS_DEFLATE", {CUT(C | BINARY, 1000, "\x00\x05\x00\x05\x00")}},
    {"binary(Hello) !WS_DEFLATE", {F(C | BINARY, HELLO), F(C | BINARY, "\xf2\x00\x11\x00\x00")}},
    {"!WS_DEFLATE", {F(C | BINARY, "\x00\x05\x00\xfa\xffHel")}},
    {"!WS_DEFLATE", {F(C | BINARY, "\x00\x05\x00")}},
    {"!WS_DEFLATE", {F(RSV1 | BINARY, "\x00\x05\x00\xfa\xffHel"), F(FIN, "")}},
    {"ping() !WS_DEFLATE", {F(RSV1 | BINARY, "\x00\x01"), F(FIN | PING, ""), F(0, "\x00\x00\x00")}},
    /* text is checked as it is inflated */
    {"binary(ab\xff)", {F(C | BINARY, "\x4a\x4c\xfa\x0f\x00")}},
    {"!WS_NOT_UTF8", {F(C | TEXT, "\x4a\x4c\xfa\x0f\x00")}},
    {"!WS_NOT_UTF8", {CUT(C | TEXT, 1000, "\x4a\x4c\xfa\x0f")}},
    {"!WS_NOT_UTF8", {F(RSV1 | TEXT, "\x4a\x4c"), CUT(0, 1000, "\xfa\x0f")}},
    {"text(\xce\xba\xe1\xbd\xb9)", {F(C | TEXT, "\x3a\xb7\xeb\xe1\xde\x9d\x00\x00")}},
    {"text(\xce\xba\xe1\xbd\xb9)",
     {F(RSV1 | TEXT, "\x3a\xb7\xeb"), F(0, ""), F(0, "\xe1"), F(FIN, "\xde\x9d\x00\x00")}},
    {"!WS_NOT_UTF8", {F(C | TEXT, "\x3a\x07\x00")}},
    {"text(a) !WS_NOT_UTF8", {F(FIN | TEXT, "a"), F(FIN | TEXT, "\xff")}},
    /* other errors are the same as without compression */
    {"!WS_RESERVED_BITS", {F(RSV1 | TEXT, "\xf2\x48"), F(C, "\xcd")}},
    {"!WS_RESERVED_BITS", {F(C | PING, "")}},
    {"!WS_RESERVED_BITS", {F(C | PONG, "")}},
    {"!WS_RESERVED_BITS", {F(C | CLOSE, "")}},
    {"!WS_RESERVED_BITS", {F(FIN | 0x20 | TEXT, "")}},
    {"!WS_RESERVED_BITS", {F(C | 0x10 | TEXT, "")}},
    {"!WS_INTERLEAVED", {F(RSV1 | TEXT, "\xf2\x48"), F(C | TEXT, "")}},
    {"text() !WS_CONTINUATION", {F(C | TEXT, ""), F(FIN, "")}},
    {"close(1000:x)", {F(RSV1 | TEXT, "\xf2\x48"), F(FIN | CLOSE, "\x03\xe8x"), F(FIN, "\xff")}},
};

/* The inflated size of a message counts, not the size on the wire. */
static const row limited_rows[] = {
    {"binary(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) text(x)",
     {F(C | BINARY, A40), F(FIN | TEXT, "x")}},
    {"!WS_MESSAGE_TOO_LARGE", {CUT(C | BINARY, 20, "\x4a\x4c\x1c\x05\xc4")}},
    {"!WS_MESSAGE_TOO_LARGE",
     {F(RSV1 | TEXT, A40 TAIL), F(0, ""), CUT(0, 9, "\x00\x01\x00\xfe\xff!")}},
    {"!WS_MESSAGE_TOO_LARGE",
     {F(RSV1 | TEXT, A40 TAIL), F(0, ""), CUT(0, 9, "\x00\x01\x00\xfe\xff\xff")}},
    {"!WS_FRAGMENTS", {F(RSV1 | TEXT, ""), F(0, ""), F(0, ""), F(0, "")}},
    {"!WS_MESSAGE_TOO_LARGE", {CUT(FIN | TEXT, 41, "")}},
    /* frames of 109 bytes at most */
    {"", {CUT(C | TEXT, 109, "")}},
    {"!WS_MESSAGE_TOO_LARGE", {CUT(C | TEXT, 110, "")}},
    {"", {F(RSV1 | TEXT, HELLO), CUT(0, 102, "")}},
    {"!WS_MESSAGE_TOO_LARGE", {F(RSV1 | TEXT, HELLO), CUT(0, 103, "")}},
};

static void check_rows(void) {
    rd_ws_limits limits = roomy;

    limits.deflate = shared;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i], &limits);
    limits.message_bytes = 40;
    limits.fragments = 3;
    for (size_t i = 0; i < sizeof limited_rows / sizeof *limited_rows; i++)
        check_row(&limited_rows[i], &limits);
}

/* Without the extension the bit is refused. */
static void test_not_negotiated(void) {
    static const row refused = {"!WS_RESERVED_BITS", {F(C | TEXT, HELLO)}};

    check_row(&refused, &roomy);
}

/* zlib's own encoder, as a client has it. */
static size_t client_deflate(const char *bytes, size_t len, char *out, size_t room) {
    z_stream stream = {0};

    CHECK_INT(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (unsigned char *)(uintptr_t)bytes;
    stream.avail_in = (uInt)len;
    stream.next_out = (unsigned char *)out;
    stream.avail_out = (uInt)room;
    CHECK_INT(deflate(&stream, Z_SYNC_FLUSH), Z_OK);
    deflateEnd(&stream);
    return room - stream.avail_out - 4;
}

/* A message a thousand times as large as its frame stops at the limit, wherever the limit is, and
 * takes no more memory than the limit allows. */
static void test_bombs(void) {
    static char zeros[1 << 20], packed[4096], frame[4096 + CLIENT_HEADER_MAX];
    static const uint32_t allowed[] = {0, 1, 16383, 16384, 16385, 100000, 1048575, 1048576};
    const size_t len = client_deflate(zeros, sizeof zeros, packed, sizeof packed);
    const size_t bytes = client_frame(frame, C | BINARY, 0x12345678, packed, len, len);

    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        rd_ws_limits limits = {.message_bytes = allowed[i], .fragments = 1, .deflate = shared};
        for (size_t step = 1; step < 2000; step += 399) {
            feed feed;

            feed_start(&feed, &limits);
            for (size_t at = 0; at < bytes; at += step) {
                feed_bytes(&feed, frame + at, bytes - at < step ? bytes - at : step);
                CHECK(feed.reader.buffer.capacity <= 2 * allowed[i] + 512);
            }
            if (allowed[i] == sizeof zeros) {
                CHECK_INT(rd_buffer_len(&feed.events), sizeof zeros + strlen("binary()"));
                CHECK(feed.sound);
                feed_end(&feed);
            } else {
                check_events(&feed, "!WS_MESSAGE_TOO_LARGE");
            }
        }
    }
}

/* If a message ends without being delivered, by a close or with its connection, it gives its memory
 * back. So do messages beyond the number of inflaters that are kept. */
static void test_inflaters_come_back(void) {
    rd_ws_limits limits = roomy;
    char frame[64];
    const size_t len = client_frame(frame, RSV1 | TEXT, 0x01020304, HELLO, 4, 4);
    feed feeds[9];

    limits.deflate = shared;
    for (size_t i = 0; i < sizeof feeds / sizeof *feeds; i++) {
        feed_start(&feeds[i], &limits);
        feed_bytes(&feeds[i], frame, len);
        CHECK(feeds[i].reader.inflater != NULL);
        CHECK(feeds[i].reader.opcode == RD_WS_TEXT);
    }
    for (size_t i = 0; i < sizeof feeds / sizeof *feeds; i++) {
        feed_bytes(&feeds[i], "\x88\x80\x00\x00\x00\x00", i % 2 ? 6 : 0);
        if (i % 2) CHECK(feeds[i].reader.inflater == NULL);
        check_events(&feeds[i], i % 2 ? "close(1005:)" : "");
    }
}

/* ---- what the server packs ---- */

/* Inflates with zlib and a window of this many bits. */
static void check_unpacked(rd_slice packed, unsigned bits, rd_slice expected) {
    z_stream stream = {0};
    char *input = malloc(packed.len + 4), *out = malloc(expected.len + 1);

    memcpy(input, packed.ptr, packed.len);
    memcpy(input + packed.len, TAIL, 4);
    CHECK_INT(inflateInit2(&stream, -(int)bits), Z_OK);
    stream.next_in = (unsigned char *)input;
    stream.avail_in = (uInt)packed.len + 4;
    stream.next_out = (unsigned char *)out;
    stream.avail_out = (uInt)expected.len + 1;
    CHECK_INT(inflate(&stream, Z_SYNC_FLUSH), Z_OK);
    if (CHECK_INT(stream.total_out, expected.len))
        CHECK(memcmp(out, expected.ptr, expected.len) == 0);
    CHECK_INT(stream.avail_in, 0);
    inflateEnd(&stream);
    free(input);
    free(out);
}

/* Numbers as text: they are shorter when packed, and their references go back as far as the window.
 */
static char *numbers(size_t len) {
    char *text = malloc(len + 32);

    for (size_t at = 0, i = 0; at < len; i++)
        at += (size_t)sprintf(text + at, "%zu,", i * i * 7919 % 100003);
    return text;
}

static void test_windows(void) {
    static const size_t sizes[] = {100, 256, 257, 512, 1024, 5000, 40000, 70000, 262144};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *text = numbers(sizes[i]);
        const rd_slice payload = rd_slice_of(text, sizes[i]);

        for (unsigned bits = RD_WS_WINDOW_MIN; bits <= RD_WS_WINDOW_MAX; bits++) {
            const rd_slice packed = rd_ws_deflate_pack(shared, bits, payload);

            if (bits == 8 && sizes[i] > 256) { /* zlib cannot make such a window */
                CHECK(packed.ptr == NULL);
                continue;
            }
            if (!CHECK(packed.ptr != NULL)) continue;
            CHECK(packed.len < payload.len);
            check_unpacked(packed, bits, payload);
        }
        /* a message that fits in a window needs no larger one */
        for (unsigned bits = RD_WS_WINDOW_MIN; bits < RD_WS_WINDOW_MAX; bits++)
            if (sizes[i] <= (size_t)1 << bits)
                check_unpacked(rd_ws_deflate_pack(shared, RD_WS_WINDOW_MAX, payload), bits,
                               payload);
        free(text);
    }
}

static bool is_packed(rd_ws_deflate *with, const char *bytes, size_t len) {
    const rd_slice packed = rd_ws_deflate_pack(with, RD_WS_WINDOW_MAX, rd_slice_of(bytes, len));

    CHECK(packed.ptr == NULL || packed.len < len);
    return packed.ptr != NULL;
}

static void test_not_worth_it(void) {
    static char same[262145], noise[4096];
    rd_ws_deflate *strict = rd_ws_deflate_new(1024);
    uint32_t seed = 1;

    memset(same, 'a', sizeof same);
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
    CHECK(!is_packed(strict, same, 1023));
    CHECK(is_packed(strict, same, 1024));
    CHECK(!is_packed(strict, noise, sizeof noise));
    CHECK(is_packed(strict, same, 262144));
    CHECK(!is_packed(strict, same, 262145));
    CHECK(is_packed(strict, same, 2000));
    rd_ws_deflate_free(strict);
    for (size_t len = 0; len < 64; len++) {
        CHECK(!is_packed(shared, noise, len));
        CHECK(is_packed(shared, same, len) || len < 10);
    }
}

int main(void) {
    rd_ws_deflate_free(NULL);
    shared = rd_ws_deflate_new(0);
    check_rows();
    test_not_negotiated();
    test_bombs();
    test_inflaters_come_back();
    test_windows();
    test_not_worth_it();
    rd_ws_deflate_free(shared);
    return check_summary();
}
