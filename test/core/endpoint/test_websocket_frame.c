/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket_frame: headers and what is refused in them, each whole, byte by byte and cut
 * in two at each offset; masks at each offset; what a server writes.
 */
#include "check.h"
#include "client_frames.h"
#include "error_name.h"

#include <stdlib.h>

#include "endpoint/websocket_frame.h"
#include "endpoint/endpoint.h"

typedef struct row {
    const char *bytes;
    size_t len;
    int rc; /* 0: a complete header; an error is reported at the last byte */
    unsigned opcode;
    uint64_t length;
    bool deflate;
} row;

#define MASK "\x37\xfa\x21\x3d"
#define OK(bytes, opcode, length)                                                                  \
    { bytes MASK, sizeof(bytes MASK) - 1, 0, (opcode), (length), false }
#define BAD(bytes, error)                                                                          \
    { (bytes), sizeof(bytes) - 1, RD_ERR_WS_##error, 0, 0, false }
#define BAD_DEFLATE(bytes, error)                                                                  \
    { (bytes), sizeof(bytes) - 1, RD_ERR_WS_##error, 0, 0, true }

static const row rows[] = {
    OK("\x81\x80", RD_WS_TEXT, 0),
    OK("\x02\xfd", RD_WS_BINARY, 125),
    OK("\x80\x81", RD_WS_CONTINUATION, 1),
    OK("\x88\xfd", RD_WS_CLOSE, 125),
    OK("\x89\x80", RD_WS_PING, 0),
    OK("\x8a\x80", RD_WS_PONG, 0),
    OK("\x82\xfe\x00\x7e", RD_WS_BINARY, 126),
    OK("\x82\xfe\xff\xff", RD_WS_BINARY, 65535),
    OK("\x82\xff\0\0\0\0\0\x01\0\0", RD_WS_BINARY, 65536),
    OK("\x82\xff\0\0\0\x01\0\0\0\0", RD_WS_BINARY, UINT64_C(1) << 32),
    OK("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff", RD_WS_BINARY, INT64_MAX),
    /* lengths (RFC 6455, section 5.2) */
    BAD("\x82\xfe\0\x7d", LENGTH_PADDED),
    BAD("\x82\xfe\0\0", LENGTH_PADDED),
    BAD("\x82\xff\0\0\0\0\0\0\xff\xff", LENGTH_PADDED),
    BAD("\x82\xff\0\0\0\0\0\0\0\0", LENGTH_PADDED),
    BAD("\x82\xff\x80", LENGTH_SIGN),
    BAD("\x82\xff\xff", LENGTH_SIGN),
    /* masks (section 5.1) */
    BAD("\x81\x00", NOT_MASKED),
    BAD("\x81\x05", NOT_MASKED),
    BAD("\x81\x7e", NOT_MASKED),
    BAD("\x81\x7f", NOT_MASKED),
    BAD("\x89\x7e", NOT_MASKED),
    /* reserved bits and opcodes (section 5.2) */
    BAD("\xc1", RESERVED_BITS),
    BAD("\xa1", RESERVED_BITS),
    BAD("\x91", RESERVED_BITS),
    BAD("\x70", RESERVED_BITS),
    BAD("\xff", RESERVED_BITS),
    BAD("\x83", OPCODE),
    BAD("\x07", OPCODE),
    BAD("\x8b", OPCODE),
    BAD("\x8f", OPCODE),
    BAD_DEFLATE("\xc0", RESERVED_BITS),
    BAD_DEFLATE("\xc8", RESERVED_BITS),
    BAD_DEFLATE("\xc9", RESERVED_BITS),
    BAD_DEFLATE("\xe1", RESERVED_BITS),
    BAD_DEFLATE("\xd2", RESERVED_BITS),
    BAD_DEFLATE("\xc3", OPCODE),
    /* control frames (section 5.5) */
    BAD("\x08", CONTROL_FRAGMENTED),
    BAD("\x09", CONTROL_FRAGMENTED),
    BAD("\x0a", CONTROL_FRAGMENTED),
    BAD("\x88\xfe", CONTROL_TOO_LONG),
    BAD("\x89\xff", CONTROL_TOO_LONG),
};

static int read_pieces(rd_ws_frame *frame, const row *row, size_t first, size_t step,
                       size_t *taken) {
    size_t piece = first, used;
    int rc = 0;

    *frame = (rd_ws_frame){0};
    *taken = 0;
    do {
        char *copy = malloc(piece ? piece : 1);

        memcpy(copy, row->bytes + *taken, piece);
        rc = rd_ws_frame_read(frame, row->deflate, copy, piece, &used);
        free(copy);
        *taken += used;
        if (rc == 0) CHECK_INT(used, piece);
        piece = row->len - *taken < step ? row->len - *taken : step;
    } while (rc == 0 && *taken < row->len);
    return rc;
}

static void check_pieces(const row *row, size_t first, size_t step) {
    rd_ws_frame frame;
    size_t taken;
    const int rc = read_pieces(&frame, row, first, step, &taken);

    CHECK_SAYS(rc == (row->rc ? row->rc : 1), "%d %s", rc, error_name(rc));
    CHECK_INT(taken, row->len);
    if (rc < 0) {
        CHECK_INT(rd_error_status(rc), 1002);
        CHECK_INT(rd_error_class(rc), RD_ERROR_FRAME);
        return;
    }
    CHECK_INT(frame.opcode, row->opcode);
    CHECK_INT(frame.length, row->length);
    CHECK_INT(frame.fin, (row->bytes[0] & 0x80) != 0);
    CHECK_INT(frame.rsv1, 0);
    CHECK_BYTES((const char *)frame.mask, 4, MASK);
}

static void check_row(const row *row) {
    for (size_t cut = 0; cut < row->len; cut++) check_pieces(row, cut, row->len);
    check_pieces(row, 1, 1);
}

/* A header ends where its payload begins, and an unfinished one asks for more. */
static void test_stops_behind_the_header(void) {
    rd_ws_frame frame = {0};
    size_t used;

    CHECK_INT(rd_ws_frame_read(&frame, false, "\x81\x82" MASK "ab\x81", 9, &used), 1);
    CHECK_INT(used, 6);
    frame = (rd_ws_frame){0};
    CHECK_INT(rd_ws_frame_read(&frame, false, "\x81\x82\x37", 3, &used), 0);
    CHECK_INT(used, 3);
}

/* A server's header has no mask, and one that has is refused at its second byte. */
static void test_of_a_server(void) {
    static const struct {
        const char *bytes;
        size_t len;
        int result;
    } heads[] = {{"\x81\x02hi", 4, 1},
                 {"\x82\x7e\x01\x00x", 5, 1},
                 {"\x82\x7f\0\0\0\0\0\1\0\0x", 11, 1},
                 {"\x89\x00", 2, 1},
                 {"\x81", 1, 0},
                 {"\x82\x7e\x01", 3, 0},
                 {"\x81\x82" MASK, 6, RD_ERR_WS_MASKED}};
    rd_ws_frame frame;
    size_t used;

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        frame = (rd_ws_frame){.is_bare = true};
        CHECK_INT(rd_ws_frame_read(&frame, false, heads[i].bytes, heads[i].len, &used),
                  heads[i].result);
        if (heads[i].result == 1)
            CHECK_INT(used, heads[i].len - (frame.length == 2 ? 2 : frame.length > 0 ? 1 : 0));
    }
}

/* What a client writes is what a server reads. */
static void test_masked(void) {
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    static const size_t lengths[] = {0, 1, 125, 126, 65535, 65536};
    static char payload[65536];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const size_t len = lengths[i];
        rd_buffer out = {0};
        rd_ws_frame frame = {0};
        size_t used;

        memset(payload, 'x', sizeof payload);
        rd_ws_masked_write(&out, RD_WS_TEXT, false, mask, rd_slice_of(payload, len));
        CHECK_INT(rd_ws_frame_read(&frame, false, rd_buffer_ptr(&out), rd_buffer_len(&out), &used),
                  1);
        CHECK_INT(frame.length, len);
        CHECK(memcmp(frame.mask, mask, sizeof mask) == 0);
        CHECK_INT(rd_buffer_len(&out), used + len);
        if (len > 0) CHECK(rd_buffer_ptr(&out)[used] != 'x');
        rd_ws_mask(rd_buffer_ptr(&out) + used, len, mask, 0);
        CHECK(len == 0 || memcmp(rd_buffer_ptr(&out) + used, payload, len) == 0);
        rd_buffer_clear(&out);
    }
}

