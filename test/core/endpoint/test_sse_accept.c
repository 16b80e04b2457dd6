/* SPDX-License-Identifier: MIT
 *
 * endpoint/sse_accept: which Accept fields list a stream of events.
 */
#include "check.h"
#include "default_limits.h"

#include "protocol/http1_parser.h"
#include "endpoint/sse_accept.h"

typedef struct row {
    bool accepted;
    const char *fields;
} row;

#define ES "text/event-stream"

static const row rows[] = {
    {true, "Accept: " ES "\r\n"},
    {true, "accept:" ES "\r\n"},
    {true, "Accept: Text/Event-STREAM\r\n"},
    {true, "Accept: text/html, " ES "\r\n"},
    {true, "Accept: text/html ,\t" ES "\t, */*\r\n"},
    {true, "Accept: ,," ES ",\r\n"},
    {true, "Accept: */*\r\nAccept: " ES "\r\n"},
    {true, "Accept: " ES "\r\nX-Other: a\r\nAccept: */*\r\n"},
    {true, "Accept: " ES ";q=1\r\n"},
    {true, "Accept: " ES " ; q=0.001\r\n"},
    {true, "Accept: " ES ";charset=utf-8;q=0.5\r\n"},
    {true, "Accept: " ES ";x=\"q=0;q=0,\\\"\"\r\n"},
    {true, "Accept: text/html;x=\"a,b\", " ES "\r\n"},
    {true, "Accept: text/html;x=\"a\\\",b\", " ES "\r\n"},
    {true, "Accept: " ES ";q=0, " ES "\r\n"},
    {true, "Accept: " ES ";\r\n"},
    {true, "Accept: " ES ";quality=0\r\n"},
    {false, ""},
    {false, "Accept:\r\n"},
    {false, "Accept: */*\r\n"},
    {false, "Accept: text/*\r\n"},
    {false,
     "Accept: text/html,application/xhtml+xml,image/avif,*/*;q=0.8,a/signed-exchange;v=b3\r\n"},
    {false, "Accept: text/event-streams\r\n"},
    {false, "Accept: xtext/event-stream\r\n"},
    {false, "Accept: text/event stream-s\r\n"},
    {false, "Accept: " ES "/x\r\n"},
    {false, "Accept: " ES " x\r\n"},
    {false, "Accept: a-s; x=" ES "\r\n"},
    {false, "Accept: text/html;x=\", " ES "\"\r\n"},
    {false, "Accept: text/html;x=\", " ES "\\\r\n"},
    {false, "Accept: " ES ";q=0\r\n"},
    {false, "Accept: " ES ";Q=0.\r\n"},
    {false, "Accept: " ES "; q=0.000\r\n"},
    {false, "Accept: " ES ";a=b;q=0.0;c=d\r\n"},
    {false, "X-Accept: " ES "\r\n"},
    {false, "Accept: a-\r\n"},
};

static void check_row(const row *row) {
    rd_http1_parser parser;
    rd_head head;
    char text[1024];
    const size_t len =
        (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", row->fields);
    rd_http1_parser_init(&parser);
    rd_head_init(&head);
    if (CHECK_INT(rd_http1_parse(&parser, &head, &default_limits, text, len), len)) {
        CHECK_SAYS(rd_sse_is_accepted(&head, text) == row->accepted, "%s", row->fields);
    }
    rd_head_clear(&head);
}

int main(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
    return check_summary();
}
