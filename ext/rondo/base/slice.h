/* SPDX-License-Identifier: MIT
 *
 * A slice is a piece of bytes that something else owns: a pointer and a length, no terminator. Used
 * by every layer; any thread.
 */
#ifndef RD_BASE_SLICE_H
#define RD_BASE_SLICE_H

#include <stddef.h>
#include <string.h>

typedef struct rd_slice {
    const char *ptr;
    size_t len;
} rd_slice;

#define RD_SLICE_INIT(literal)                                                                     \
    { (literal), sizeof(literal) - 1 }
#define RD_SLICE(literal) ((rd_slice){(literal), sizeof(literal) - 1})

static inline rd_slice rd_slice_of(const char *ptr, size_t len) {
    return (rd_slice){ptr, len};
}

static inline int rd_slice_equal(rd_slice a, rd_slice b) {
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static inline int rd_slice_starts_with(rd_slice whole, rd_slice beginning) {
    return whole.len >= beginning.len && memcmp(whole.ptr, beginning.ptr, beginning.len) == 0;
}

/* The struct whose member `member` is at `pointer`. */
#define RD_CONTAINER(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
