/* SPDX-License-Identifier: MIT
 *
 * The Date field as a table of seconds; and that it is made once a second. Dates of other fields in
 * all three forms. The system's clock is this file's own.
 */
#include <stdlib.h>
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
        if (day == 0) date.seconds = -1; /* a new date has no line yet */
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
    present -= 3600; /* the clock was set back */
    CHECK_STR(rd_date_line(&date), "date: Sun, 09 Sep 2001 00:46:41 GMT\r\n");
}

static void test_formatting(void) {
    char text[RD_DATE_BYTES + 1];
    rd_date_format(784111777, text);
    CHECK_STR(text, "Sun, 06 Nov 1994 08:49:37 GMT");
    rd_date_format(-1, text);
    CHECK_STR(text, "Thu, 01 Jan 1970 00:00:00 GMT");
    rd_date_format(INT64_MIN, text);
    CHECK_STR(text, "Thu, 01 Jan 1970 00:00:00 GMT");
    rd_date_format(253402300800, text);
    CHECK_STR(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    rd_date_format(INT64_MAX, text);
    CHECK_STR(text, "Fri, 31 Dec 9999 23:59:59 GMT");
}

static void test_local_times(void) {
    static const struct {
        const char *zone, *common, *iso;
    } zones[] = {
        {"UTC", "06/Nov/1994:08:49:37 +0000", "1994-11-06T08:49:37+0000"},
        {"NST3:30", "06/Nov/1994:05:19:37 -0330", "1994-11-06T05:19:37-0330"},
        {"NPT-5:45", "06/Nov/1994:14:34:37 +0545", "1994-11-06T14:34:37+0545"},
        {"ZERO0:20", "06/Nov/1994:08:29:37 -0020", "1994-11-06T08:29:37-0020"},
    };
    char text[RD_DATE_LOG_BYTES + 1];
    for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
        setenv("TZ", zones[i].zone, 1);
        tzset();
        rd_date_format_common(784111777, text);
        CHECK_STR(text, zones[i].common);
        rd_date_format_iso(784111777, text);
        CHECK_STR(text, zones[i].iso);
        rd_date_format_common(INT64_MAX, text);
        rd_date_format_iso(INT64_MIN, text);
    }
}

static int64_t parsed(const char *text) {
    return rd_date_parse(rd_slice_of(text, strlen(text)));
}

static void test_three_forms(void) {
    present = 1000000000; /* in the year 2001 */
    CHECK_INT(parsed("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
    CHECK_INT(parsed("Sunday, 06-Nov-94 08:49:37 GMT"), 784111777);
    CHECK_INT(parsed("Sun Nov  6 08:49:37 1994"), 784111777);
    CHECK_INT(parsed("Wed Nov 16 08:49:37 1994"), 784975777);
    CHECK_INT(parsed("Mon, 06 Nov 1994 08:49:37 GMT"), 784111777);
    CHECK_INT(parsed("Tue, 29 Feb 2000 00:00:00 GMT"), 951782400);
    CHECK_INT(parsed("Sat, 31 Dec 2016 23:59:60 GMT"), 1483228800);
    CHECK_INT(parsed("Fri, 31 Dec 9999 23:59:59 GMT"), 253402300799);
    CHECK_INT(parsed("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
    CHECK_INT(parsed("Wed, 31 Dec 1969 23:59:59 GMT"), 0);
    CHECK_INT(parsed("Wed, 01 Jan 0000 00:00:00 GMT"), 0);
}

static void test_years_of_two_digits(void) {
    static const struct {
        int64_t present;
        const char *two, *four;
    } years[] = {
        {1000000000, "00", "2000"}, {1000000000, "01", "2001"}, {1000000000, "51", "2051"},
        {1000000000, "52", "1952"}, {1000000000, "99", "1999"}, {1767225600, "76", "2076"},
        {1767225600, "77", "1977"}, {3471292800, "05", "2105"}, {3471292800, "80", "2080"},
    };
    for (size_t i = 0; i < sizeof(years) / sizeof(years[0]); i++) {
        char short_form[64], long_form[64];
        present = years[i].present;
        snprintf(short_form, sizeof(short_form), "Monday, 01-Mar-%s 00:00:00 GMT", years[i].two);
        snprintf(long_form, sizeof(long_form), "Mon, 01 Mar %s 00:00:00 GMT", years[i].four);
        CHECK_INT(parsed(short_form), parsed(long_form));
    }
}

static void test_no_dates(void) {
    static const char *const texts[] = {
        "",
        "0",
        "-1",
        "784111777",
        "yesterday",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GM",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 06 Nov 1994 08:49:37 GMT; length=1",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "sun, 06 nov 1994 08:49:37 gmt",
        "Son, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nuv 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 29 Feb 2001 23:59:60 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 -8:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov   08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_SAYS(parsed(texts[i]) == -1, "%s", texts[i]);
    }
    CHECK_INT(rd_date_parse((rd_slice){NULL, 0}), -1);
    CHECK_INT(rd_date_parse(RD_SLICE("Sun, 06 Nov 1994 08:49:37 GMT\0")), -1);
}

int main(void) {
    test_formatting();
    test_local_times();
    test_three_forms();
    test_years_of_two_digits();
    test_no_dates();
    test_lines();
    test_all_days_and_months();
    test_made_once_a_second();
    CHECK(looks > 0);
    return check_summary();
}
