/* SPDX-License-Identifier: MIT
 *
 * Dates (RFC 9110 section 5.6.7). The Date field is formatted once a second, under the loop lock.
 * Other dates, of fields and of logs, in any thread.
 */
#ifndef RD_HTTP_DATE_H
#define RD_HTTP_DATE_H

#include <stdint.h>

#include "base/slice.h"

#define RD_DATE_BYTES      29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */
#define RD_DATE_LINE_BYTES 37 /* "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" */
#define RD_DATE_LOG_BYTES  26 /* "06/Nov/1994:08:49:37 +0100" */

typedef struct rd_date {
    int64_t seconds; /* the second that `line` shows */
    char line[RD_DATE_LINE_BYTES + 1];
} rd_date;

/* Call this before requests come: the C library reads the zone's file once, with the first date. */
void rd_date_init(rd_date *date);

/* The whole field line with its CRLF, for the current second. */
const char *rd_date_line(rd_date *date);

/* Seconds since the epoch as IMF-fixdate. Times before 1970 or after 9999 become the nearest valid
 * date. */
void rd_date_format(int64_t seconds, char text[RD_DATE_BYTES + 1]);

/* Local time for the request log: "06/Nov/1994:08:49:37 +0100" in the common format,
 * "1994-11-06T08:49:37+0100" in ISO 8601. */
void rd_date_format_common(int64_t seconds, char text[RD_DATE_LOG_BYTES + 1]);
void rd_date_format_iso(int64_t seconds, char text[RD_DATE_LOG_BYTES + 1]);

/*
 * Parses a date in any of the three forms (IMF-fixdate, RFC 850, asctime). Returns seconds since
 * the epoch, or -1. A date before 1970 is 0. The name of the day need not match the date.
 */
int64_t rd_date_parse(rd_slice text);

#endif
