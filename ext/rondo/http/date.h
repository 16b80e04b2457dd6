/* SPDX-License-Identifier: MIT
 *
 * The Date field, formatted once a second (RFC 9110 section 5.6.7, IMF-fixdate). Under the loop
 * lock.
 */
#ifndef RD_HTTP_DATE_H
#define RD_HTTP_DATE_H

#include <stdint.h>

#define RD_DATE_LINE_BYTES 37 /* "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" */

typedef struct rd_date {
    int64_t seconds; /* what `line` says */
    char line[RD_DATE_LINE_BYTES + 1];
} rd_date;

/* The whole field line with its CRLF, for the present second. */
const char *rd_date_line(rd_date *date);

#endif
