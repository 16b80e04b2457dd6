/* SPDX-License-Identifier: MIT
 *
 * protocol/http1_parser: what is accepted and what is refused. Every row is given whole, byte by
 * byte, cut in two at each offset, and with other bytes behind it; the answer must be the same.
 */
#include "check.h"
#include "default_limits.h"
#include "error_name.h"
#include "same_head.h"

#include <stdlib.h>

#include "protocol/http1_parser.h"

typedef struct row {
    const char *text;
    size_t len;
    int rc; /* 0: accepted as a whole; else the error */
} row;

#define ROW(text, rc)                                                                              \
    { (text), sizeof(text) - 1, (rc) }
#define OK(text)         ROW(text, 0)
#define BAD(text, error) ROW(text, RD_ERR_##error)
/* One field line inside an otherwise valid request. */
#define FIELD(line)    "GET / HTTP/1.1\r\nHost: a\r\n" line "\r\n\r\n"
#define TARGET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

static const row line_rows[] = {
    OK("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    OK("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    OK("\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    BAD("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", EMPTY_LINES),
    BAD(" \r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_INVALID),
    BAD("\r\n GET / HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_INVALID),
    BAD("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", BARE_LF),
    BAD("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", BARE_CR),
    BAD("GET / HTTP/1.1\nHost: a\r\n\r\n", BARE_LF),
    BAD("GET / HTTP/1.1\r\nHost: a\n\r\n", BARE_LF),
    BAD("GET / HTTP/1.1\r\nHost: a\r\n\n", BARE_LF),
    BAD("GET / HTTP/1.1\r\nHost: a\n\n", BARE_LF),
    BAD("GET / HTTP/1.1\rHost: a\r\n\r\n", BARE_CR),
    BAD("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", BARE_CR),
    BAD("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", BARE_CR),
    BAD("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", BARE_CR),
    BAD("GET / HTTP/1.1\r\nHost: a\r\n\rX", BARE_CR),
    /* the parts of the request line */
    BAD("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", TARGET_MISSING),
    BAD("GET /  HTTP/1.1\r\nHost: a\r\n\r\n", VERSION_INVALID),
    BAD("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_INVALID),
    BAD("GET\v/ HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_INVALID),
    BAD("GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", TARGET_BYTE),
    BAD("GET /\fHTTP/1.1\r\nHost: a\r\n\r\n", TARGET_BYTE),
    BAD("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", VERSION_INVALID),
    BAD("GET HTTP/1.1\r\nHost: a\r\n\r\n", VERSION_MISSING),
    BAD("GET\r\nHost: a\r\n\r\n", TARGET_MISSING),
    BAD("GET \r\nHost: a\r\n\r\n", TARGET_MISSING),
    BAD("GET  HTTP/1.1\r\nHost: a\r\n\r\n", TARGET_MISSING),
    BAD("GET /\r\n", VERSION_MISSING),
    BAD("GET /\n", VERSION_MISSING),
    BAD("GET / \r\n", VERSION_MISSING),
    /* versions */
    BAD("GET / HTTP/1\r\n", VERSION_INVALID),
    BAD("GET / HTTP/1.\r\n", VERSION_INVALID),
    BAD("GET / HTTP/01.1\r\n", VERSION_INVALID),
    BAD("GET / HTTP/1.10\r\n", VERSION_INVALID),
    BAD("GET / HTTP/ 1.1\r\n", VERSION_INVALID),
    BAD("GET / http/1.1\r\n", VERSION_INVALID),
    BAD("GET / HTTP/1.1x\r\n", VERSION_INVALID),
    BAD("GET / HTTP/1.1 \r\n", VERSION_INVALID),
    BAD("GET / HTTP/1.32\r\n", VERSION_INVALID),
    BAD("GET / HTTP/1,1\r\n", VERSION_INVALID),
    BAD("GET / HTTPS/1.1\r\n", VERSION_INVALID),
    BAD("GET / HTTP/99999999999999999999.1\r\n", VERSION_INVALID),
    BAD("GET / HTTP/1.99999999999999999999\r\n", VERSION_INVALID),
    BAD("GET / HTTP/-1.1\r\n", VERSION_INVALID),
    BAD("GET / HTTP/1.x\r\n", VERSION_INVALID),
    BAD("GET / HTTP/2.0\r\n", VERSION_UNSUPPORTED),
    BAD("GET / HTTP/9.9\r\n", VERSION_UNSUPPORTED),
    BAD("GET / HTTP/0.9\r\n", VERSION_UNSUPPORTED),
    BAD("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", VERSION_UNSUPPORTED),
    OK("GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
    OK("GET / HTTP/1.9\r\nHost: a\r\n\r\n"),
    OK("GET / HTTP/1.0\r\n\r\n"),
    /* methods */
    BAD(" GET / HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_INVALID),
    BAD("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_INVALID),
    BAD("G\0T / HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_INVALID),
    BAD("G\x80T / HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_INVALID),
    BAD("GET:/ HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_INVALID),
    OK("get / HTTP/1.1\r\nHost: a\r\n\r\n"),
    OK("PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n"),
    OK("M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n"),
    OK("ABCDEFGHIJKLMNOPQRSTUVWX / HTTP/1.1\r\nHost: a\r\n\r\n"),
    BAD("ABCDEFGHIJKLMNOPQRSTUVWXY / HTTP/1.1\r\nHost: a\r\n\r\n", METHOD_TOO_LONG),
    BAD("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", METHOD_INVALID),
    BAD("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", METHOD_CONNECT),
};

static const row target_rows[] = {
    BAD(TARGET("a:443"), TARGET_FORM),
    BAD(TARGET("*"), TARGET_ASTERISK),
    OK("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
    OK(TARGET("http://b/c?d")),
    OK(TARGET("https://b:8443")),
    BAD(TARGET("ftp://b/"), TARGET_SCHEME),
    BAD(TARGET("http://u:p@b/"), TARGET_AUTHORITY),
    BAD(TARGET("http:///c"), TARGET_AUTHORITY),
    BAD("GET http://b/ HTTP/1.1\r\n\r\n", HOST_MISSING),
    OK("GET http://b/ HTTP/1.0\r\n\r\n"),
    BAD(TARGET("/a#b"), TARGET_BYTE),
    BAD(TARGET("/a\0b"), TARGET_BYTE),
    BAD(TARGET("/a\x01"), TARGET_BYTE),
    BAD(TARGET("/a\x7f"), TARGET_BYTE),
    BAD(TARGET("/\x80"), TARGET_BYTE),
    BAD(TARGET("/\xc3\xa4"), TARGET_BYTE),
    BAD(TARGET("/\""), TARGET_BYTE),
    BAD(TARGET("/<"), TARGET_BYTE),
    BAD(TARGET("/>"), TARGET_BYTE),
    BAD(TARGET("/\\"), TARGET_BYTE),
    BAD(TARGET("/^"), TARGET_BYTE),
    BAD(TARGET("/`"), TARGET_BYTE),
    BAD(TARGET("/{"), TARGET_BYTE),
    BAD(TARGET("/|"), TARGET_BYTE),
    BAD(TARGET("/}"), TARGET_BYTE),
    OK(TARGET("/?a[]=1&b[c]=%zz")),
    OK(TARGET("/%00%0d%0a%2e%2e%2f%252e%c0%af%zz")),
    OK(TARGET("/!$&'()*+,-./:;=?@_~")),
};

static const row field_rows[] = {
    /* Host */
    BAD("GET / HTTP/1.1\r\n\r\n", HOST_MISSING),
    BAD("GET / HTTP/1.2\r\n\r\n", HOST_MISSING),
    BAD(FIELD("Host: a"), HOST_REPEATED),
    BAD(FIELD("host: b"), HOST_REPEATED),
    BAD("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", HOST_REPEATED),
    BAD("GET / HTTP/1.1\r\nHost:\r\n\r\n", HOST_INVALID),
    BAD("GET / HTTP/1.1\r\nHost: \t \r\n\r\n", HOST_INVALID),
    BAD("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", HOST_INVALID),
    BAD("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", HOST_INVALID),
    BAD("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", HOST_INVALID),
    BAD("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", HOST_INVALID),
    BAD("GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n", FIELD_VALUE_BYTE),
    BAD("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", HOST_INVALID),
    BAD("GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", HOST_INVALID),
    BAD("GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n", HOST_INVALID),
    BAD("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", HOST_INVALID),
    BAD("GET http://b/ HTTP/1.1\r\nHost: a,b\r\n\r\n", HOST_INVALID),
    OK("GET / HTTP/1.1\r\nHost: [::1]:3000\r\n\r\n"),
    OK("GET / HTTP/1.1\r\nHOST:a:80\t \r\n\r\n"),
    /* names */
    BAD(FIELD("X : b"), FIELD_NAME_BLANK),
    BAD(FIELD("X\t: b"), FIELD_NAME_BLANK),
    BAD("GET / HTTP/1.1\r\n Host: a\r\n\r\n", FIELD_FOLDED),
    BAD("GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", FIELD_FOLDED),
    BAD(FIELD("X: b\r\n c"), FIELD_FOLDED),
    BAD(FIELD("X: b\r\n\tc: d"), FIELD_FOLDED),
    BAD(FIELD("X: b\r\n "), FIELD_FOLDED),
    BAD(FIELD("X"), FIELD_NO_COLON),
    BAD(FIELD("X b"), FIELD_NAME_BLANK),
    BAD(FIELD(":"), FIELD_NAME_EMPTY),
    BAD(FIELD(": b"), FIELD_NAME_EMPTY),
    BAD(FIELD("[X: b"), FIELD_NAME_BYTE),
    BAD(FIELD("X[]: b"), FIELD_NAME_BYTE),
    BAD(FIELD("X\x85: b"), FIELD_NAME_BYTE),
    BAD(FIELD("X\xa0: b"), FIELD_NAME_BYTE),
    BAD(FIELD("X\0: b"), FIELD_NAME_BYTE),
    BAD(FIELD("X\v: b"), FIELD_NAME_BYTE),
    BAD(FIELD("\x7f: b"), FIELD_NAME_BYTE),
    BAD(FIELD("X@: b"), FIELD_NAME_BYTE),
    BAD(FIELD("X(y): b"), FIELD_NAME_BYTE),
    OK(FIELD("!#$%&'*+-.^`|~9aZ: b")),
    /* values */
    BAD(FIELD("X: a\0b"), FIELD_VALUE_BYTE),
    BAD(FIELD("X: a\x01"), FIELD_VALUE_BYTE),
    BAD(FIELD("X: \v"), FIELD_VALUE_BYTE),
    BAD(FIELD("X: a\f"), FIELD_VALUE_BYTE),
    BAD(FIELD("X: a\x1b[0m"), FIELD_VALUE_BYTE),
    BAD(FIELD("X: a\x7f"), FIELD_VALUE_BYTE),
    BAD(FIELD("X: 0123456789abcdef0123456789abcde\x1f"), FIELD_VALUE_BYTE),
    BAD(FIELD("X: 0123456789abcdef0123456789abcd\x7f"), FIELD_VALUE_BYTE),
    BAD(FIELD("X: a\rb"), BARE_CR),
    BAD(FIELD("X: a\nb: c"), BARE_LF),
    OK(FIELD("X:")),
    OK(FIELD("X: \t \t")),
    OK(FIELD("X: a\tb c\x80\xff\x85\xa0")),
};

static const row framing_rows[] = {
    OK(FIELD("Content-Length: 5")),
    OK(FIELD("Content-Length: 010")),
    OK(FIELD("Content-Length: 0")),
    OK(FIELD("Content-Length: 00000000000000000000000000000000000001")),
    OK(FIELD("Content-Length: 9223372036854775807")),
    BAD(FIELD("Content-Length: 9223372036854775808"), LENGTH_TOO_LARGE),
    BAD(FIELD("Content-Length: 18446744073709551616"), LENGTH_TOO_LARGE),
    BAD(FIELD("Content-Length: 18446744073709551621"), LENGTH_TOO_LARGE),
    BAD(FIELD("Content-Length:"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: +5"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: -1"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: -0"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 0x5"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 0o5"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 1_0"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 1 0"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 1Z"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 5,"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: ,5"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 5, 5"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 5, 6"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 5.0"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: \"5\""), LENGTH_INVALID),
    BAD(FIELD("Content-Length: \xa0"
              "5"),
        LENGTH_INVALID),
    BAD(FIELD("Content-Length: \xd9\xa5"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 99999999999999999999999999x"), LENGTH_INVALID),
    BAD(FIELD("Content-Length: 5\r\nContent-Length: 5"), LENGTH_REPEATED),
    BAD(FIELD("Content-Length: 5\r\ncontent-length: 6"), LENGTH_REPEATED),
    BAD(FIELD("Content-Length: 5\r\nTransfer-Encoding: chunked"), LENGTH_AND_CODING),
    BAD(FIELD("Transfer-Encoding: chunked\r\nContent-Length: 5"), LENGTH_AND_CODING),
    BAD(FIELD("Transfer-Encoding: chunked\r\nContent-Length: 0"), LENGTH_AND_CODING),
    OK(FIELD("Transfer-Encoding: chunked")),
    OK(FIELD("transfer-encoding:\tChUnKeD \t")),
    BAD("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", CODING_IN_1_0),
    BAD(FIELD("Transfer-Encoding: gzip"), CODING_NOT_CHUNKED),
    BAD(FIELD("Transfer-Encoding: chunked, gzip"), CODING_NOT_CHUNKED),
    BAD(FIELD("Transfer-Encoding: gzip, chunked"), CODING_UNSUPPORTED),
    BAD(FIELD("Transfer-Encoding: identity"), CODING_UNSUPPORTED),
    BAD(FIELD("Transfer-Encoding: xchunked"), CODING_UNSUPPORTED),
    BAD(FIELD("Transfer-Encoding: chunkedx"), CODING_UNSUPPORTED),
    BAD(FIELD("Transfer-Encoding: chunked, identity"), CODING_UNSUPPORTED),
    BAD(FIELD("Transfer-Encoding: identity, chunked"), CODING_UNSUPPORTED),
    BAD(FIELD("Transfer-Encoding: chunked, chunked"), CODING_INVALID),
    BAD(FIELD("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), CODING_REPEATED),
    BAD(FIELD("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"), CODING_REPEATED),
    BAD(FIELD("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked"), CODING_UNSUPPORTED),
    BAD(FIELD("Transfer-Encoding:"), CODING_INVALID),
    BAD(FIELD("Transfer-Encoding: ,chunked"), CODING_INVALID),
    BAD(FIELD("Transfer-Encoding: chunked,"), CODING_INVALID),
    BAD(FIELD("Transfer-Encoding: chunked;q=1"), CODING_INVALID),
    BAD(FIELD("Transfer-Encoding: \"chunked\""), CODING_INVALID),
    BAD(FIELD("Transfer-Encoding: 'chunked'"), CODING_UNSUPPORTED),
    BAD(FIELD("Transfer-Encoding: chunked\0"), FIELD_VALUE_BYTE),
    BAD(FIELD("Transfer-Encoding: \vchunked"), FIELD_VALUE_BYTE),
    BAD(FIELD("Transfer-Encoding: chunked\f"), FIELD_VALUE_BYTE),
    BAD(FIELD("Transfer-Encoding: \xa0"
              "chunked"),
        CODING_INVALID),
    BAD(FIELD("Transfer-Encoding: chunked\x85"), CODING_INVALID),
    BAD(FIELD("Transfer-Encoding: chun ked"), CODING_INVALID),
    BAD(FIELD("Transfer-Encoding : chunked"), FIELD_NAME_BLANK),
    BAD(FIELD("Transfer-Encoding\t: chunked"), FIELD_NAME_BLANK),
    BAD(FIELD("Transfer-Encoding: x\r\n chunked"), FIELD_FOLDED),
    BAD(FIELD("Transfer-Encoding\0: chunked"), FIELD_NAME_BYTE),
    OK(FIELD("Transfer_Encoding: chunked\r\nContent_Length: 7")),
    OK(FIELD("Expect: 100-continue")),
    OK(FIELD("Expect: 100-Continue, 100-continue")),
    OK(FIELD("Expect:")),
    BAD(FIELD("Expect: 200-ok"), EXPECTATION),
    BAD(FIELD("Expect: 100-continue, x"), EXPECTATION),
    BAD(FIELD("Expect: 100-continue;q=1"), EXPECTATION),
};

/* A parser that gets more and more of the same bytes, each time at another address. */
typedef struct feed {
    rd_http1_parser parser;
    rd_head head;
    const rd_head_limits *limits;
    char *bytes; /* of the last call */
    int rc;
    size_t given; /* the length at which rc came */
} feed;

static void feed_start(feed *feed, const rd_head_limits *limits) {
    rd_http1_parser_init(&feed->parser);
    rd_head_init(&feed->head);
    feed->limits = limits;
    feed->bytes = NULL;
    feed->rc = 0;
    feed->given = 0;
}

static void feed_up_to(feed *feed, const char *text, size_t len) {
    if (feed->rc != 0) return;
    free(feed->bytes);
    feed->bytes = malloc(len ? len : 1); /* exact, so that a read beyond it is found */
    memcpy(feed->bytes, text, len);
    feed->given = len;
    feed->rc = rd_http1_parse(&feed->parser, &feed->head, feed->limits, feed->bytes, len);
}

static void feed_end(feed *feed) {
    free(feed->bytes);
    rd_head_clear(&feed->head);
}

static void check_row(const row *row, const rd_head_limits *limits) {
    const int expected = row->rc ? row->rc : (int)row->len;
    feed whole, bytes, halves;

    feed_start(&whole, limits);
    feed_up_to(&whole, row->text, row->len);
    CHECK_SAYS(whole.rc == expected, "whole: %d %s: %.*s", whole.rc, error_name(whole.rc),
               (int)row->len, row->text);
    feed_start(&bytes, limits);
    for (size_t i = 1; i <= row->len; i++) feed_up_to(&bytes, row->text, i);
    CHECK_SAYS(bytes.rc == expected, "by bytes: %d %s: %.*s", bytes.rc, error_name(bytes.rc),
               (int)row->len, row->text);
    if (expected > 0) CHECK(bytes.given == row->len && same_head(&whole.head, &bytes.head));
    for (size_t i = 0; i < row->len; i++) {
        feed_start(&halves, limits);
        feed_up_to(&halves, row->text, i);
        CHECK_SAYS((halves.rc != 0) == (row->rc < 0 && i >= bytes.given),
                   "too early or late at %zu: %.*s", i, (int)row->len, row->text);
        feed_up_to(&halves, row->text, row->len);
        CHECK_SAYS(halves.rc == expected, "cut at %zu: %d: %.*s", i, halves.rc, (int)row->len,
                   row->text);
        if (expected > 0) CHECK(same_head(&whole.head, &halves.head));
        feed_end(&halves);
    }
    feed_end(&bytes);
    feed_end(&whole);
}

/* Bytes after a head do not belong to it: neither another request nor garbage changes the head. */
static void check_followed(const row *row, const rd_head_limits *limits) {
    static const char *const more[] = {"GET / HTTP/1.1\r\n\r\n", "\n\r\n \1\2\3", "\r"};
    char text[1024];
    feed feed;

    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        memcpy(text, row->text, row->len);
        memcpy(text + row->len, more[i], strlen(more[i]));
        feed_start(&feed, limits);
        feed_up_to(&feed, text, row->len + strlen(more[i]));
        CHECK_INT(feed.rc, row->rc ? row->rc : (int)row->len);
        feed_end(&feed);
    }
}

static void check_rows(const row *rows, size_t count, const rd_head_limits *limits) {
    for (size_t i = 0; i < count; i++) {
        check_row(&rows[i], limits);
        check_followed(&rows[i], limits);
    }
}

#define CHECK_ROWS(rows, limits) check_rows((rows), sizeof(rows) / sizeof *(rows), (limits))

static void test_strict(void) {
    CHECK_ROWS(line_rows, &default_limits);
    CHECK_ROWS(target_rows, &default_limits);
    CHECK_ROWS(field_rows, &default_limits);
    CHECK_ROWS(framing_rows, &default_limits);
}

/* RFC 9110 section 2.5: a higher minor version is treated as the highest one that the server knows.
 */
static void test_versions(void) {
    static const struct {
        const char *text;
        unsigned version;
        bool keep_alive;
    } rows[] = {
        {"GET / HTTP/1.0\r\n\r\n", RD_HTTP_1_0, false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", RD_HTTP_1_0, true},
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", RD_HTTP_1_1, true},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", RD_HTTP_1_1, false},
        {"GET / HTTP/1.7\r\nHost: a\r\n\r\n", RD_HTTP_1_1, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        feed feed;
        feed_start(&feed, &default_limits);
        feed_up_to(&feed, rows[i].text, strlen(rows[i].text));
        CHECK_INT(feed.rc, strlen(rows[i].text));
        CHECK_INT(feed.head.version, rows[i].version);
        CHECK_INT(feed.head.keep_alive, rows[i].keep_alive);
        feed_end(&feed);
    }
}

static void test_lenient(void) {
    static const row line_feeds[] = {
        OK("GET / HTTP/1.1\nHost: a\n\n"),
        OK("\nGET / HTTP/1.1\nHost: a\r\nX: b\n\r\n"),
        BAD("GET / HTTP/1.1\nHost: a\rb\n\n", BARE_CR),
        BAD("GET / HTTP/1.1\nHost: a\n b\n\n", FIELD_FOLDED),
    };
    static const row bytes[] = {
        OK(TARGET("/\x80\xff\xc3\xa4\"<>\\^`{|}")),
        BAD(TARGET("/#"), TARGET_BYTE),
        BAD(TARGET("/\0"), TARGET_BYTE),
        BAD(TARGET("/\x7f"), TARGET_BYTE),
    };
    static const row lengths[] = {
        OK(FIELD("Content-Length: 5\r\nContent-Length: 5")),
        OK(FIELD("Content-Length: 5\r\nContent-Length: 05")),
        OK(FIELD("Content-Length: 5, 5")),
        BAD(FIELD("Content-Length: 5\r\nContent-Length: 6"), LENGTH_REPEATED),
        BAD(FIELD("Content-Length: 5, 6"), LENGTH_REPEATED),
        BAD(FIELD("Content-Length: 5,"), LENGTH_INVALID),
        BAD(FIELD("Content-Length: 5\r\nTransfer-Encoding: chunked"), LENGTH_AND_CODING),
    };
    static const row connects[] = {
        OK("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"),
        BAD("CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", TARGET_AUTHORITY),
        BAD(TARGET("a:443"), TARGET_FORM),
    };
    rd_head_limits limits = default_limits;

    limits.lenient_line_feeds = true;
    CHECK_ROWS(line_feeds, &limits);
    limits = default_limits;
    limits.lenient_target_bytes = true;
    CHECK_ROWS(bytes, &limits);
    limits = default_limits;
    limits.lenient_duplicate_length = true;
    CHECK_ROWS(lengths, &limits);
    limits = default_limits;
    limits.allow_connect = true;
    CHECK_ROWS(connects, &limits);
}

static void test_limits(void) {
    static const rd_head_limits limits = {.head_bytes = 60,
                                          .target_bytes = 5,
                                          .header_name_bytes = 6,
                                          .header_value_bytes = 8,
                                          .header_count = 3};
    static const row rows[] = {
        OK("GET /1234 HTTP/1.1\r\nHost: a\r\n\r\n"),
        BAD("GET /12345 HTTP/1.1\r\nHost: a\r\n\r\n", TARGET_TOO_LONG),
        BAD("GET /12345\x01", TARGET_TOO_LONG),
        BAD("GET /1234\x01", TARGET_BYTE),
        OK("GET / HTTP/1.1\r\nHost: a\r\nX23456: \r\n\r\n"),
        BAD("GET / HTTP/1.1\r\nHost: a\r\nX234567: \r\n\r\n", FIELD_NAME_TOO_LONG),
        OK("GET / HTTP/1.1\r\nHost: a\r\nX: 2345678\r\n\r\n"),
        BAD("GET / HTTP/1.1\r\nHost: a\r\nX: 23456789\r\n\r\n", FIELD_VALUE_TOO_LONG),
        BAD("GET / HTTP/1.1\r\nHost: a\r\nX: 23456789\x01", FIELD_VALUE_TOO_LONG),
        BAD("GET / HTTP/1.1\r\nHost: a\r\nX:         \r\n\r\n", FIELD_VALUE_TOO_LONG),
        OK("GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\n\r\n"),
        BAD("GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\nC", FIELD_COUNT),
        BAD("GET / HTTP/1.1\r\nHost: a\r\nA_:\r\nB_:\r\nC", FIELD_COUNT),
        OK("GET / HTTP/1.1\r\nHost: a\r\nX12345:0123456\r\nY12345: 0123456\r\n\r\n"),
        BAD("GET / HTTP/1.1\r\nHost: a\r\nX12345:01234567\r\nY12345: 0123456\r\n\r\n",
            HEAD_TOO_LARGE),
    };

    CHECK_ROWS(rows, &limits);
}

/* Garbage beyond a limit never costs more memory or time than the limit. */
static void test_endless(void) {
    char *text = malloc(200000);
    const row rows[] = {
        {text, 200000, RD_ERR_HEAD_TOO_LARGE},
    };
    size_t len = (size_t)sprintf(text, "GET / HTTP/1.1\r\n");
    feed feed;

    memset(text + len, 'a', 200000 - len);
    for (size_t i = len; i + 1200 < 200000; i += 1200) {
        text[i + 3] = ':';
        memcpy(text + i + 1198, "\r\n", 2);
    }
    feed_start(&feed, &default_limits);
    for (size_t i = 1000; i < 200000; i += 1000) feed_up_to(&feed, rows[0].text, i);
    CHECK_INT(feed.rc, rows[0].rc);
    CHECK_INT(feed.given, 115000);
    feed_end(&feed);
    free(text);
}

static void check_header(const feed *feed, unsigned index, const char *name, const char *value) {
    const rd_header *header = &feed->head.headers[index];
    const rd_slice is_name = rd_header_name(header, feed->bytes);
    const rd_slice is_value = rd_header_value(header, feed->bytes);

    CHECK_BYTES(is_name.ptr, is_name.len, name);
    CHECK_BYTES(is_value.ptr, is_value.len, value);
    CHECK_INT(header->id, rd_header_id(name, strlen(name)));
}

#define PARSE(name, text, limits)                                                                  \
    feed name;                                                                                     \
    feed_start(&name, (limits));                                                                   \
    feed_up_to(&name, (text), strlen(text))

static void test_fields_of_a_head(void) {
    PARSE(feed,
          "\r\nPOST /a?b HTTP/1.1\r\nHost:  x.y:81 \r\nX-Thing:\t a\tb \t\r\nCookie: c\r\n"
          "Content-Length: 007\r\ncookie: d\r\nExpect: 100-continue\r\nEmpty:\r\n\r\n",
          &default_limits);
    const rd_slice host = rd_span_slice(feed.head.host, feed.bytes);
    const rd_slice authority = rd_span_slice(feed.head.authority, feed.bytes);

    CHECK(feed.rc > 0);
    CHECK_INT(feed.head.start, 2);
    CHECK_INT(feed.head.method_id, RD_METHOD_POST);
    CHECK_INT(feed.head.framing, RD_FRAMING_LENGTH);
    CHECK_INT(feed.head.content_length, 7);
    CHECK_INT(feed.head.port, 81);
    CHECK_BYTES(host.ptr, host.len, "x.y");
    CHECK_BYTES(authority.ptr, authority.len, "x.y:81");
    CHECK(feed.head.keep_alive && feed.head.expect_continue && feed.head.repeated);
    CHECK(rd_head_has(&feed.head, RD_HEADER_COOKIE) && !rd_head_has(&feed.head, RD_HEADER_ACCEPT));
    if (!CHECK_INT(feed.head.header_count, 7)) return;
    check_header(&feed, 0, "Host", "x.y:81");
    check_header(&feed, 1, "X-Thing", "a\tb");
    check_header(&feed, 4, "cookie", "d");
    check_header(&feed, 6, "Empty", "");
    feed_end(&feed);
}

static void test_authority_of_an_absolute_target(void) {
    PARSE(feed, "GET http://b:82/x?y HTTP/1.1\r\nHost: a:81\r\n\r\n", &default_limits);
    const rd_slice authority = rd_span_slice(feed.head.authority, feed.bytes);

    CHECK_BYTES(authority.ptr, authority.len, "b:82");
    CHECK_INT(feed.head.port, 82);
    CHECK_INT(feed.head.form, RD_TARGET_ABSOLUTE);
    check_header(&feed, 0, "Host", "a:81");
    feed_end(&feed);
}

static void test_dropped_names(void) {
    static const char text[] = FIELD("X_Forwarded_For: 1\r\nProxy: p\r\nX-Forwarded-For: 2\r\n"
                                     "A_B: 3\r\nContent_Length: 4\r\ncontent-type: t\r\n"
                                     "CONTENT_type: u\r\npro_xy: v");
    rd_head_limits limits = default_limits;

    PARSE(strict, text, &limits);
    CHECK_INT(strict.head.framing, RD_FRAMING_NONE);
    CHECK_INT(strict.head.header_count, 3);
    check_header(&strict, 1, "X-Forwarded-For", "2");
    feed_end(&strict);

    limits.allow_underscore = true;
    PARSE(allowed, text, &limits);
    CHECK_INT(allowed.head.framing, RD_FRAMING_NONE);
    if (!CHECK_INT(allowed.head.header_count, 5)) return;
    check_header(&allowed, 1, "X-Forwarded-For", "2");
    check_header(&allowed, 2, "A_B", "3");
    check_header(&allowed, 3, "content-type", "t");
    check_header(&allowed, 4, "pro_xy", "v");
    feed_end(&allowed);
}

/* A hundred headers in the growing array, with every cut. */
static void test_many_headers(void) {
    char text[2048];
    size_t len = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\n");

    for (int i = 0; i < 100; i++) len += (size_t)sprintf(text + len, "X-%d: %d\r\n", i, i);
    len += (size_t)sprintf(text + len, "\r\n");
    check_row(&(row){text, len, 0}, &default_limits);
    for (int i = 100; i < 130; i++)
        len += (size_t)sprintf(text + len - 2, "X-%d: %d\r\n\r\n", i, i) - 2;
    check_row(&(row){text, len, RD_ERR_FIELD_COUNT}, &default_limits);
}

static void test_idle(void) {
    rd_http1_parser parser;
    rd_head head;

    rd_http1_parser_init(&parser);
    rd_head_init(&head);
    CHECK(rd_http1_parser_is_idle(&parser));
    CHECK_INT(rd_http1_parse(&parser, &head, &default_limits, "\r\n", 2), 0);
    CHECK(rd_http1_parser_is_idle(&parser));
    CHECK_INT(rd_http1_parse(&parser, &head, &default_limits, "\r\nG", 3), 0);
    CHECK(!rd_http1_parser_is_idle(&parser));
    CHECK(sizeof parser <= 40);
}

int main(void) {
    test_strict();
    test_versions();
    test_lenient();
    test_limits();
    test_endless();
    test_fields_of_a_head();
    test_authority_of_an_absolute_target();
    test_dropped_names();
    test_many_headers();
    test_idle();
    return check_summary();
}
