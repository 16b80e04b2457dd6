/* SPDX-License-Identifier: MIT
 *
 * protocol/http1_reply: answers of another worker and what is refused in them, each whole, byte by
 * byte, and cut in two at each offset.
 */
#include "check.h"
#include "error_name.h"
#include "read_reply.h"

typedef struct row {
    const char *text;
    size_t len;
    bool to_head;
    int rc;
    const char *expected;
    const char *rest; /* behind it */
} row;

#define OK(text, expected)                                                                         \
    { (text), sizeof(text) - 1, false, 1, (expected), "" }
#define OK_TO_HEAD(text, expected)                                                                 \
    { (text), sizeof(text) - 1, true, 1, (expected), "" }
#define OK_REST(text, expected, rest)                                                              \
    { (text), sizeof(text) - 1, false, 1, (expected), (rest) }
#define MORE(text)                                                                                 \
    { (text), sizeof(text) - 1, false, 0, NULL, NULL }
#define BAD(text)                                                                                  \
    { (text), sizeof(text) - 1, false, RD_ERR_REPLY_INVALID, NULL, NULL }
#define LINE "HTTP/1.1 200 OK\r\n"

static const row rows[] = {
    /* bodies */
    OK(LINE "content-length: 5\r\n\r\nhello", "200 length=5\nhello"),
    OK(LINE "content-length: 0\r\n\r\n", "200 none=0\n"),
    OK(LINE "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
       "200 chunked\nhello!"),
    OK(LINE "transfer-encoding: chunked\r\n\r\n0\r\n\r\n", "200 chunked\n"),
    OK("HTTP/1.1 204 No Content\r\n\r\n", "204 none\n"),
    OK("HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n", "304 etag=\"a\" none\n"),
    OK_TO_HEAD(LINE "content-length: 5\r\n\r\n", "200 none=5\n"),
    OK_TO_HEAD(LINE "\r\n", "200 none\n"),
    OK_REST(LINE "\r\nbytes", "200 raw\n", "bytes"),
    OK_REST(LINE "content-length: 2\r\n\r\nokHTTP", "200 length=2\nok", "HTTP"),
    OK_REST(LINE "transfer-encoding: chunked\r\n\r\n0\r\n\r\nHTTP", "200 chunked\n", "HTTP"),
    OK_REST("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\r\nraw",
            "101 connection=upgrade raw\n", "raw"),
    OK_REST(RD_REPLY_TAKEN "HTTP/1.1 200", "100 none\n", "HTTP/1.1 200"),
    /* heads before it */
    OK("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" LINE "content-length: 1\r\n\r\na",
       "103 link=</a>\n200 length=1\na"),
    OK("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" LINE
       "content-length: 0\r\n\r\n",
       "102\n103\n200 none=0\n"),
    /* fields */
    OK(LINE "a: b\r\nA-B_c: d: e\tf \x80 \r\nempty: \r\ncontent-length: 0\r\n\r\n",
       "200 a=b A-B_c=d: e\tf \x80  empty= none=0\n"),
    OK(LINE "set-cookie: a\r\nset-cookie: b\r\ncontent-length: 0\r\n\r\n",
       "200 set-cookie=a set-cookie=b none=0\n"),
    OK(LINE "content-length: 0\r\nconnection: close\r\ndate: now\r\n\r\n",
       "200 date=now date close none=0\n"),
    OK(LINE "content-length: 0\r\nconnection: keep-alive\r\n\r\n", "200 none=0\n"),
    OK(LINE "connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 0\r\n\r\n",
       "200 connection=upgrade upgrade=h2c none=0\n"),
    OK_REST(LINE "connection: close\r\n\r\n", "200 connection=close close raw\n", ""),
    /* status lines */
    OK("HTTP/1.1 599 \r\ncontent-length: 0\r\n\r\n", "599 none=0\n"),
    BAD("HTTP/1.0 200 OK\r\n\r\n"),
    BAD("HTTP/1.1 20 OK\r\n\r\n"),
    BAD("HTTP/1.1 2x0 OK\r\n\r\n"),
    BAD("HTTP/1.1 200\r\n\r\n"),
    BAD("HTTP/1.1 2000 OK\r\n\r\n"),
    BAD("HTTP/1.1 099 OK\r\n\r\n"),
    BAD("HTTP/1.1  200 OK\r\n\r\n"),
    BAD("http/1.1 200 OK\r\n\r\n"),
    BAD("\r\nHTTP/1.1 200 OK\r\n\r\n"),
    BAD("\x16\x03\x01"),
    BAD("HTTP/1.1 200 OK\n\n"),
    /* lines */
    BAD(LINE "a: b\n\r\n"),
    BAD(LINE "a: b\r\r\n\r\n"),
    BAD(LINE "a:b\r\n\r\n"),
    BAD(LINE "a\r\n\r\n"),
    BAD(LINE ": b\r\n\r\n"),
    BAD(LINE "a : b\r\n\r\n"),
    BAD(LINE " a: b\r\n\r\n"),
    BAD(LINE "a:\r\n\r\n"),
    BAD(LINE "a: b\0c\r\n\r\n"),
    BAD(LINE "\n\r\n"),
    /* framing */
    BAD(LINE "content-length: 5\r\ncontent-length: 5\r\n\r\n"),
    BAD(LINE "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"),
    BAD(LINE "content-length: \r\n\r\n"),
    BAD(LINE "content-length: +5\r\n\r\n"),
    BAD(LINE "content-length: 5 \r\n\r\n"),
    BAD(LINE "content-length: 1234567890123456789\r\n\r\n"),
    BAD(LINE "transfer-encoding: gzip, chunked\r\n\r\n"),
    BAD(LINE "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n"),
    BAD("HTTP/1.1 103 Early Hints\r\ncontent-length: 0\r\n\r\n"),
    BAD("HTTP/1.1 100 Continue\r\ntransfer-encoding: chunked\r\n\r\n"),
    BAD(LINE "transfer-encoding: chunked\r\n\r\n5;a\r\nhello"),
    BAD(LINE "transfer-encoding: chunked\r\n\r\n5\r\nhelloo"),
    BAD(LINE "transfer-encoding: chunked\r\n\r\n0\r\na: b\r\n\r\n"),
    BAD(LINE "transfer-encoding: chunked\r\n\r\n00000000000000005\r\nhello"),
    BAD("HTTP/1.1 103 Early Hints\r\n\r\nfile"),
    /* not yet complete */
    MORE("HTTP/1.1 200 OK\r"),
    MORE(LINE "content-length: 5\r\n\r"),
    MORE(LINE "content-length: 5\r\n\r\nhell"),
    MORE(LINE "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r"),
    MORE("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200"),
};

