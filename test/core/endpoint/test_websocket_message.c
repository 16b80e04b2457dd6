/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket_message: frames of a client and the events they make, each row whole, byte by
 * byte, in odd pieces, cut in two at each offset.
 */
#include "check.h"
#include "message_feed.h"

#define X25  "xxxxxxxxxxxxxxxxxxxxxxxxx"
#define X120 X25 X25 X25 X25 "xxxxxxxxxxxxxxxxxxxx"

static const row rows[] = {
    {"text()", {F(FIN | TEXT, "")}},
    {"text(hello)", {F(FIN | TEXT, "hello")}},
    {"binary(\xff\xfe)", {F(FIN | BINARY, "\xff\xfe")}},
    {"text(a) binary(b) text(c)", {F(FIN | TEXT, "a"), F(FIN | BINARY, "b"), F(FIN | TEXT, "c")}},
    /* pings and pongs */
    {"ping()", {F(FIN | PING, "")}},
    {"ping(hello) ping(\xfe\xff) pong() text(x)",
     {F(FIN | PING, "hello"), F(FIN | PING, "\xfe\xff"), F(FIN | PONG, ""), F(FIN | TEXT, "x")}},
    {"ping(" X120 "xxxxx)", {F(FIN | PING, X120 "xxxxx")}},
    {"!WS_CONTROL_TOO_LONG", {CUT(FIN | PING, 126, "")}},
    {"!WS_CONTROL_TOO_LONG", {CUT(FIN | CLOSE, 126, "")}},
    {"!WS_CONTROL_FRAGMENTED", {F(PING, "a")}},
    {"!WS_CONTROL_FRAGMENTED", {F(PONG, "a")}},
    {"!WS_CONTROL_FRAGMENTED", {F(CLOSE, "")}},
    /* fragments */
    {"text(abcd)", {F(TEXT, "ab"), F(FIN, "cd")}},
    {"binary(abcd)", {F(BINARY, "ab"), F(0, "c"), F(FIN, "d")}},
    {"text(abc) text(d)",
     {F(TEXT, ""), F(0, ""), F(0, "abc"), F(0, ""), F(FIN, ""), F(FIN | TEXT, "d")}},
    {"text()", {F(TEXT, ""), F(0, ""), F(FIN, "")}},
    {"text(abc)", {F(TEXT, ""), F(0, ""), F(FIN, "abc")}},
    {"ping(p) text(ab)", {F(TEXT, "a"), F(FIN | PING, "p"), F(FIN, "b")}},
    {"ping() pong(q) ping(" X25 ") text(abc)",
     {F(TEXT, "a"), F(FIN | PING, ""), F(FIN | PONG, "q"), F(0, "b"), F(FIN | PING, X25),
      F(FIN, "c")}},
    {"ping(p) text(b)", {F(TEXT, ""), F(FIN | PING, "p"), F(FIN, "b")}},
    {"!WS_CONTINUATION", {F(FIN, "a")}},
    {"!WS_CONTINUATION", {F(0, "a"), F(FIN, "b")}},
    {"text(ab) !WS_CONTINUATION", {F(TEXT, "a"), F(FIN, "b"), F(FIN, "c")}},
    {"text(a) !WS_CONTINUATION", {F(FIN | TEXT, "a"), F(0, "b"), F(FIN | TEXT, "c")}},
    {"!WS_INTERLEAVED", {F(TEXT, "a"), F(FIN | TEXT, "b")}},
    {"ping() !WS_INTERLEAVED", {F(TEXT, "a"), F(FIN | PING, ""), CUT(BINARY, 5, "")}},
    {"!WS_INTERLEAVED", {F(BINARY, ""), F(FIN | TEXT, "")}},
    /* text is checked as it arrives, not earlier */
    {"text(\xce\xba\xe1\xbd\xb9)",
     {F(TEXT, "\xce\xba\xe1"), F(0, ""), F(0, "\xbd"), F(FIN, "\xb9")}},
    {"ping(\xff) text(\xce\xba)", {F(TEXT, "\xce"), F(FIN | PING, "\xff"), F(FIN, "\xba")}},
    {"!WS_NOT_UTF8", {CUT(FIN | TEXT, 30, "\xce\xba\xf4\x90")}},
    {"!WS_NOT_UTF8", {F(TEXT, "\xce\xba\xf4"), CUT(FIN, 3, "\x90")}},
    {"!WS_NOT_UTF8", {CUT(TEXT, 1000, "\xed\xa0")}},
    {"!WS_NOT_UTF8", {F(TEXT, "\xce"), F(0, ""), CUT(0, 1000, "x")}},
    {"!WS_NOT_UTF8", {F(FIN | TEXT, "abc\xce")}},
    {"!WS_NOT_UTF8", {F(TEXT, "abc\xce"), F(FIN, "")}},
    {"ping() !WS_NOT_UTF8", {F(TEXT, "abc\xe1\xbd"), F(FIN | PING, ""), F(FIN, "")}},
    {"text(a) !WS_NOT_UTF8", {F(FIN | TEXT, "a"), F(FIN | TEXT, "\x80")}},
    {"binary(\xce) text(a)", {F(FIN | BINARY, "\xce"), F(FIN | TEXT, "a")}},
    {"binary(\xce\xff)", {F(BINARY, "\xce"), F(FIN, "\xff")}},
    /* closes, and no event after them */
    {"close(1005:)", {F(FIN | CLOSE, "")}},
    {"close(1000:)", {F(FIN | CLOSE, "\x03\xe8")}},
    {"close(1000:bye)",
     {F(FIN | CLOSE, "\x03\xe8"
                     "bye")}},
    {"close(1000:" X120 "xxx)", {F(FIN | CLOSE, "\x03\xe8" X120 "xxx")}},
    {"close(1000:\xce\xba)", {F(FIN | CLOSE, "\x03\xe8\xce\xba")}},
    {"text(a) close(1000:)", {F(FIN | TEXT, "a"), F(FIN | CLOSE, "\x03\xe8"), F(FIN | TEXT, "b")}},
    {"close(1000:)", {F(FIN | CLOSE, "\x03\xe8"), F(FIN | CLOSE, "\x03\xe8"), F(FIN | PING, "b")}},
    {"close(1001:)", {F(FIN | CLOSE, "\x03\xe9"), F(0x7f, "nonsense")}},
    {"close(1000:x)", {F(TEXT, "abc\xce"), F(FIN | CLOSE, "\x03\xe8x"), F(FIN, "d")}},
    {"!WS_CLOSE_LENGTH", {CUT(FIN | CLOSE, 1, "")}},
    {"!WS_CLOSE_CODE", {CUT(FIN | CLOSE, 20, "\x03\xed")}},
    {"!WS_NOT_UTF8", {CUT(FIN | CLOSE, 20, "\x03\xe8\xf4\x90")}},
    {"!WS_NOT_UTF8", {F(FIN | CLOSE, "\x03\xe8\xce")}},
    {"!WS_NOT_UTF8", {F(TEXT, "\xce"), CUT(FIN | CLOSE, 20, "\x03\xe8\xba")}},
    /* no event after an error */
    {"!WS_OPCODE", {F(FIN | 0x3, "a"), F(FIN | TEXT, "b"), F(FIN | CLOSE, "")}},
    {"text(a) !WS_RESERVED_BITS", {F(FIN | TEXT, "a"), F(FIN | RSV1 | TEXT, "b"), F(FIN, "c")}},
};

