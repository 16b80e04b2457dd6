/* SPDX-License-Identifier: MIT
 *
 * Formatted text, JSON strings, seconds and times.
 */
#include "base/text.h"

#include "check.h"

static rd_buffer text;

static void check_text(const char *expected) {
    CHECK_BYTES(rd_buffer_ptr(&text), rd_buffer_len(&text), expected);
    rd_buffer_clear(&text);
}

static void test_formats_of_any_length(void) {
    char expected[1001];
    memset(expected, 'x', 1000);
    expected[1000] = '\0';
    for (int len = 0; len <= 1000; len += 50) {
        rd_text_add(&text, "%.*s", len, expected);
        CHECK_INT(rd_buffer_len(&text), len);
        rd_buffer_clear(&text);
    }
    rd_text_add(&text, "%s%d", expected, 7);
    CHECK_INT(rd_buffer_len(&text), 1001);
    CHECK_INT(rd_buffer_ptr(&text)[1000], '7');
    rd_buffer_clear(&text);
}

static void test_json_strings(void) {
    rd_text_add_json(&text, "plain");
    check_text("\"plain\"");
    rd_text_add_json(&text, "a\"b\\c\n\x01");
    check_text("\"a\\\"b\\\\c\\u000a\\u0001\"");
    rd_text_add_json(&text, "\xc3\xa9");
    check_text("\"\xc3\xa9\"");
}

static void test_seconds(void) {
    static const struct {
        uint64_t us;
        const char *text;
    } rows[] = {{0, "0"},
                {1, "0.000001"},
                {1500, "0.0015"},
                {16, "0.000016"},
                {1000000, "1"},
                {67108864, "67.108864"},
                {UINT64_MAX, "18446744073709.551615"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rd_text_add_seconds(&text, rows[i].us);
        check_text(rows[i].text);
    }
}

static void test_times(void) {
    char time[RD_TEXT_TIME_MAX];
    rd_text_time(0, time);
    CHECK_STR(time, "1970-01-01T00:00:00Z");
    rd_text_time(1767225599, time);
    CHECK_STR(time, "2025-12-31T23:59:59Z");
    rd_text_time(INT64_MAX, time); /* a year that does not fit in the format */
    CHECK(strlen(time) < sizeof(time));
}

int main(void) {
    test_formats_of_any_length();
    test_json_strings();
    test_seconds();
    test_times();
    return check_summary();
}
