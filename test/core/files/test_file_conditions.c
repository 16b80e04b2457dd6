/* SPDX-License-Identifier: MIT
 *
 * files/file_conditions: what requests with conditions are answered, as tables; ETags.
 */
#include "check.h"
#include "default_limits.h"
#include "files/file_conditions.h"
#include "protocol/http1_parser.h"

#define THEN   "Sun, 06 Nov 1994 08:49:37 GMT" /* when the file was modified */
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER  "Sun, 06 Nov 1994 08:49:38 GMT"

enum { SENT = RD_CONDITION_NONE, UNMODIFIED = RD_CONDITION_NOT_MODIFIED };
enum { FAILED = RD_CONDITION_FAILED };

/* The file of most rows, and others. */
static const rd_validators file = {RD_SLICE_INIT("\"5-a\""), 784111777};
static const rd_validators weak_file = {RD_SLICE_INIT("W/\"5-a\""), 784111777};
static const rd_validators odd_file = {RD_SLICE_INIT("\"a,b\\\""), 784111777};
static const rd_validators untagged_file = {{NULL, 0}, 784111777};
static const rd_validators undated_file = {RD_SLICE_INIT("\"5-a\""), -1};

typedef struct row {
    const rd_validators *validators;
    int answer;
    const char *fields;
} row;