/* One frame, alone, and after a message that must have been delivered. */
static void check_refused(unsigned first, const char *payload, size_t len, const char *error) {
    const frame frames[] = {F(FIN | TEXT, "good"), {first, payload, len, len}};
    char bytes[256], events[64];

    snprintf(events, sizeof events, "!%s", error);
    check_stream(bytes, write_frames(bytes, frames + 1, 1), &roomy, events);
    snprintf(events, sizeof events, "text(good) !%s", error);
    check_stream(bytes, write_frames(bytes, frames, 2), &roomy, events);
}

static void test_reserved_bits(void) {
    static const unsigned opcodes[] = {TEXT, BINARY, PING, CLOSE, CONTINUATION};

    for (unsigned bits = 1; bits < 8; bits++)
        for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
            check_refused(FIN | bits << 4 | opcodes[i], "", 0, "WS_RESERVED_BITS");
}

static void test_reserved_opcodes(void) {
    for (unsigned opcode = 3; opcode < 16; opcode++) {
        if (opcode >= CLOSE && opcode <= PONG) continue;
        check_refused(FIN | opcode, "", 0, "WS_OPCODE");
        check_refused(FIN | opcode, "payload", 7, "WS_OPCODE");
    }
}

static void check_close_code(unsigned code, bool allowed) {
    const char payload[] = {(char)(code >> 8), (char)code, 'r'};
    char bytes[64], events[64];
    const size_t len = client_frame(bytes, FIN | CLOSE, 0x01020304, payload, 3, 3);

    snprintf(events, sizeof events, allowed ? "close(%u:r)" : "!WS_CLOSE_CODE", code);
    check_stream(bytes, len, &roomy, events);
}

