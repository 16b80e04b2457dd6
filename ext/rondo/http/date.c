/* SPDX-License-Identifier: MIT
 *
 * Formatting and parsing of dates without the locale; see date.h.
 */
#include "http/date.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "system/clock.h"

#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */

/* Recognised by their first three letters; days of the RFC 850 form by the whole name. */
static const char days[7][10] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

void rd_date_format(int64_t seconds, char text[RD_DATE_BYTES + 1]) {
    time_t second = (time_t)(seconds < 0 ? 0 : seconds > LAST_SECOND ? LAST_SECOND : seconds);
    struct tm at;
    gmtime_r(&second, &at);
    snprintf(text, RD_DATE_BYTES + 1, "%.3s, %02u %s %04u %02u:%02u:%02u GMT", days[at.tm_wday],
             (unsigned)at.tm_mday % 100, months[at.tm_mon], ((unsigned)at.tm_year + 1900) % 10000,
             (unsigned)at.tm_hour % 100, (unsigned)at.tm_min % 100, (unsigned)at.tm_sec % 100);
}

static struct tm local_time(int64_t seconds, unsigned *offset) {
    time_t second = (time_t)(seconds < 0 ? 0 : seconds > LAST_SECOND ? LAST_SECOND : seconds);
    struct tm at;
    localtime_r(&second, &at);
    unsigned minutes = (unsigned)(labs(at.tm_gmtoff) / 60);
    *offset = minutes / 60 % 100 * 100 + minutes % 60;
    return at;
}

void rd_date_format_common(int64_t seconds, char text[RD_DATE_LOG_BYTES + 1]) {
    unsigned offset;
    struct tm at = local_time(seconds, &offset);
    snprintf(text, RD_DATE_LOG_BYTES + 1, "%02u/%s/%04u:%02u:%02u:%02u %c%04u",
             (unsigned)at.tm_mday % 100, months[at.tm_mon], ((unsigned)at.tm_year + 1900) % 10000,
             (unsigned)at.tm_hour % 100, (unsigned)at.tm_min % 100, (unsigned)at.tm_sec % 100,
             at.tm_gmtoff < 0 ? '-' : '+', offset);
}

void rd_date_format_iso(int64_t seconds, char text[RD_DATE_LOG_BYTES + 1]) {
    unsigned offset;
    struct tm at = local_time(seconds, &offset);
    snprintf(text, RD_DATE_LOG_BYTES + 1, "%04u-%02u-%02uT%02u:%02u:%02u%c%04u",
             ((unsigned)at.tm_year + 1900) % 10000, ((unsigned)at.tm_mon + 1) % 100,
             (unsigned)at.tm_mday % 100, (unsigned)at.tm_hour % 100, (unsigned)at.tm_min % 100,
             (unsigned)at.tm_sec % 100, at.tm_gmtoff < 0 ? '-' : '+', offset);
}

void rd_date_init(rd_date *date) {
    *date = (rd_date){.seconds = 0};
    tzset();
}

const char *rd_date_line(rd_date *date) {
    const int64_t now = rd_clock_wall_seconds();
    if (date->seconds != now) {
        char text[RD_DATE_BYTES + 1];
        date->seconds = now;
        rd_date_format(now, text);
        snprintf(date->line, sizeof(date->line), "date: %s\r\n", text);
    }
    return date->line;
}

static bool take(rd_slice *text, const char *literal, size_t len) {
    if (text->len < len || memcmp(text->ptr, literal, len) != 0) return false;
    *text = rd_slice_of(text->ptr + len, text->len - len);
    return true;
}

static bool take_day_name(rd_slice *text, bool whole) {
    for (int i = 0; i < 7; i++)
        if (take(text, days[i], whole ? strlen(days[i]) : 3)) return true;
    return false;
}

static bool take_month(rd_slice *text, int *month) {
    for (*month = 0; *month < 12; ++*month)
        if (take(text, months[*month], 3)) return true;
    return false;
}

/* Reads a number of exactly this many digits. */
static bool take_number(rd_slice *text, size_t digits, int *number) {
    *number = 0;
    if (text->len < digits) return false;
    for (size_t i = 0; i < digits; i++) {
        if (text->ptr[i] < '0' || text->ptr[i] > '9') return false;
        *number = *number * 10 + (text->ptr[i] - '0');
    }
    *text = rd_slice_of(text->ptr + digits, text->len - digits);
    return true;
}

/* Two digits mean the latest such year that is no more than 50 years in the future. */
static int year_of(int two_digits) {
    const time_t now = (time_t)rd_clock_wall_seconds();
    struct tm at;
    gmtime_r(&now, &at);
    const int latest = at.tm_year + 50;
    return latest - (latest - two_digits) % 100;
}

static bool take_year(rd_slice *text, size_t digits, struct tm *at) {
    if (!take_number(text, digits, &at->tm_year)) return false;
    at->tm_year = digits == 2 ? year_of(at->tm_year) : at->tm_year - 1900;
    return true;
}

/* Reads one piece of a date; the letters are those of strptime(). */
static bool take_piece(rd_slice *text, char letter, struct tm *at) {
    switch (letter) {
    case 'a':
        return take_day_name(text, false);
    case 'A':
        return take_day_name(text, true);
    case 'b':
        return take_month(text, &at->tm_mon);
    case 'd':
        return take_number(text, 2, &at->tm_mday);
    case 'e':
        return take_number(text, take(text, " ", 1) ? 1 : 2, &at->tm_mday);
    case 'Y':
        return take_year(text, 4, at);
    case 'y':
        return take_year(text, 2, at);
    case 'H':
        return take_number(text, 2, &at->tm_hour) && at->tm_hour < 24;
    case 'M':
        return take_number(text, 2, &at->tm_min) && at->tm_min < 60;
    default:
        return take_number(text, 2, &at->tm_sec) && at->tm_sec <= 60; /* a leap second */
    }
}

static bool has_form(rd_slice text, const char *form, struct tm *at) {
    for (; *form != '\0'; form++) {
        if (*form == '%' ? !take_piece(&text, *++form, at) : !take(&text, form, 1)) return false;
    }
    return text.len == 0;
}

int64_t rd_date_parse(rd_slice text) {
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %e %H:%M:%S %Y"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm at = {0};
        if (!has_form(text, forms[i], &at)) continue;
        const int day = at.tm_mday, month = at.tm_mon, second = at.tm_sec;
        at.tm_sec = 0; /* a leap second must not carry over into another day before the check
                        * below */
        const int64_t seconds = (int64_t)timegm(&at) + second;
        if (at.tm_mday != day || at.tm_mon != month) return -1; /* the month has no such day */
        return seconds < 0 ? 0 : seconds;
    }
    return -1;
}
