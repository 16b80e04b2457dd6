/* SPDX-License-Identifier: MIT
 *
 * http2/http2_head: fields, one in each line, and the text of the head that they make or the rule
 * that they break.
 */
#include "check.h"
#include "default_limits.h"
#include "error_name.h"

#include "http2/http2_head.h"

typedef struct row {
    const char *fields; /* name, blank, value */
    int code;
    const char *text;
} row;

#define OK(fields, text)                                                                           \
    { fields, 0, text }
#define BAD(fields, error)                                                                         \
    { fields, RD_ERR_##error, NULL }
#define P ":method GET\n:scheme http\n:path /p\n:authority a\n"

static const row rows[] = {
    OK(P, "GET /p HTTP/1.1\r\nhost: a\r\n\r\n"),
    OK(P "x y\n", "GET /p HTTP/1.1\r\nhost: a\r\nx: y\r\n\r\n"),
    OK(P "x\n", "GET /p HTTP/1.1\r\nhost: a\r\nx: \r\n\r\n"),
    OK(P "host a\n", "GET /p HTTP/1.1\r\nhost: a\r\n\r\n"),
    OK(":method GET\n:scheme https\n:path /\nhost b\n", "GET / HTTP/1.1\r\nhost: b\r\n\r\n"),
    OK(P "cookie \nx y\n", "GET /p HTTP/1.1\r\nhost: a\r\nx: y\r\ncookie: \r\n\r\n"),
    OK(P "cookie \ncookie b\n", "GET /p HTTP/1.1\r\nhost: a\r\ncookie: b\r\n\r\n"),
    OK(P "cookie a\nx y\ncookie b\n", "GET /p HTTP/1.1\r\nhost: a\r\nx: y\r\ncookie: a; b\r\n\r\n"),
    OK(":method OPTIONS\n:scheme http\n:path *\n:authority a\n",
       "OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n"),
    OK(":method CONNECT\n:authority a:80\n", "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n"),
    OK(":method CONNECT\n:protocol websocket\n:scheme http\n:path /p\n:authority a\nx y\n",
       "GET /p HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
       "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nx: y\r\n\r\n"),
    BAD(":method CONNECT\n:protocol tcp\n:scheme http\n:path /p\n:authority a\n", HTTP2_PROTOCOL),
    BAD(":method CONNECT\n:protocol websocket\n:authority a\n", HTTP2_HEAD),
    BAD(":method CONNECT\n:scheme http\n:authority a\n", HTTP2_HEAD),
    BAD(":protocol websocket\n" P, HTTP2_HEAD),
    BAD(":scheme http\n:path /p\n:authority a\n", HTTP2_HEAD),
    BAD(":method GET\n:path /p\n:authority a\n", HTTP2_HEAD),
    BAD(":method GET\n:scheme ftp\n:path /p\n:authority a\n", HTTP2_HEAD),
    BAD(":method GET\n:scheme http\n:authority a\n", HTTP2_HEAD),
    BAD(":method GET\n:scheme http\n:path p\n:authority a\n", HTTP2_HEAD),
    BAD(":method GET\n:scheme http\n:path /a b\n:authority a\n", HTTP2_HEAD),
    BAD(":method G\tT\n:scheme http\n:path /\n:authority a\n", HTTP2_HEAD),
    BAD(":method GET\n:scheme http\n:path /p\n", HOST_MISSING),
    BAD(P "host b\n", HTTP2_HEAD),
    BAD(P "host a\nhost a\n", HOST_REPEATED),
    BAD(P ":method GET\n", HTTP2_HEAD),
    BAD(P ":color red\n", HTTP2_HEAD),
    BAD(P "X y\n", HTTP2_HEAD),
    BAD(P "x:y z\n", HTTP2_HEAD),
    BAD(P "x y\rz\n", HTTP2_HEAD),
    BAD(P "x  y\n", HTTP2_HEAD),
    BAD(P "x y \n", HTTP2_HEAD),
    BAD(P " y\n", HTTP2_HEAD),
};

static rd_head_limits limits;
static rd_buffer spare[RD_HTTP2_HEAD_BUFFERS];

static void add_lines(rd_http2_head *head, const char *text) {
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        const size_t len = (size_t)(end - text);
        const char *blank = memchr(text, ' ', len);
        const size_t name = blank != NULL ? (size_t)(blank - text) : len;
        const rd_slice value =
            blank != NULL ? rd_slice_of(blank + 1, len - name - 1) : rd_slice_of(end, 0);
        rd_http2_head_add(head, &limits, rd_slice_of(text, name), value);
    }
}