static void test_compressed(void) {
    static const struct {
        const char *bytes;
        bool rsv1;
    } heads[] = {{"\xc1\x80" MASK, true}, {"\x42\x80" MASK, true}, {"\x81\x80" MASK, false}};
    rd_ws_frame frame;
    size_t used;

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        frame = (rd_ws_frame){0};
        CHECK_INT(rd_ws_frame_read(&frame, true, heads[i].bytes, 6, &used), 1);
        CHECK_INT(frame.rsv1, heads[i].rsv1);
    }
}

static void test_mask(void) {
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    char bytes[64], plain[64];

    for (size_t len = 0; len <= 40; len++) {
        for (uint64_t offset = 0; offset < 8; offset++) {
            for (size_t start = 0; start < 8; start++) {
                memset(bytes, 'x', sizeof bytes);
                memcpy(plain, bytes, sizeof plain);
                for (size_t i = 0; i < len; i++)
                    bytes[start + i] = (char)('x' ^ mask[(offset + i) % 4]);
                rd_ws_mask(bytes + start, len, mask, offset);
                CHECK(memcmp(bytes, plain, sizeof bytes) == 0);
            }
        }
    }
    rd_ws_mask(bytes, 8, mask, UINT64_C(0xffffffffffffffff));
    CHECK_INT(bytes[0], 'x' ^ mask[3]);
    CHECK_INT(bytes[1], 'x' ^ mask[0]);
}

