/* SPDX-License-Identifier: MIT
 *
 * Small numbers for things that come and go. Numbers that were given back are reused first, so a
 * table indexed by them never has many more rows than there were things at once. One owner, no
 * lock.
 */
#ifndef RD_BASE_INDEXES_H
#define RD_BASE_INDEXES_H

#include <stdint.h>

/* Ready when zeroed. */
typedef struct rd_indexes {
    uint32_t *next; /* for each free index, the next free one */
    uint32_t capacity;
    uint32_t free;
} rd_indexes;

void rd_indexes_clear(rd_indexes *indexes);

uint32_t rd_indexes_acquire(rd_indexes *indexes);
void rd_indexes_release(rd_indexes *indexes, uint32_t index);

#endif
