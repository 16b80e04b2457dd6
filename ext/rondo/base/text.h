/* SPDX-License-Identifier: MIT
 *
 * Text in a growing buffer: formatted, as a JSON string, as a number of seconds. For pages that
 * people and monitoring read, not for the fast path. One owner, no lock.
 */
#ifndef RD_BASE_TEXT_H
#define RD_BASE_TEXT_H

#include "base/buffer.h"

#define RD_TEXT_TIME_MAX 24

/* Appends what printf would write. */
__attribute__((format(printf, 2, 3))) void rd_text_add(rd_buffer *text, const char *format, ...);

/* Appends a JSON string with its quotes. Bytes outside of ASCII are copied unchanged. */
void rd_text_add_json(rd_buffer *text, const char *string);

/* Appends microseconds as seconds without trailing zeros: "0.0015" for 1500. */
void rd_text_add_seconds(rd_buffer *text, uint64_t us);

/* Writes seconds since the epoch as "2026-01-31T12:00:00Z" (RFC 3339). */
void rd_text_time(int64_t seconds, char time[RD_TEXT_TIME_MAX]);

#endif