static void check_cut(const row *row, size_t first, size_t step) {
    read_reply out = read_reply_in_pieces(row->text, row->len, row->to_head, first, step);
    CHECK_SAYS(out.rc == row->rc, "\"%s\" from %zu by %zu: %s", row->text, first, step,
               error_name(out.rc));
    if (row->expected != NULL) CHECK_STR(out.text, row->expected);
    if (row->rest != NULL) CHECK_INT(row->len - out.used, strlen(row->rest));
    free(out.text);
}

static void test_rows(void) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_cut(&rows[i], rows[i].len, 1);
        check_cut(&rows[i], 1, 1);
        for (size_t cut = 1; cut < rows[i].len; cut++) check_cut(&rows[i], cut, rows[i].len);
    }
}

/* Every answer that is cut off says so by not being complete. */
static void test_prefixes(void) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].rc != 1) continue;
        const size_t len = rows[i].len - strlen(rows[i].rest);
        for (size_t cut = 0; cut < len; cut++) {
            read_reply out = read_reply_in_pieces(rows[i].text, cut, rows[i].to_head, cut, 1);
            CHECK_INT(out.rc, 0);
            free(out.text);
        }
    }
}

static int read_head(const char *text, size_t len) {
    rd_http1_reply reply;
    rd_http1_reply_init(&reply, false);
    return rd_http1_reply_head(&reply, text, len);
}

static void test_limits(void) {
    const size_t most = RD_REPLY_HEAD_MAX;
    char *text = malloc(most + 1);
    const size_t begin = (size_t)sprintf(text, LINE "content-length: 0\r\na: ");
    memset(text + begin, 'x', most + 1 - begin);
    memcpy(text + most - 4, "\r\n\r\n", 4);
    CHECK_INT(read_head(text, most), most);
    memcpy(text + most - 4, "xxxx\r", 5);
    CHECK_INT(read_head(text, most - 1), 0);
    CHECK_INT(read_head(text, most), RD_ERR_REPLY_TOO_LARGE);
    size_t len = (size_t)sprintf(text, LINE);
    for (int i = 0; i < RD_REPLY_FIELDS_MAX; i++) len += (size_t)sprintf(text + len, "a: b\r\n");
    sprintf(text + len, "\r\n");
    CHECK_INT(read_head(text, len + 2), len + 2);
    sprintf(text + len, "a: b\r\n");
    CHECK_INT(read_head(text, len + 6), RD_ERR_REPLY_INVALID);
    free(text);
}

/* An application may stream single bytes for as long as it likes. */
static void test_small_chunks(void) {
    enum { COUNT = 200000 };
    static const char part[] = "1\r\na\r\n";
    static const char head[] = LINE "transfer-encoding: chunked\r\n\r\n";
    rd_http1_reply reply;
    rd_slice data;
    size_t got = 0, used;
    rd_http1_reply_init(&reply, false);
    CHECK(rd_http1_reply_head(&reply, head, sizeof(head) - 1) > 0);
    for (int i = 0; i < COUNT; i++) {
        for (size_t at = 0; at < sizeof(part) - 1; at += used) {
            if (rd_http1_reply_body(&reply, part + at, sizeof(part) - 1 - at, &used, &data) < 0) {
                CHECK(false);
                return;
            }
            got += data.len;
        }
    }
    CHECK_INT(got, COUNT);
}

int main(void) {
    test_rows();
    test_prefixes();
    test_limits();
    test_small_chunks();
    return check_summary();
}
