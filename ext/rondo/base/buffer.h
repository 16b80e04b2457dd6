/* SPDX-License-Identifier: MIT
 *
 * Growing bytes with a consumed front. Connections keep incomplete messages in it, bodies the part
 * that stays in memory. The caller checks limits before it appends. One owner, no lock.
 */
#ifndef RD_BASE_BUFFER_H
#define RD_BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

typedef struct rd_buffer {
    char *bytes;
    uint32_t start; /* bytes before this offset are consumed */
    uint32_t end;
    uint32_t capacity;
} rd_buffer;

static inline char *rd_buffer_ptr(const rd_buffer *buf) {
    return buf->bytes == NULL ? NULL : buf->bytes + buf->start;
}

static inline size_t rd_buffer_len(const rd_buffer *buf) {
    return buf->end - buf->start;
}

void rd_buffer_append(rd_buffer *buf, const char *bytes, size_t len);

/* Drops `len` bytes from the front. An emptied buffer frees its memory. */
void rd_buffer_consume(rd_buffer *buf, size_t len);

/* Keeps `len` bytes and drops those behind them. An emptied buffer frees its memory. */
void rd_buffer_truncate(rd_buffer *buf, size_t len);

void rd_buffer_clear(rd_buffer *buf);

/* Drops all bytes, and keeps the memory for others. */
static inline void rd_buffer_rewind(rd_buffer *buf) {
    buf->start = buf->end = 0;
}

#endif