static const row rows[] = {
    {&file, SENT, ""},
    /* If-None-Match */
    {&file, UNMODIFIED, "If-None-Match: \"5-a\"\r\n"},
    {&file, UNMODIFIED, "If-None-Match: W/\"5-a\"\r\n"},
    {&file, UNMODIFIED, "If-None-Match: *\r\n"},
    {&file, UNMODIFIED, "If-None-Match: \"x\", \"5-a\"\r\n"},
    {&file, UNMODIFIED, "If-None-Match: \"x\",W/\"y\" ,\t\"5-a\",\"z\"\r\n"},
    {&file, UNMODIFIED, "If-None-Match: ,, \"5-a\" ,\r\n"},
    {&file, UNMODIFIED, "If-None-Match: \"x\"\r\nIf-None-Match: \"5-a\"\r\n"},
    {&file, UNMODIFIED, "If-None-Match: \"x\\\", \"5-a\"\r\n"}, /* no escape */
    {&file, SENT, "If-None-Match: \"5-A\"\r\n"},
    {&file, SENT, "If-None-Match: \"5-a-gz\"\r\n"},
    {&file, SENT, "If-None-Match: \"\"\r\n"},
    {&file, SENT, "If-None-Match:\r\n"},
    {&file, SENT, "If-None-Match: ,\r\n"},
    {&file, SENT, "If-None-Match: 5-a\r\n"},
    {&file, SENT, "If-None-Match: \"5-a\r\n"},
    {&file, SENT, "If-None-Match: 5-a\"\r\n"},
    {&file, SENT, "If-None-Match: \"\r\n"},
    {&file, SENT, "If-None-Match: W/\r\n"},
    {&file, SENT, "If-None-Match: W/\"\r\n"},
    {&file, SENT, "If-None-Match: W\r\n"},
    {&file, SENT, "If-None-Match: w/\"5-a\"\r\n"},
    {&file, SENT, "If-None-Match: W/ \"5-a\"\r\n"},
    {&file, SENT, "If-None-Match: W/W/\"5-a\"\r\n"},
    {&file, SENT, "If-None-Match: \"x, \"5-a\"\r\n"},
    {&file, SENT, "If-None-Match: \"5-a\"x\r\n"},
    {&file, SENT, "If-None-Match: \"5-a\" \"x\"\r\n"},
    {&file, SENT, "If-None-Match: x, \"5-a\"\r\n"},
    {&file, SENT, "If-None-Match: *, \"x\"\r\n"},
    {&file, SENT, "If-None-Match: **\r\n"},
    {&weak_file, UNMODIFIED, "If-None-Match: \"5-a\"\r\n"},
    {&weak_file, UNMODIFIED, "If-None-Match: W/\"5-a\"\r\n"},
    {&odd_file, UNMODIFIED, "If-None-Match: \"x\", \"a,b\\\"\r\n"},
    {&odd_file, SENT, "If-None-Match: \"a\", \"b\\\"\r\n"},
    {&untagged_file, SENT, "If-None-Match: \"5-a\", \"\"\r\n"},
    {&untagged_file, UNMODIFIED, "If-None-Match: *\r\n"},
    /* If-Modified-Since */
    {&file, UNMODIFIED, "If-Modified-Since: " THEN "\r\n"},
    {&file, UNMODIFIED, "If-Modified-Since: " AFTER "\r\n"},
    {&file, UNMODIFIED, "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n"},
    {&file, UNMODIFIED, "If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n"},
    {&file, UNMODIFIED, "If-Modified-Since: Fri, 31 Dec 9999 23:59:59 GMT\r\n"},
    {&file, SENT, "If-Modified-Since: " BEFORE "\r\n"},
    {&file, SENT, "If-Modified-Since: yesterday\r\n"},
    {&file, SENT, "If-Modified-Since: " THEN "; length=5\r\n"},
    {&file, SENT, "If-Modified-Since:\r\n"},
    {&file, SENT, "If-Modified-Since: " THEN "\r\nIf-Modified-Since: " THEN "\r\n"},
    {&undated_file, SENT, "If-Modified-Since: " AFTER "\r\n"},
    {&undated_file, SENT, "If-Modified-Since: yesterday\r\n"},
    /* If-None-Match wins over it, either way */
    {&file, SENT, "If-None-Match: \"x\"\r\nIf-Modified-Since: " THEN "\r\n"},
    {&file, SENT, "If-Modified-Since: " THEN "\r\nIf-None-Match: x\r\n"},
    {&file, UNMODIFIED, "If-None-Match: \"5-a\"\r\nIf-Modified-Since: " BEFORE "\r\n"},
    /* If-Match */
    {&file, SENT, "If-Match: \"5-a\"\r\n"},
    {&file, SENT, "If-Match: *\r\n"},
    {&file, SENT, "If-Match: \"x\", W/\"5-a\", \"5-a\"\r\n"},
    {&file, SENT, "If-Match: \"x\"\r\nIf-Match: \"5-a\"\r\n"},
    {&file, FAILED, "If-Match: W/\"5-a\"\r\n"},
    {&file, FAILED, "If-Match: \"x\"\r\n"},
    {&file, FAILED, "If-Match: 5-a\r\n"},
    {&file, FAILED, "If-Match:\r\n"},
    {&weak_file, FAILED, "If-Match: \"5-a\"\r\n"},
    {&weak_file, FAILED, "If-Match: W/\"5-a\"\r\n"},
    {&weak_file, SENT, "If-Match: *\r\n"},
    {&untagged_file, FAILED, "If-Match: \"5-a\"\r\n"},
    {&untagged_file, SENT, "If-Match: *\r\n"},
    /* If-Unmodified-Since */
    {&file, SENT, "If-Unmodified-Since: " THEN "\r\n"},
    {&file, SENT, "If-Unmodified-Since: " AFTER "\r\n"},
    {&file, FAILED, "If-Unmodified-Since: " BEFORE "\r\n"},
    {&file, FAILED, "If-Unmodified-Since: Mon, 01 Jan 1900 00:00:00 GMT\r\n"},
    {&file, SENT, "If-Unmodified-Since: yesterday\r\n"},
    {&undated_file, SENT, "If-Unmodified-Since: " BEFORE "\r\n"},
    {&file, SENT, "If-Match: \"5-a\"\r\nIf-Unmodified-Since: " BEFORE "\r\n"},
    {&file, FAILED, "If-Match: \"x\"\r\nIf-Unmodified-Since: " AFTER "\r\n"},
    /* both pairs */
    {&file, FAILED, "If-None-Match: \"5-a\"\r\nIf-Match: \"x\"\r\n"},
    {&file, UNMODIFIED, "If-None-Match: \"5-a\"\r\nIf-Match: \"5-a\"\r\n"},
    {&file, FAILED, "If-Modified-Since: " THEN "\r\nIf-Unmodified-Since: " BEFORE "\r\n"},
    {&file, UNMODIFIED, "If-Modified-Since: " THEN "\r\nIf-Unmodified-Since: " THEN "\r\n"},
    /* fields that do not form a condition together */
    {&file, SENT, "If-Range: \"x\"\r\nRange: bytes=0-1\r\n"},
};

