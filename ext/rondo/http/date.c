/* SPDX-License-Identifier: MIT
 *
 * Formatting of IMF-fixdate without the locale; see date.h.
 */
#include "http/date.h"

#include <stdio.h>
#include <time.h>

static void format(rd_date *date) {
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)date->seconds;
    struct tm at;
    gmtime_r(&seconds, &at);
    char text[64];
    snprintf(text, sizeof(text), "date: %s, %02u %s %04u %02u:%02u:%02u GMT\r\n", days[at.tm_wday],
             (unsigned)at.tm_mday % 100, months[at.tm_mon], ((unsigned)at.tm_year + 1900) % 10000,
             (unsigned)at.tm_hour % 100, (unsigned)at.tm_min % 100, (unsigned)at.tm_sec % 100);
    snprintf(date->line, sizeof(date->line), "%.37s", text);
}

const char *rd_date_line(rd_date *date) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (date->seconds != now.tv_sec) {
        date->seconds = now.tv_sec;
        format(date);
    }
    return date->line;
}
