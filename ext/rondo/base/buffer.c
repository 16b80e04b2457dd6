/* SPDX-License-Identifier: MIT
 *
 * Growing bytes with a consumed front; see buffer.h.
 */
#include "base/buffer.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

static void make_room(rd_buffer *buf, size_t len) {
    size_t used = rd_buffer_len(buf);
    assert(used + len <= UINT32_MAX / 2);
    if (buf->start > 0 && used + len <= buf->capacity) {
        memmove(buf->bytes, rd_buffer_ptr(buf), used);
    } else {
        size_t capacity = buf->capacity ? buf->capacity : 512;
        while (capacity < used + len) capacity *= 2;
        char *bytes = rd_alloc(capacity);
        if (used > 0) memcpy(bytes, rd_buffer_ptr(buf), used);
        rd_free(buf->bytes);
        buf->bytes = bytes;
        buf->capacity = (uint32_t)capacity;
    }
    buf->start = 0;
    buf->end = (uint32_t)used;
}

void rd_buffer_append(rd_buffer *buf, const char *bytes, size_t len) {
    if (len == 0) return;
    if (buf->capacity - buf->end < len) make_room(buf, len);
    memcpy(buf->bytes + buf->end, bytes, len);
    buf->end += (uint32_t)len;
}

void rd_buffer_consume(rd_buffer *buf, size_t len) {
    assert(len <= rd_buffer_len(buf));
    buf->start += (uint32_t)len;
    if (buf->start == buf->end) rd_buffer_clear(buf);
}

void rd_buffer_truncate(rd_buffer *buf, size_t len) {
    assert(len <= rd_buffer_len(buf));
    buf->end = buf->start + (uint32_t)len;
    if (len == 0) rd_buffer_clear(buf);
}

void rd_buffer_clear(rd_buffer *buf) {
    rd_free(buf->bytes);
    *buf = (rd_buffer){0};
}