static void test_rows(void) {
    rd_http2_head head = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rd_slice text = RD_SLICE("");
        rd_http2_head_begin(&head, spare);
        add_lines(&head, rows[i].fields);
        const int code = rd_http2_head_finish(&head, &text);
        CHECK_SAYS(code == rows[i].code, "%s: %s", rows[i].fields, error_name(code));
        if (code == 0 && rows[i].text != NULL) CHECK_BYTES(text.ptr, text.len, rows[i].text);
        if (i % 3 > 0) rd_http2_head_end(&head, spare);
    }
    rd_http2_head_end(&head, spare);
}

/* Each field counts 32 bytes more than it has. */
static void test_sizes(void) {
    rd_http2_head head = {0};
    rd_slice text;
    limits.head_bytes = 4 * 32 + 10 + 11 + 7 + 11; /* the sum of P */
    rd_http2_head_begin(&head, spare);
    add_lines(&head, P);
    CHECK_INT(rd_http2_head_finish(&head, &text), 0);
    limits.head_bytes--;
    rd_http2_head_begin(&head, spare);
    add_lines(&head, P "x y\n");
    CHECK_INT(rd_http2_head_finish(&head, &text), RD_ERR_HEAD_TOO_LARGE);
    CHECK(head.text.capacity == 0); /* nothing is kept of what comes behind the error */
    limits = default_limits;
    limits.header_count = 2;
    rd_http2_head_begin(&head, spare);
    add_lines(&head, P "a b\na b\n");
    CHECK_INT(rd_http2_head_finish(&head, &text), 0);
    rd_http2_head_begin(&head, spare);
    add_lines(&head, P "a b\na b\na b\n");
    CHECK_INT(rd_http2_head_finish(&head, &text), RD_ERR_FIELD_COUNT);
    rd_http2_head_clear(&head);
}

/* Buffers of a head serve the next one, unless they have grown. */
static void test_spare_buffers(void) {
    static char value[5000];
    rd_http2_head head = {0};
    rd_slice text;
    rd_http2_head_begin(&head, spare);
    add_lines(&head, P "a b\ncookie c\n");
    const char *first = head.text.bytes;
    CHECK_INT(rd_http2_head_finish(&head, &text), 0);
    rd_http2_head_end(&head, spare);
    CHECK_INT(rd_http2_head_memory(&head), 0);
    rd_http2_head_begin(&head, spare);
    add_lines(&head, P "d e\n");
    CHECK(head.text.bytes == first);
    CHECK_INT(rd_http2_head_finish(&head, &text), 0);
    const size_t len = strlen("d: e\r\n\r\n"); /* and nothing of the one before */
    CHECK_BYTES(text.ptr + text.len - len, len, "d: e\r\n\r\n");
    CHECK(memmem(text.ptr, text.len, "a: b", 4) == NULL);
    memset(value, 'a', sizeof(value));
    rd_http2_head_begin(&head, spare);
    rd_http2_head_add(&head, &limits, RD_SLICE("x"), rd_slice_of(value, sizeof(value)));
    rd_http2_head_end(&head, spare);
    CHECK_INT(rd_http2_head_memory(&head), 0);
    for (size_t i = 0; i < RD_HTTP2_HEAD_BUFFERS; i++) {
        CHECK(spare[i].capacity <= 4096);
        CHECK_INT(rd_buffer_len(&spare[i]), 0);
    }
}

static void test_urgency(void) {
    static const struct {
        const char *priority;
        uint8_t urgency;
    } rows[] = {
        {"", 3},        {"u=0", 0},   {"u=7", 7},    {"u=8", 3},      {"u=-1", 3},
        {"u=10", 3},    {"i", 3},     {"i, u=1", 1}, {"u=5,i", 5},    {"u=5;a=b, i", 5},
        {"u=5 , i", 5}, {"\tu=2", 2}, {"au=1", 3},   {"u=1, u=2", 2}, {"u", 3},
        {",,", 3},      {"U=1", 3},   {"u=", 3},     {"x=(u=1)", 3},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text = rows[i].priority;
        const uint8_t urgency = rd_http2_urgency(rd_slice_of(text, strlen(text)));
        CHECK_SAYS(urgency == rows[i].urgency, "\"%s\": %u", text, urgency);
    }
}

int main(void) {
    limits = default_limits;
    test_rows();
    test_sizes();
    test_spare_buffers();
    test_urgency();
    return check_summary();
}