static void test_close_codes(void) {
    static const unsigned good[] = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010,
                                    1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999};
    static const unsigned bad[] = {0,    999,  1004, 1005, 1006, 1015,
                                   1016, 1100, 2000, 2999, 5000, 65535};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) check_close_code(good[i], true);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) check_close_code(bad[i], false);
}

/* A text as one frame, then with each byte as a fragment of its own and empty fragments between. */
static void check_text(const char *text, bool valid) {
    const size_t len = strlen(text);
    char bytes[1024], events[64];
    size_t at = client_frame(bytes, FIN | TEXT, 0x89abcdef, text, len, len);

    snprintf(events, sizeof events, valid ? "text(%s)" : "!WS_NOT_UTF8", text);
    check_stream(bytes, at, &roomy, events);
    at = 0;
    for (size_t i = 0; i < len; i++) {
        at += client_frame(bytes + at, i ? CONTINUATION : TEXT, 0xfedcba98, text + i, 1, 1);
        at += client_frame(bytes + at, CONTINUATION, 0, "", 0, 0);
    }
    at += client_frame(bytes + at, FIN, 0, "", 0, 0);
    check_stream(bytes, at, &roomy, events);
}

/* The cases of Kuhn's stress list; base/utf8 has all code points. */
static void test_texts(void) {
    static const char *const good[] = {"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5",
                                       "\x7f",
                                       "\xdf\xbf",
                                       "\xef\xbf\xbf",
                                       "\xf4\x8f\xbf\xbf",
                                       "\xc2\x80",
                                       "\xe0\xa0\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbd",
                                       "\xef\xbf\xbe",
                                       "\xef\xb7\x90",
                                       "\xf0\x9f\xbf\xbe",
                                       "\xf4\x8f\xbf\xbe"};
    static const char *const bad[] = {"\xce",
                                      "\xce\xba\xe1",
                                      "\xce\xba\xe1\xbd",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xfc\x84\x80\x80\x80\x80",
                                      "\xf7\xbf\xbf\xbf",
                                      "\xfb\xbf\xbf\xbf\xbf",
                                      "\xfd\xbf\xbf\xbf\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\x80",
                                      "\xbf",
                                      "\x80\xbf\x80\xbf",
                                      "\xc0 \xc1 ",
                                      "\xe0 \xe1 ",
                                      "\xf0 \xf1 ",
                                      "\xc0",
                                      "\xe0\x80",
                                      "\xf0\x80\x80",
                                      "\xfe",
                                      "\xff",
                                      "\xc0\xaf",
                                      "\xe0\x80\xaf",
                                      "\xf0\x80\x80\xaf",
                                      "\xf8\x80\x80\x80\xaf",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xc0\x80",
                                      "\xed\xa0\x80",
                                      "\xed\xaf\xbf",
                                      "\xed\xb0\x80",
                                      "\xed\xbf\xbf",
                                      "\xed\xa0\x80\xed\xb0\x80",
                                      "\xed\xaf\xbf\xed\xbf\xbf"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) check_text(good[i], true);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) check_text(bad[i], false);
}

/* One message of `len` bytes in frames of `fragment` bytes, fed in pieces. It must come out
 * unchanged. */
