/* SPDX-License-Identifier: MIT
 *
 * Small numbers for things that come and go. Numbers that were given back are reused first, so a
 * table indexed by them never has many more rows than there were things at once. One owner, no
 * lock.
 */
#ifndef RD_BASE_SLOTS_H
#define RD_BASE_SLOTS_H

#include <stdint.h>

/* Ready when zeroed. */
typedef struct rd_slots {
    uint32_t *next; /* for each free slot, the next free one */
    uint32_t capacity;
    uint32_t free;
} rd_slots;

void rd_slots_clear(rd_slots *slots);

uint32_t rd_slots_take(rd_slots *slots);
void rd_slots_give(rd_slots *slots, uint32_t slot);

#endif