static void test_written_headers(void) {
    static const struct {
        unsigned opcode;
        bool rsv1;
        uint64_t length;
        const char *bytes;
        size_t len;
    } heads[] = {
        {RD_WS_TEXT, false, 0, "\x81\x00", 2},
        {RD_WS_BINARY, false, 125, "\x82\x7d", 2},
        {RD_WS_TEXT, true, 126, "\xc1\x7e\x00\x7e", 4},
        {RD_WS_PONG, false, 125, "\x8a\x7d", 2},
        {RD_WS_BINARY, false, 65535, "\x82\x7e\xff\xff", 4},
        {RD_WS_BINARY, false, 65536, "\x82\x7f\0\0\0\0\0\x01\0\0", 10},
        {RD_WS_TEXT, false, UINT64_C(0x0102030405060708), "\x81\x7f\1\2\3\4\5\6\7\x08", 10},
    };
    char header[RD_WS_HEADER_MAX];

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const size_t len =
            rd_ws_header_write(header, heads[i].opcode, heads[i].rsv1, heads[i].length);

        CHECK_INT(len, heads[i].len);
        CHECK(memcmp(header, heads[i].bytes, heads[i].len) == 0);
    }
}

/* What a client writes is read back: the header of the tests and ours agree on every length. */
static void test_written_by_a_client(void) {
    static const uint64_t lengths[] = {0, 1, 125, 126, 127, 65535, 65536, INT64_MAX};
    char bytes[CLIENT_HEADER_MAX];
    rd_ws_frame frame;
    size_t len, used;

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        frame = (rd_ws_frame){0};
        len = client_frame(bytes, FIN | BINARY, 0x37fa213d, "", 0, lengths[i]);
        CHECK_INT(rd_ws_frame_read(&frame, false, bytes, len, &used), 1);
        CHECK_INT(used, len);
        CHECK_INT(frame.length, lengths[i]);
        CHECK_BYTES((const char *)frame.mask, 4, MASK);
    }
}

static void test_close_codes(void) {
    unsigned allowed = 0;

    for (unsigned code = 0; code < 70000; code++) allowed += rd_endpoint_is_close_code(code);
    CHECK_INT(allowed, 4 + 8 + 2000);
    CHECK(rd_endpoint_is_close_code(1000) && rd_endpoint_is_close_code(1003) &&
          rd_endpoint_is_close_code(1007));
    CHECK(rd_endpoint_is_close_code(1014) && rd_endpoint_is_close_code(3000) &&
          rd_endpoint_is_close_code(4999));
    CHECK(!rd_endpoint_is_close_code(1004) && !rd_endpoint_is_close_code(1006) &&
          !rd_endpoint_is_close_code(1015));
}

static void test_written_closes(void) {
    char frame[RD_WS_CLOSE_MAX], reason[130];
    size_t len;

    len = rd_ws_close_write(frame, 0, RD_SLICE("not sent"));
    CHECK(len == 2 && memcmp(frame, "\x88\x00", 2) == 0);
    len = rd_ws_close_write(frame, 1000, RD_SLICE(""));
    CHECK(len == 4 && memcmp(frame, "\x88\x02\x03\xe8", 4) == 0);
    len = rd_ws_close_write(frame, 4999, RD_SLICE("bye"));
    CHECK(len == 7 && memcmp(frame,
                             "\x88\x05\x13\x87"
                             "bye",
                             7) == 0);

    memset(reason, 'r', sizeof reason);
    len = rd_ws_close_write(frame, 1000, rd_slice_of(reason, RD_WS_REASON_MAX));
    CHECK_INT(len, RD_WS_CLOSE_MAX);
    len = rd_ws_close_write(frame, 1000, rd_slice_of(reason, sizeof reason));
    CHECK_INT(len, RD_WS_CLOSE_MAX);
    memcpy(reason + 121, "\xe2\x82\xac", 3); /* byte 124 would be the last byte of the code point */
    len = rd_ws_close_write(frame, 1000, rd_slice_of(reason, sizeof reason));
    CHECK_INT(len, 4 + 121);
    CHECK_INT(frame[1], 2 + 121);
}

int main(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
    test_stops_behind_the_header();
    test_of_a_server();
    test_masked();
    test_compressed();
    test_mask();
    test_written_headers();
    test_written_by_a_client();
    test_close_codes();
    test_written_closes();
    return check_summary();
}