static void check_large(unsigned opcode, size_t len, size_t fragment, size_t step) {
    const size_t frames = len / fragment + 2;
    char *payload = malloc(len + 1), *bytes = malloc(len + frames * CLIENT_HEADER_MAX);
    size_t sent = 0, total = 0;
    feed feed;

    for (size_t i = 0; i < len; i++) payload[i] = (char)(' ' + i * 7 % 95);
    do {
        const size_t piece = len - sent < fragment ? len - sent : fragment;
        const unsigned first =
            (sent ? CONTINUATION : opcode) | (sent + piece == len ? FIN : CONTINUATION);

        total += client_frame(bytes + total, first, 0xa5c3f00d, payload + sent, piece, piece);
        sent += piece;
    } while (sent < len);
    feed_start(&feed, &roomy);
    feed_pieces(&feed, bytes, total, step);
    CHECK(feed.sound && feed.rc == RD_WS_EVENT_NONE);
    {
        const size_t before = opcode == TEXT ? 5 : 7;

        if (CHECK_INT(rd_buffer_len(&feed.events), before + len + 1))
            CHECK(memcmp(rd_buffer_ptr(&feed.events) + before, payload, len) == 0);
    }
    feed_end(&feed);
    free(payload);
    free(bytes);
}

static void test_sizes(void) {
    static const size_t sizes[] = {0, 1, 125, 126, 127, 128, 65535, 65536};
    static const size_t steps[] = {1, 997, 2048, 1 << 20};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t j = 0; j < sizeof steps / sizeof *steps; j++) {
            check_large(TEXT, sizes[i], 1 << 20, steps[j]);
            check_large(BINARY, sizes[i], 1 << 20, steps[j]);
        }
    }
    check_large(TEXT, 65536, 1300, 4096);
    check_large(TEXT, 1 << 22, 64, 65536);
    check_large(BINARY, 1 << 22, 1 << 18, 65536);
    check_large(TEXT, 1 << 20, 1 << 20, 64);
    check_large(BINARY, 1 << 24, 1 << 24, 1 << 18);
}

/* Refused by its header: no byte of a payload that is too large is needed. */
static void test_limits(void) {
    static const rd_ws_limits tight = {.message_bytes = 10, .fragments = 3};
    static const row limited[] = {
        {"text(0123456789)", {F(FIN | TEXT, "0123456789")}},
        {"!WS_MESSAGE_TOO_LARGE", {CUT(FIN | TEXT, 11, "")}},
        {"!WS_MESSAGE_TOO_LARGE", {CUT(BINARY, 65536, "")}},
        {"!WS_MESSAGE_TOO_LARGE", {CUT(BINARY, INT64_MAX, "")}},
        {"binary(0123456789)", {F(BINARY, "01234"), F(0, "5678"), F(FIN, "9")}},
        {"!WS_MESSAGE_TOO_LARGE", {F(BINARY, "01234"), F(0, "5678"), CUT(FIN, 2, "")}},
        {"!WS_MESSAGE_TOO_LARGE", {F(BINARY, "01234"), CUT(FIN, 0xffffffff, "")}},
        {"!WS_MESSAGE_TOO_LARGE", {F(BINARY, "01234"), CUT(FIN, INT64_MAX, "")}},
        {"ping(" X25 ") text(01)", {F(TEXT, "0"), F(FIN | PING, X25), F(FIN, "1")}},
        {"text(01) text(2)", {F(TEXT, "0"), F(0, ""), F(FIN, "1"), F(FIN | TEXT, "2")}},
        {"!WS_FRAGMENTS", {F(TEXT, "0"), F(0, "1"), F(0, "2"), CUT(FIN, 9, "")}},
        {"!WS_FRAGMENTS", {F(TEXT, ""), F(0, ""), F(0, ""), F(0, "")}},
        {"ping() ping() ping() text(012)",
         {F(TEXT, "0"), F(FIN | PING, ""), F(FIN | PING, ""), F(0, "1"), F(FIN | PING, ""),
          F(FIN, "2")}},
    };
    static const rd_ws_limits none = {.message_bytes = 0, .fragments = 0};
    static const row nothing[] = {
        {"text() ping(a)", {F(FIN | TEXT, ""), F(FIN | PING, "a")}},
        {"!WS_MESSAGE_TOO_LARGE", {CUT(FIN | TEXT, 1, "")}},
        {"!WS_FRAGMENTS", {F(TEXT, ""), F(FIN, "")}},
    };

    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++) check_row(&limited[i], &tight);
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) check_row(&nothing[i], &none);
}

