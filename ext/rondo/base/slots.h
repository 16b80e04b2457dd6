/* SPDX-License-Identifier: MIT
 *
 * Small numbers for things that come and go: what is given back is taken again first, so a table by
 * slot never has many more rows than there were things at once. One owner, no lock.
 */
#ifndef RD_BASE_SLOTS_H
#define RD_BASE_SLOTS_H

#include <stdint.h>

/* Zeroed, it is ready. */
typedef struct rd_slots {
    uint32_t *next; /* of each free slot the free one behind it */
    uint32_t capacity;
    uint32_t free;
} rd_slots;

void rd_slots_clear(rd_slots *slots);

uint32_t rd_slots_take(rd_slots *slots);
void rd_slots_give(rd_slots *slots, uint32_t slot);

#endif
