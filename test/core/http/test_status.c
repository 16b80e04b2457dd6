/* SPDX-License-Identifier: MIT
 *
 * Status lines, registered or not, each complete for the wire; which of them have a body.
 */
#include "base/error.h"
#include "check.h"
#include "error_name.h"
#include "http/status.h"

static const struct {
    int status;
    const char *line;
} rows[] = {
    {100, "HTTP/1.1 100 Continue\r\n"},
    {103, "HTTP/1.1 103 Early Hints\r\n"},
    {200, "HTTP/1.1 200 OK\r\n"},
    {203, "HTTP/1.1 203 Non-Authoritative Information\r\n"},
    {304, "HTTP/1.1 304 Not Modified\r\n"},
    {306, "HTTP/1.1 306 \r\n"},
    {413, "HTTP/1.1 413 Content Too Large\r\n"},
    {418, "HTTP/1.1 418 \r\n"},
    {507, "HTTP/1.1 507 Insufficient Storage\r\n"},
    {599, "HTTP/1.1 599 \r\n"},
    {999, "HTTP/1.1 999 \r\n"},
};

static void test_lines(void) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char room[64];
        rd_slice line = rd_status_line(rows[i].status, room);
        CHECK_BYTES(line.ptr, line.len, rows[i].line);
    }
}

/* RFC 9112 section 4: three digits, and the blank even without a reason. */
static void test_every_code(void) {
    for (int status = 100; status < 1000; status++) {
        char room[64], begin[32];
        rd_slice line = rd_status_line(status, room);
        snprintf(begin, sizeof(begin), "HTTP/1.1 %d ", status);
        CHECK_SAYS(line.len >= 15 && line.len < 64 && memcmp(line.ptr, begin, 13) == 0, "%d",
                   status);
        CHECK_SAYS(memcmp(line.ptr + line.len - 2, "\r\n", 2) == 0, "%d", status);
    }
}

static void test_errors_answer_with_registered_codes(void) {
    for (int code = -1; code >= -RD_ERROR_COUNT; code--) {
        int status = rd_error_status(code);
        char room[64];
        if (rd_error_class(code) != RD_ERROR_PEER) continue;
        rd_slice line = rd_status_line(status, room);
        CHECK_SAYS(line.ptr != room && line.len > 15, "%s", error_name(code));
        CHECK_SAYS(rd_status_has_body(status), "%s", error_name(code));
    }
}

static void test_has_body(void) {
    for (int status = 100; status < 600; status++) {
        bool expected = status >= 200 && status != 204 && status != 304;
        CHECK_INT(rd_status_has_body(status), expected);
    }
}

int main(void) {
    test_lines();
    test_every_code();
    test_errors_answer_with_registered_codes();
    test_has_body();
    return check_summary();
}
