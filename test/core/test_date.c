/* SPDX-License-Identifier: MIT
 *
 * The Date field as a table of seconds; and that it is made once a second. The system's clock is
 * this file's own.
 */
#include <time.h>

#include "check.h"
#include "http/date.h"

static int64_t present;
static unsigned looks;

int clock_gettime(clockid_t id, struct timespec *now) {
    (void)id;
    looks++;
    *now = (struct timespec){.tv_sec = present, .tv_nsec = 999999999};
    return 0;
}

static const struct {
    int64_t seconds;
    const char *line;
} rows[] = {
    {784111777, "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"}, /* the example of RFC 9110 */
    {951782399, "date: Mon, 28 Feb 2000 23:59:59 GMT\r\n"},
    {951782400, "date: Tue, 29 Feb 2000 00:00:00 GMT\r\n"},
    {1735689599, "date: Tue, 31 Dec 2024 23:59:59 GMT\r\n"},
    {1735689600, "date: Wed, 01 Jan 2025 00:00:00 GMT\r\n"},
    {1, "date: Thu, 01 Jan 1970 00:00:01 GMT\r\n"},
    {2147483648, "date: Tue, 19 Jan 2038 03:14:08 GMT\r\n"},
    {253402300799, "date: Fri, 31 Dec 9999 23:59:59 GMT\r\n"},
};

static void test_lines(void) {
    rd_date date = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        present = rows[i].seconds;
        CHECK_STR(rd_date_line(&date), rows[i].line);
        CHECK_INT(strlen(date.line), RD_DATE_LINE_BYTES);
        CHECK_INT(date.seconds, present);
    }
}

static void test_all_days_and_months(void) {
    static const char names[] = "Thu Fri Sat Sun Mon Tue Wed ";
    rd_date date = {0};
    for (int64_t day = 0; day < 1000; day++) {
        struct tm at;
        char month[8];
        present = day * 86400;
        if (day == 0) date.seconds = -1; /* a date begins as the line of no second */
        const char *line = rd_date_line(&date);
        CHECK_BYTES(
            line + 6, 3,
            ((char[4]){names[day % 7 * 4], names[day % 7 * 4 + 1], names[day % 7 * 4 + 2], '\0'}));
        gmtime_r(&(time_t){(time_t)present}, &at);
        strftime(month, sizeof(month), "%d %b", &at);
        CHECK_BYTES(line + 11, 6, month);
    }
}

static void test_made_once_a_second(void) {
    rd_date date = {0};
    present = 1000000000;
    const char *line = rd_date_line(&date);
    date.line[0] = 'D';
    CHECK(rd_date_line(&date) == line && line[0] == 'D');
    present++;
    CHECK(rd_date_line(&date) == line && line[0] == 'd');
    present -= 3600; /* somebody set the clock back */
    CHECK_STR(rd_date_line(&date), "date: Sun, 09 Sep 2001 00:46:41 GMT\r\n");
}

int main(void) {
    test_lines();
    test_all_days_and_months();
    test_made_once_a_second();
    CHECK(looks > 0);
    return check_summary();
}
