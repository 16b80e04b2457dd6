/* SPDX-License-Identifier: MIT
 *
 * A free list in an array; see slots.h. The list ends with the capacity as a number, which means
 * that the array must grow.
 */
#include "base/slots.h"

#include <stddef.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 32 };

void rd_slots_clear(rd_slots *slots) {
    rd_free(slots->next);
    *slots = (rd_slots){NULL, 0, 0};
}

static void grow(rd_slots *slots) {
    uint32_t capacity = slots->capacity > 0 ? slots->capacity * 2 : FIRST_CAPACITY;
    slots->next = rd_realloc(slots->next, capacity * sizeof(uint32_t));
    for (uint32_t i = slots->capacity; i < capacity; i++) slots->next[i] = i + 1;
    slots->capacity = capacity;
}

uint32_t rd_slots_take(rd_slots *slots) {
    if (slots->free == slots->capacity) grow(slots);
    uint32_t slot = slots->free;
    slots->free = slots->next[slot];
    return slot;
}

void rd_slots_give(rd_slots *slots, uint32_t slot) {
    slots->next[slot] = slots->free;
    slots->free = slot;
}