/* A size that the limit allows is not reserved in advance: memory grows with the bytes that come.
 */
static void test_announced_is_not_allocated(void) {
    const rd_ws_limits limits = {.message_bytes = UINT32_MAX, .fragments = 1};
    char bytes[CLIENT_HEADER_MAX + 100];
    size_t len = client_frame(bytes, FIN | BINARY, 0, X120, 1, RD_WS_MESSAGE_MAX);
    feed feed;

    feed_start(&feed, &limits);
    feed_bytes(&feed, bytes, len - 1);
    CHECK(feed.reader.buffer.bytes == NULL);
    feed_bytes(&feed, bytes + len - 1, 1);
    CHECK(feed.reader.buffer.capacity <= 512);
    CHECK(feed.reader.opcode == RD_WS_BINARY);
    check_events(&feed, "");
    len = client_frame(bytes, FIN | BINARY, 0, "", 0, (uint64_t)RD_WS_MESSAGE_MAX + 1);
    feed_start(&feed, &limits);
    feed_bytes(&feed, bytes, len);
    check_events(&feed, "!WS_MESSAGE_TOO_LARGE");
}

/* Feeds a frame in two pieces. It is a message. `copy` gets its bytes, which stay where they are.
 */
static void feed_cut(rd_ws_reader *reader, rd_slice frame, size_t cut, char *copy,
                     rd_ws_event *event) {
    size_t used;

    rd_ws_reader_init(reader);
    memcpy(copy, frame.ptr, frame.len);
    rd_ws_feed(reader, &roomy, copy, cut, &used, event);
    CHECK_INT(rd_ws_feed(reader, &roomy, copy + cut, frame.len - cut, &used, event),
              RD_WS_EVENT_MESSAGE);
    CHECK_INT(used, frame.len - cut);
}

/* A payload in one piece is handed out in place. If it was cut, the taker gets its buffer. */
static void test_take(void) {
    char bytes[64];
    const size_t len = client_frame(bytes, FIN | TEXT, 0x11223344, "message", 7, 7);
    rd_ws_reader reader;
    rd_ws_event event;
    rd_buffer payload = {0};
    char copy[64];
    size_t used;

    for (size_t cut = 0; cut < len; cut++) {
        feed_cut(&reader, rd_slice_of(bytes, len), cut, copy, &event);
        CHECK((event.payload.ptr == copy + len - 7) == (cut <= len - 7));
        CHECK(rd_ws_reader_take(&reader, &event, &payload) == (cut > len - 7));
        CHECK(reader.buffer.bytes == NULL);
        if (cut <= len - 7) rd_buffer_append(&payload, event.payload.ptr, event.payload.len);
        CHECK_INT(rd_ws_feed(&reader, &roomy, copy, 0, &used, &event), RD_WS_EVENT_NONE);
        CHECK_BYTES(rd_buffer_ptr(&payload), rd_buffer_len(&payload), "message");
        rd_buffer_clear(&payload);
    }
}

/* A text is ASCII if all of it is, however it was cut. A binary message never is. */
static void test_ascii(void) {
    static const struct {
        unsigned opcode;
        const char *payload;
        bool is_ascii;
    } messages[] = {
        {TEXT, "", true},
        {TEXT, X25, true},
        {TEXT, X25 "\xce\xba", false},
        {TEXT, "\xce\xba" X25, false},
        {TEXT, "\xc2\x80", false},
        {BINARY, X25, false},
    };
    char bytes[64], copy[64];
    rd_ws_reader reader;
    rd_ws_event event;

    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        const char *payload = messages[i].payload;
        const size_t len = client_frame(bytes, FIN | messages[i].opcode, 0x11223344, payload,
                                        strlen(payload), strlen(payload));
        for (size_t cut = 0; cut < len; cut++) {
            feed_cut(&reader, rd_slice_of(bytes, len), cut, copy, &event);
            CHECK(event.is_ascii == messages[i].is_ascii);
            rd_ws_reader_clear(&reader);
        }
    }
}

int main(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i], &roomy);
    test_reserved_bits();
    test_reserved_opcodes();
    test_close_codes();
    test_texts();
    test_sizes();
    test_limits();
    test_announced_is_not_allocated();
    test_take();
    test_ascii();
    return check_summary();
}
