/* SPDX-License-Identifier: MIT
 *
 * A table from names to elements. It is intrusive, as the list is: the node lies inside its
 * element, which also owns the name. Elements are chained in buckets, whose number is a power of
 * two and about that of the elements. The hash has a random key. One owner, no lock.
 */
#ifndef RD_BASE_MAP_H
#define RD_BASE_MAP_H

#include <stdint.h>

#include "base/hash.h"
#include "base/slice.h"

typedef struct rd_map_node {
    struct rd_map_node *next; /* the next one in its bucket */
    uint64_t hash;
    rd_slice name;
} rd_map_node;

typedef struct rd_map {
    rd_map_node **buckets;
    uint32_t bucket_count;
    uint32_t count;
    rd_hash_key key;
} rd_map;

void rd_map_init(rd_map *map);

/* The caller has removed all elements. */
void rd_map_clear(rd_map *map);

/* Returns NULL when there is none. */
rd_map_node *rd_map_find(const rd_map *map, rd_slice name);

/* Adds an element. Its node has its name already, and no other element has that name. */
void rd_map_add(rd_map *map, rd_map_node *node);

void rd_map_remove(rd_map *map, rd_map_node *node);

#endif
