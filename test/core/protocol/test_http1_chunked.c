/* SPDX-License-Identifier: MIT
 *
 * protocol/http1_chunked: bodies and what is refused in them, each whole, byte by byte, cut in two
 * at each offset.
 */
#include "check.h"
#include "error_name.h"
#include "default_limits.h"

#include <stdlib.h>

#include "protocol/http1_chunked.h"

typedef struct row {
    const char *text;
    size_t len;
    int rc; /* 0: a complete body */
    const char *body;
} row;

#define OK(text, body)                                                                             \
    { (text), sizeof(text) - 1, 0, (body) }
#define BAD(text, error)                                                                           \
    { (text), sizeof(text) - 1, RD_ERR_##error, "" }

static const row rows[] = {
    OK("0\r\n\r\n", ""),
    OK("5\r\nhello\r\n0\r\n\r\n", "hello"),
    OK("1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", "abc"),
    OK("A\r\n0123456789\r\n000\r\n\r\n", "0123456789"),
    OK("a\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n\r\n\r\n\r\n"),
    OK("0000000000000005\r\nhello\r\n0\r\n\r\n", "hello"),
    /* sizes */
    BAD("\r\n", CHUNK_SIZE),
    BAD("0x5\r\nhello", CHUNK_SIZE),
    BAD("+5\r\nhello", CHUNK_SIZE),
    BAD("-5\r\nhello", CHUNK_SIZE),
    BAD("5_0\r\n", CHUNK_SIZE),
    BAD(" 5\r\nhello", CHUNK_SIZE),
    BAD("\t5\r\nhello", CHUNK_SIZE),
    BAD("5 \r\nhello", CHUNK_SIZE),
    BAD("5\t\r\nhello", CHUNK_SIZE),
    BAD("5 ;a\r\nhello", CHUNK_SIZE),
    BAD("g\r\n", CHUNK_SIZE),
    BAD("5g\r\n", CHUNK_SIZE),
    BAD("5\0\r\n", CHUNK_SIZE),
    BAD("\xd9\xa5\r\n", CHUNK_SIZE),
    BAD(";a\r\n", CHUNK_SIZE),
    BAD("00000000000000005\r\n", CHUNK_SIZE_TOO_LARGE),
    BAD("10000000000000000\r\n", CHUNK_SIZE_TOO_LARGE),
    BAD("ffffffffffffffff\r\n", CHUNK_SIZE_TOO_LARGE),
    BAD("8000000000000000\r\n", CHUNK_SIZE_TOO_LARGE),
    /* ends of lines and of data */
    BAD("5\nhello\r\n0\r\n\r\n", CHUNK_SIZE),
    BAD("5\rXhello\r\n0\r\n\r\n", CHUNK_SIZE),
    BAD("5\r\rhello", CHUNK_SIZE),
    BAD("5\r\nhello\n0\r\n\r\n", CHUNK_END),
    BAD("5\r\nhello0\r\n\r\n", CHUNK_END),
    BAD("5\r\nhellooo\r\n0\r\n\r\n", CHUNK_END),
    BAD("5\r\nhello\rX0\r\n\r\n", CHUNK_END),
    BAD("5\r\nhello\r\n\r\n", CHUNK_SIZE),
    BAD("0\r\nXX\r\n\r\n", FIELD_NO_COLON),
    BAD("0\n\n", CHUNK_SIZE),
    BAD("0\r\n\n", BARE_LF),
    BAD("0\r\n\rX", BARE_CR),
    /* extensions */
    OK("5;a\r\nhello\r\n0;b=c\r\n\r\n", "hello"),
    OK("5;a=b;c=\"d\\\"; e\\\\\";f\r\nhello\r\n0\r\n\r\n", "hello"),
    OK("5; a = b ; c\r\nhello\r\n0\r\n\r\n", "hello"),
    OK("5;a=\"\x80\t\"\r\nhello\r\n0\r\n\r\n", "hello"),
    BAD("5;\r\nhello", CHUNK_EXTENSION),
    BAD("5; \r\nhello", CHUNK_EXTENSION),
    BAD("5;a;\r\nhello", CHUNK_EXTENSION),
    BAD("5;=b\r\nhello", CHUNK_EXTENSION),
    BAD("5;a=\r\nhello", CHUNK_EXTENSION),
    BAD("5;a \r\nhello", CHUNK_EXTENSION),
    BAD("5;a=b c\r\nhello", CHUNK_EXTENSION),
    BAD("5;a=b\n\r\nhello", CHUNK_EXTENSION),
    BAD("5;a\nhello", CHUNK_EXTENSION),
    BAD("5;a\0\r\n", CHUNK_EXTENSION),
    BAD("5;a\x01\r\n", CHUNK_EXTENSION),
    BAD("5;a=\"b\r\n", CHUNK_EXTENSION),
    BAD("5;a=\"b\n\"\r\n", CHUNK_EXTENSION),
    BAD("5;a=\"b\\\r\n", CHUNK_EXTENSION),
    BAD("5;a=\"b\x7f\"\r\n", CHUNK_EXTENSION),
    BAD("5;a=\"b\"c\r\n", CHUNK_EXTENSION),
    BAD("5;a\rX", CHUNK_SIZE),
    /* trailers */
    OK("0\r\nX: y\r\n\r\n", ""),
    OK("1\r\na\r\n0\r\nX: y\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nZ:\r\n\r\n", "a"),
    OK("0\r\nX:\t\x80 \r\n\r\n", ""),
    BAD("0\r\nX : y\r\n\r\n", FIELD_NAME_BLANK),
    BAD("0\r\n X: y\r\n\r\n", FIELD_FOLDED),
    BAD("0\r\nX: y\r\n z\r\n\r\n", FIELD_FOLDED),
    BAD("0\r\n: y\r\n\r\n", FIELD_NAME_EMPTY),
    BAD("0\r\nX\r\n\r\n", FIELD_NO_COLON),
    BAD("0\r\nX[: y\r\n\r\n", FIELD_NAME_BYTE),
    BAD("0\r\n[: y\r\n\r\n", FIELD_NAME_BYTE),
    BAD("0\r\n\0\r\n\r\n", FIELD_NAME_BYTE),
    BAD("0\r\nX: y\0\r\n\r\n", FIELD_VALUE_BYTE),
    BAD("0\r\nX: y\x7f\r\n\r\n", FIELD_VALUE_BYTE),
    BAD("0\r\nX: y\n\r\n", BARE_LF),
    BAD("0\r\nX: y\rZ: z\r\n\r\n", BARE_CR),
    BAD("0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", FIELD_NAME_BLANK),
};

/* A decoder that is fed in pieces, and the bytes that came out of it. */
typedef struct feed {
    rd_http1_chunked chunked;
    const rd_head_limits *limits;
    int rc;
    size_t taken;
    char *body;
    size_t body_len;
    bool sound; /* every answer so far fits its own parts */
} feed;

static void feed_start(feed *feed, const rd_head_limits *limits, size_t len) {
    rd_http1_chunked_init(&feed->chunked);
    feed->limits = limits;
    feed->rc = RD_CHUNKED_MORE;
    feed->taken = 0;
    feed->body = malloc(len + 1);
    feed->body_len = 0;
    feed->sound = true;
}

static void feed_end(feed *feed) {
    free(feed->body);
}

static void feed_bytes(feed *feed, const char *text, size_t len) {
    char *copy = malloc(len ? len : 1);
    size_t at = 0, used;
    rd_slice data;

    memcpy(copy, text, len);
    while (at < len && (feed->rc == RD_CHUNKED_MORE || feed->rc == RD_CHUNKED_DATA)) {
        feed->rc =
            rd_http1_chunked_next(&feed->chunked, feed->limits, copy + at, len - at, &used, &data);
        feed->sound &= used <= len - at && (feed->rc != RD_CHUNKED_MORE || used == len - at) &&
                       (feed->rc == RD_CHUNKED_DATA) == (data.len > 0);
        if (data.len) memcpy(feed->body + feed->body_len, data.ptr, data.len);
        feed->body_len += data.len;
        at += used;
    }
    feed->taken += at;
    free(copy);
}

static void check_feed(const feed *feed, const row *row) {
    const bool ended = feed->rc < 0 || feed->rc == RD_CHUNKED_DONE;

    CHECK_SAYS(ended && (row->rc ? feed->rc == row->rc : feed->rc == RD_CHUNKED_DONE),
               "%d %s: %.*s", feed->rc, error_name(feed->rc), (int)row->len, row->text);
    CHECK(feed->sound);
    if (row->rc) return;
    CHECK_INT(feed->taken, row->len);
    CHECK_BYTES(feed->body, feed->body_len, row->body);
    CHECK_INT(feed->chunked.total, feed->body_len);
}

static void check_row(const row *row, const rd_head_limits *limits) {
    feed feed;
    size_t ended = 0;

    feed_start(&feed, limits, row->len);
    for (size_t i = 0; i < row->len; i++) feed_bytes(&feed, row->text + i, 1);
    check_feed(&feed, row);
    ended = feed.taken;
    feed_end(&feed);
    for (size_t i = 0; i < row->len; i++) {
        feed_start(&feed, limits, row->len);
        feed_bytes(&feed, row->text, i);
        feed_bytes(&feed, row->text + i, row->len - i);
        check_feed(&feed, row);
        CHECK_INT(feed.taken, ended);
        feed_end(&feed);
    }
}

/* Bytes after the end belong to the next request and are not touched. */
static void test_bytes_behind_the_end(void) {
    static const char text[] = "1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
    feed feed;

    feed_start(&feed, &default_limits, sizeof text);
    feed_bytes(&feed, text, sizeof text - 1);
    CHECK_INT(feed.rc, RD_CHUNKED_DONE);
    CHECK_INT(feed.taken, 11);
    feed_end(&feed);
}

/* The size is known before the data comes, so a limit can refuse it at once. */
static void test_size_is_announced(void) {
    rd_http1_chunked chunked;
    size_t used;
    rd_slice data;

    rd_http1_chunked_init(&chunked);
    CHECK_INT(rd_http1_chunked_next(&chunked, &default_limits, "7fffffffffffffff\r\nab", 20, &used,
                                    &data),
              RD_CHUNKED_DATA);
    CHECK_INT(data.len, 2);
    rd_http1_chunked_init(&chunked);
    rd_http1_chunked_next(&chunked, &default_limits, "7fffffffffffffff", 16, &used, &data);
    CHECK_INT(rd_http1_chunked_announced(&chunked), 0);
    rd_http1_chunked_next(&chunked, &default_limits, "\r\n", 2, &used, &data);
    CHECK_INT(rd_http1_chunked_announced(&chunked), INT64_MAX);
}

static void test_limits(void) {
    static const rd_head_limits limits = {.header_name_bytes = 4,
                                          .header_value_bytes = 4,
                                          .header_count = 2,
                                          .trailer_bytes = 20,
                                          .chunk_line_bytes = 8,
                                          .chunk_extension_bytes = 10};
    static const row limited[] = {
        OK("1;345678\r\na\r\n0\r\n\r\n", "a"),
        BAD("1;3456789\r\na\r\n0\r\n\r\n", CHUNK_LINE_TOO_LONG),
        BAD("1;3=\"6789", CHUNK_LINE_TOO_LONG),
        OK("1;234\r\na\r\n1;234\r\na\r\n1;2\r\na\r\n0\r\n\r\n", "aaa"),
        BAD("1;234\r\na\r\n1;234\r\na\r\n1;23\r\na\r\n0\r\n\r\n", CHUNK_EXTENSIONS_TOO_LONG),
        OK("0\r\nabcd:1234\r\n\r\n", ""),
        BAD("0\r\nabcde:1234\r\n\r\n", FIELD_NAME_TOO_LONG),
        BAD("0\r\nabcd: 1234\r\n\r\n", FIELD_VALUE_TOO_LONG),
        OK("0\r\na:\r\nb:\r\n\r\n", ""),
        BAD("0\r\na:\r\nb:\r\nc", FIELD_COUNT),
        OK("0\r\nab:1234\r\ncd:1234\r\n\r\n", ""),
        BAD("0\r\nab:1234\r\ncde:1234\r\n\r\n", TRAILER_TOO_LARGE),
    };

    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++) check_row(&limited[i], &limits);
}

/* `count` chunks of `size` bytes each, with the shortest possible size lines. */
static int many_chunks(size_t count, size_t size) {
    const size_t room = size + 16;
    char *text = malloc(count * room + room);
    size_t len = 0;
    feed feed;

    for (size_t i = 0; i < count; i++)
        len += (size_t)sprintf(text + len, "%zx\r\n%.*s\r\n", size, (int)size, "aaaaaaaa");
    len += (size_t)sprintf(text + len, "0\r\n\r\n");
    feed_start(&feed, &default_limits, len);
    feed_bytes(&feed, text, len);
    feed_end(&feed);
    free(text);
    return feed.rc;
}

static void test_overhead(void) {
    CHECK_INT(many_chunks(65536, 1), RD_CHUNKED_DONE);
    CHECK_INT(many_chunks(65536, 2), RD_CHUNKED_DONE);
    CHECK_INT(many_chunks(200000, 1), RD_ERR_CHUNK_OVERHEAD);
    CHECK_INT(many_chunks(200000, 2), RD_CHUNKED_DONE);
}

int main(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i], &default_limits);
    test_bytes_behind_the_end();
    test_size_is_announced();
    test_limits();
    test_overhead();
    return check_summary();
}
