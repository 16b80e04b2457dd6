/* SPDX-License-Identifier: MIT
 *
 * http2/http2_frames: which frames cost a point or end the connection, wherever the bytes are cut,
 * and what makes a piece.
 */
#include "check.h"

#include "http2/http2_frames.h"

enum { PREFACE_LEN = 24, NOW = 1000 };

static char bytes[1 << 16];
static size_t len;

static void begin(void) {
    memset(bytes, 'x', PREFACE_LEN);
    len = PREFACE_LEN;
}

static void put_on(unsigned id, unsigned type, unsigned flags, size_t payload) {
    const char header[RD_HTTP2_HEADER_LEN] = {(char)(payload >> 16),
                                              (char)(payload >> 8),
                                              (char)payload,
                                              (char)type,
                                              (char)flags,
                                              0,
                                              0,
                                              (char)(id >> 8),
                                              (char)id};
    memcpy(bytes + len, header, sizeof(header));
    memset(bytes + len + sizeof(header), 2, payload);
    len += sizeof(header) + payload;
}

static void put(unsigned type, unsigned flags, size_t payload) {
    put_on(0, type, flags, payload);
}

/* How many points the bytes cost, in pieces of this size. */
static uint32_t cost(size_t piece) {
    rd_http2_account account;
    rd_http2_frames frames;
    rd_http2_fault fault;
    rd_http2_account_init(&account, NOW);
    rd_http2_frames_init(&frames);
    const uint32_t before = account.points;
    for (size_t at = 0; at < len; at += piece) {
        const size_t part = len - at < piece ? len - at : piece;
        CHECK_INT(rd_http2_frames_read(&frames, &account, NOW, bytes + at, part, &fault), part);
        CHECK_INT(fault, RD_HTTP2_FINE);
    }
    return before - account.points;
}

static void check_cost(uint32_t expected) {
    for (size_t piece = 1; piece <= len; piece++) CHECK_INT(cost(piece), expected);
}

static void test_which_cost(void) {
    begin();
    check_cost(0);
    put(0, 0, 5);        /* DATA */
    put(0, 1, 0);        /* its end */
    put_on(1, 1, 4, 10); /* HEADERS */
    put_on(1, 1, 5, 10); /* trailers */
    put(8, 0, 4);        /* WINDOW_UPDATE */
    check_cost(0);
    put(0, 0, 0); /* DATA without any */
    check_cost(1);
    put_on(1, 2, 0, 5); /* PRIORITY */
    put(3, 0, 4);       /* RST_STREAM */
    put(4, 0, 6);       /* SETTINGS */
    put(6, 0, 8);       /* PING */
    put(9, 0, 0);       /* CONTINUATION */
    put(0x10, 0, 5);    /* PRIORITY_UPDATE */
    put(0xee, 0, 70);   /* an unknown one */
    put(0, 0, 1);
    check_cost(8);
}

static rd_http2_frames in_the_middle;

/* How many points the bytes cost a client that is in the middle of its connection. */
static uint32_t cost_in_the_middle(void) {
    rd_http2_account account;
    rd_http2_fault fault;
    rd_http2_account_init(&account, NOW);
    const uint32_t before = account.points;
    CHECK_INT(rd_http2_frames_read(&in_the_middle, &account, NOW, bytes, len, &fault), len);
    CHECK_INT(fault, RD_HTTP2_FINE);
    len = 0;
    return before - account.points;
}

/* A head on a stream that is there already, but for trailers, is decoded for nothing. So is one on
 * a stream that is long over, and one that comes after the end of all streams was said. */
static void test_heads_that_open_no_stream(void) {
    rd_http2_frames_init(&in_the_middle);
    in_the_middle.skip = 0;
    len = 0;
    put_on(1, 1, 4, 10);
    CHECK_INT(cost_in_the_middle(), 0);
    put_on(1, 1, 4, 10);
    put_on(1, 1, 4, 10);
    CHECK_INT(cost_in_the_middle(), 2);
    put_on(1, 1, 5, 10);
    CHECK_INT(cost_in_the_middle(), 0);
    for (unsigned id = 3; id < 3 + 2 * RD_HTTP2_REMEMBERED; id += 2) {
        put_on(id, 1, 5, 10);
        CHECK_INT(cost_in_the_middle(), 0);
    }
    put_on(1, 1, 5, 10);
    put_on(1, 1, 5, 10);
    CHECK_INT(cost_in_the_middle(), 2);
    in_the_middle.opens_none = true;
    put_on(901, 1, 5, 10);
    CHECK_INT(cost_in_the_middle(), 1);
}

/* ---- faults ---- */

enum { DATA, HEADERS, PRIORITY, RST, WHOLE = 4, LAST = 1 };

/* Of the last frame; those before it have none, and get to the library. */
static rd_http2_fault fault_of_last(size_t piece) {
    rd_http2_account account;
    rd_http2_frames frames;
    rd_http2_fault fault = RD_HTTP2_FINE;
    size_t passed = 0;
    rd_http2_account_init(&account, NOW);
    rd_http2_frames_init(&frames);
    for (size_t at = 0; at < len && fault == RD_HTTP2_FINE; at += piece) {
        const size_t part = len - at < piece ? len - at : piece;
        passed += rd_http2_frames_read(&frames, &account, NOW, bytes + at, part, &fault);
    }
    if (fault == RD_HTTP2_FINE) CHECK_INT(passed, len);
    if (fault != RD_HTTP2_FINE) CHECK(passed >= len - RD_HTTP2_HEADER_LEN && passed < len);
    return fault;
}

