/* SPDX-License-Identifier: MIT
 *
 * Tells the processor which memory will be needed soon. Any address will do: nothing is read.
 */
#ifndef RD_BASE_PREFETCH_H
#define RD_BASE_PREFETCH_H

#include <stddef.h>

#define RD_CACHE_LINE 64

static inline void rd_prefetch(const void *at, size_t len) {
    const char *bytes = at;
    for (size_t i = 0; i < len; i += RD_CACHE_LINE) __builtin_prefetch(bytes + i);
    /* Memory that does not begin at a cache line may reach into one more. */
    __builtin_prefetch(bytes + len - 1);
}

#endif
