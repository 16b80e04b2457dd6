/* SPDX-License-Identifier: MIT
 *
 * A free list in an array; see indexes.h. The list ends with the capacity as a number, which means
 * that the array must grow.
 */
#include "base/indexes.h"

#include <stddef.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 32 };

void rd_indexes_clear(rd_indexes *indexes) {
    rd_free(indexes->next);
    *indexes = (rd_indexes){NULL, 0, 0};
}

static void grow(rd_indexes *indexes) {
    uint32_t capacity = indexes->capacity > 0 ? indexes->capacity * 2 : FIRST_CAPACITY;
    indexes->next = rd_realloc(indexes->next, capacity * sizeof(uint32_t));
    for (uint32_t i = indexes->capacity; i < capacity; i++) indexes->next[i] = i + 1;
    indexes->capacity = capacity;
}

uint32_t rd_indexes_acquire(rd_indexes *indexes) {
    if (indexes->free == indexes->capacity) grow(indexes);
    uint32_t index = indexes->free;
    indexes->free = indexes->next[index];
    return index;
}

void rd_indexes_release(rd_indexes *indexes, uint32_t index) {
    indexes->next[index] = indexes->free;
    indexes->free = index;
}