static void check_fault(rd_http2_fault expected) {
    for (size_t piece = 1; piece <= len; piece += piece < 300 ? 1 : 501) {
        CHECK_INT(fault_of_last(piece), expected);
    }
}

static void test_streams_that_are_over(void) {
    begin();
    put_on(5, HEADERS, WHOLE, 3);
    put_on(5, DATA, 0, 1);
    put_on(5, HEADERS, WHOLE | LAST, 3);
    put_on(5, RST, 0, 0);
    check_fault(RD_HTTP2_FINE);
    const size_t before = len;
    put_on(5, DATA, 0, 0);
    check_fault(RD_HTTP2_CLOSED);
    len = before;
    put_on(3, HEADERS, WHOLE, 0);
    check_fault(RD_HTTP2_MISPLACED);
    len = before;
    put_on(1, DATA, 0, 0);
    check_fault(RD_HTTP2_CLOSED);
    len = before;
    put_on(0, PRIORITY, 0, 0);
    check_fault(RD_HTTP2_MISPLACED);
    len = before;
    put_on(7, HEADERS, 0, 3);
    put_on(5, DATA, 0, 0); /* the library says what is wrong with it */
    check_fault(RD_HTTP2_FINE);
}

/* What a stream was does not come back with the one that takes its place. */
static void test_many_streams(void) {
    begin();
    put_on(1, HEADERS, WHOLE | LAST, 1);
    for (unsigned id = 3; id < 2 * RD_HTTP2_REMEMBERED; id += 2) put_on(id, HEADERS, WHOLE, 1);
    const size_t before = len;
    put_on(1, DATA, 0, 0);
    check_fault(RD_HTTP2_CLOSED);
    len = before;
    put_on(2 * RD_HTTP2_REMEMBERED + 1, HEADERS, WHOLE, 1);
    put_on(2 * RD_HTTP2_REMEMBERED + 1, DATA, 0, 0);
    put_on(1, DATA, 0, 0); /* forgotten */
    check_fault(RD_HTTP2_FINE);
    put_on(60001, HEADERS, WHOLE, 1);
    put_on(3, DATA, 0, 0);
    check_fault(RD_HTTP2_FINE);
    put_on(60001 - 2 * RD_HTTP2_REMEMBERED + 2, HEADERS, WHOLE, 0);
    check_fault(RD_HTTP2_MISPLACED);
}

/* ---- pieces ---- */

/* Pieces of a text that comes in parts of this size. A body is whole, heads are cut. */
static void check_pieces(size_t part_len) {
    rd_http2_account account;
    rd_http2_frames frames;
    rd_http2_fault fault;
    rd_http2_account_init(&account, NOW);
    rd_http2_frames_init(&frames);
    for (size_t at = 0; at < len;) {
        size_t left = len - at < part_len ? len - at : part_len;
        while (left > 0) {
            const size_t piece = rd_http2_frames_piece(&frames, bytes + at, left);
            if (!CHECK(piece > 0 && piece <= left)) return;
            const size_t fine =
                rd_http2_frames_read(&frames, &account, NOW, bytes + at, piece, &fault);
            if (!CHECK_INT(fine, piece)) return;
            at += piece;
            left -= piece;
        }
    }
}

static size_t piece_at(const rd_http2_frames *frames, size_t at) {
    return rd_http2_frames_piece(frames, bytes + at, len - at);
}

static void test_pieces(void) {
    rd_http2_frames frames;
    begin();
    put_on(1, HEADERS, WHOLE, 5000);
    for (unsigned i = 0; i < 100; i++) put_on(1, DATA, 0, 1);
    put_on(1, DATA, 0, 16384);
    put_on(1, DATA, LAST, 0);
    for (unsigned i = 0; i < 100; i++) put(4, 0, 6);
    for (size_t part = 1; part < len; part += part < 600 ? 1 : 97) check_pieces(part);

    rd_http2_frames_init(&frames);
    CHECK_INT(piece_at(&frames, 0), PREFACE_LEN + 256); /* the preface is no load */
    frames.skip = 0;
    CHECK_INT(piece_at(&frames, PREFACE_LEN), 256);
    const size_t bodies = PREFACE_LEN + 9 + 5000, large = bodies + 100 * 10;
    CHECK_INT(piece_at(&frames, bodies), 29 * 10); /* 29 headers weigh more than 256 bytes */
    CHECK(piece_at(&frames, large) > 16384 + 9);
    CHECK(piece_at(&frames, large) < 16384 + 9 + 9 + 300);
    frames.header[3] = DATA; /* in the middle of a body */
    frames.skip = 5000;
    CHECK(piece_at(&frames, large) >= 5000);
    frames.header[3] = HEADERS;
    CHECK_INT(piece_at(&frames, large), 256);
    frames.header_len = 3; /* in the middle of the header of a frame */
    frames.skip = 0;
    CHECK_INT(piece_at(&frames, large), 256);
}

int main(void) {
    test_which_cost();
    test_heads_that_open_no_stream();
    test_streams_that_are_over();
    test_many_streams();
    test_pieces();
    return check_summary();
}
