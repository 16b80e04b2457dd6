/* SPDX-License-Identifier: MIT
 *
 * Formatting by vsnprintf, without locale; see text.h.
 */
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

void rd_text_add(rd_buffer *text, const char *format, ...) {
    char room[256];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int len = vsnprintf(room, sizeof(room), format, arguments);
    va_end(arguments);
    if (len > 0 && (size_t)len < sizeof(room)) {
        rd_buffer_append(text, room, (size_t)len);
    } else if (len > 0) {
        char *more = rd_alloc((size_t)len + 1);
        vsnprintf(more, (size_t)len + 1, format, again);
        rd_buffer_append(text, more, (size_t)len);
        rd_free(more);
    }
    va_end(again);
}

void rd_text_add_json(rd_buffer *text, const char *string) {
    rd_buffer_append(text, "\"", 1);
    for (; *string != '\0'; string++) {
        unsigned char byte = (unsigned char)*string;
        if (byte == '"' || byte == '\\') {
            rd_text_add(text, "\\%c", byte);
        } else if (byte < 0x20) {
            rd_text_add(text, "\\u%04x", byte);
        } else {
            rd_buffer_append(text, string, 1);
        }
    }
    rd_buffer_append(text, "\"", 1);
}

void rd_text_add_seconds(rd_buffer *text, uint64_t us) {
    char room[32];
    int len = snprintf(room, sizeof(room), "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
    while (room[len - 1] == '0') len--;
    if (room[len - 1] == '.') len--;
    rd_buffer_append(text, room, (size_t)len);
}

void rd_text_time(int64_t seconds, char time[RD_TEXT_TIME_MAX]) {
    struct tm parts;
    time_t at = (time_t)seconds;
    if (gmtime_r(&at, &parts) == NULL) memset(&parts, 0, sizeof(parts));
    snprintf(time, RD_TEXT_TIME_MAX, "%04u-%02u-%02uT%02u:%02u:%02uZ",
             ((unsigned)parts.tm_year + 1900) % 10000, ((unsigned)parts.tm_mon + 1) % 100,
             (unsigned)parts.tm_mday % 100, (unsigned)parts.tm_hour % 100,
             (unsigned)parts.tm_min % 100, (unsigned)parts.tm_sec % 100);
}