/* `answer`: whether the ranges are sent. */
static const row range_rows[] = {
    {&file, true, ""},
    {&file, true, "If-Range: \"5-a\"\r\n"},
    {&file, true, "If-Range: " THEN "\r\n"},
    {&file, true, "If-Range: Sun Nov  6 08:49:37 1994\r\n"},
    {&file, false, "If-Range: \"x\"\r\n"},
    {&file, false, "If-Range: W/\"5-a\"\r\n"},
    {&file, false, "If-Range: \"5-a\", \"x\"\r\n"},
    {&file, false, "If-Range: \"5-a\r\n"},
    {&file, false, "If-Range: 5-a\r\n"},
    {&file, false, "If-Range: *\r\n"},
    {&file, false, "If-Range:\r\n"},
    {&file, false, "If-Range: " BEFORE "\r\n"},
    {&file, false, "If-Range: " AFTER "\r\n"},
    {&file, false, "If-Range: yesterday\r\n"},
    {&file, false, "If-Range: \"5-a\"\r\nIf-Range: \"5-a\"\r\n"},
    {&weak_file, false, "If-Range: W/\"5-a\"\r\n"},
    {&weak_file, false, "If-Range: \"5-a\"\r\n"},
    {&weak_file, true, "If-Range: " THEN "\r\n"},
    {&untagged_file, false, "If-Range: \"\"\r\n"},
    {&undated_file, false, "If-Range: yesterday\r\n"},
    {&undated_file, false, "If-Range: " THEN "\r\n"},
    {&undated_file, true, "If-Range: \"5-a\"\r\n"},
};

typedef int answer(const rd_request *request, const rd_validators *validators);

static int range_answer(const rd_request *request, const rd_validators *validators) {
    return rd_file_range_applies(request, validators);
}

static void check_row(const row *row, const char *method, answer *answer, int expected) {
    static rd_request request;
    rd_http1_parser parser;
    char bytes[1024];
    const int len =
        snprintf(bytes, sizeof bytes, "%s / HTTP/1.1\r\nHost: a\r\n%s\r\n", method, row->fields);
    rd_head_init(&request.head);
    rd_http1_parser_init(&parser);
    CHECK_INT(rd_http1_parse(&parser, &request.head, &default_limits, bytes, (size_t)len), len);
    request.bytes = bytes;
    const int actual = answer(&request, row->validators);
    CHECK_SAYS(actual == expected, "%d instead of %d: %s", actual, expected, row->fields);
    rd_head_clear(&request.head);
}

static void check_etag(uint64_t size, int64_t mtime_ns, const char *encoding,
                       const char *expected) {
    char etag[RD_ETAG_MAX];
    const size_t len = rd_file_etag(etag, size, mtime_ns, rd_slice_of(encoding, strlen(encoding)));
    CHECK_BYTES(etag, len, expected);
    CHECK_INT(strlen(etag), len);
}

static void test_etags(void) {
    check_etag(0, 0, "", "\"0-0\"");
    check_etag(1000, 784111777000000001, "", "\"3e8-ae1b981bc490a01\"");
    check_etag(1000, 784111777000000001, "gz", "\"3e8-ae1b981bc490a01-gz\"");
    check_etag(UINT64_MAX, -1, "", "\"ffffffffffffffff-ffffffffffffffff\"");
    check_etag(UINT64_MAX, -1, "elevenbytes", "\"ffffffffffffffff-ffffffffffffffff-elevenbytes\"");
}

static void test_no_encoding(void) {
    char etag[RD_ETAG_MAX];
    CHECK_BYTES(etag, rd_file_etag(etag, 5, 10, (rd_slice){NULL, 0}), "\"5-a\"");
}

int main(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(&rows[i], "GET", rd_file_conditions, rows[i].answer);
        check_row(&rows[i], "HEAD", rd_file_conditions, rows[i].answer);
        check_row(&rows[i], "POST", rd_file_conditions, SENT);
    }
    for (size_t i = 0; i < sizeof range_rows / sizeof *range_rows; i++)
        check_row(&range_rows[i], "GET", range_answer, range_rows[i].answer);
    test_etags();
    test_no_encoding();
    return check_summary();
}
