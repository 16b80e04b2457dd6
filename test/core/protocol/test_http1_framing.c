/* SPDX-License-Identifier: MIT
 *
 * protocol/http1_framing: what accepted requests mean. What is refused stands in
 * test_http1_parser.c.
 */
#include "check.h"
#include "default_limits.h"

#include "protocol/http1_parser.h"

enum { KEEP = 1, CONTINUE = 2 };

typedef struct row {
    const char *method, *version, *fields;
    int framing;
    uint64_t length;
    unsigned flags;
} row;

static const row rows[] = {
    /* persistence (RFC 9112, section 9.3) */
    {"GET", "1.1", "", RD_FRAMING_NONE, 0, KEEP},
    {"GET", "1.1", "Connection: close\r\n", RD_FRAMING_NONE, 0, 0},
    {"GET", "1.1", "Connection: foo, CLOSE ,bar\r\n", RD_FRAMING_NONE, 0, 0},
    {"GET", "1.1", "Connection: keep-alive\r\nConnection: close\r\n", RD_FRAMING_NONE, 0, 0},
    {"GET", "1.1", "Connection: closed, xclose, clos\r\n", RD_FRAMING_NONE, 0, KEEP},
    {"GET", "1.1", "Connection:\r\n", RD_FRAMING_NONE, 0, KEEP},
    {"GET", "1.1", "Connection: ,,\r\n", RD_FRAMING_NONE, 0, KEEP},
    {"GET", "1.2", "", RD_FRAMING_NONE, 0, KEEP},
    {"GET", "1.0", "", RD_FRAMING_NONE, 0, 0},
    {"GET", "1.0", "Connection: Keep-Alive\r\n", RD_FRAMING_NONE, 0, KEEP},
    {"GET", "1.0", "Connection: keep-alive, close\r\n", RD_FRAMING_NONE, 0, 0},
    {"GET", "1.0", "Keep-Alive: timeout=5\r\n", RD_FRAMING_NONE, 0, 0},
    {"GET", "1.1", "Proxy-Connection: close\r\n", RD_FRAMING_NONE, 0, KEEP},
    /* bodies */
    {"POST", "1.1", "Content-Length: 010\r\n", RD_FRAMING_LENGTH, 10, KEEP},
    {"POST", "1.1", "Content-Length: 0\r\n", RD_FRAMING_LENGTH, 0, KEEP},
    {"POST", "1.0", "Content-Length: 3\r\n", RD_FRAMING_LENGTH, 3, 0},
    {"POST", "1.1", "Content-Length: 9223372036854775807\r\n", RD_FRAMING_LENGTH, INT64_MAX, KEEP},
    {"POST", "1.1", "Transfer-Encoding: CHUNKED\r\n", RD_FRAMING_CHUNKED, 0, KEEP},
    {"GET", "1.1", "Content-Length: 5\r\n", RD_FRAMING_LENGTH, 5, KEEP},
    {"HEAD", "1.1", "Content-Length: 5\r\n", RD_FRAMING_LENGTH, 5, KEEP},
    {"DELETE", "1.1", "Transfer-Encoding: chunked\r\n", RD_FRAMING_CHUNKED, 0, KEEP},
    {"POST", "1.1", "", RD_FRAMING_NONE, 0, KEEP},
    {"POST", "1.1", "Content_Length: 5\r\nTransfer_Encoding: chunked\r\n", RD_FRAMING_NONE, 0,
     KEEP},
    /* expectations (RFC 9110, section 10.1.1) */
    {"PUT", "1.1", "Expect: 100-continue\r\nContent-Length: 5\r\n", RD_FRAMING_LENGTH, 5,
     KEEP | CONTINUE},
    {"PUT", "1.1", "Expect: 100-CONTINUE\r\nTransfer-Encoding: chunked\r\n", RD_FRAMING_CHUNKED, 0,
     KEEP | CONTINUE},
    {"PUT", "1.1", "Expect: 100-continue\r\nContent-Length: 0\r\n", RD_FRAMING_LENGTH, 0, KEEP},
    {"PUT", "1.1", "Expect: 100-continue\r\n", RD_FRAMING_NONE, 0, KEEP},
    {"PUT", "1.0", "Expect: 100-continue\r\nContent-Length: 5\r\n", RD_FRAMING_LENGTH, 5, 0},
};

static void check_row(const row *row) {
    rd_http1_parser parser;
    rd_head head;
    char text[512];
    int len = snprintf(text, sizeof text, "%s / HTTP/%s\r\nHost: a\r\n%s\r\n", row->method,
                       row->version, row->fields);

    rd_http1_parser_init(&parser);
    rd_head_init(&head);
    CHECK_INT(rd_http1_parse(&parser, &head, &default_limits, text, (size_t)len), len);
    CHECK_SAYS(head.framing == row->framing, "%d: %s", head.framing, text);
    CHECK_SAYS(head.content_length == row->length, "%" PRIu64 ": %s", head.content_length, text);
    CHECK_SAYS(head.keep_alive == !!(row->flags & KEEP), "%d: %s", head.keep_alive, text);
    CHECK_SAYS(head.expect_continue == !!(row->flags & CONTINUE), "%d: %s", head.expect_continue,
               text);
    rd_head_clear(&head);
}

int main(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
    return check_summary();
}
