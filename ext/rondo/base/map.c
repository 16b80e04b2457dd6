/* SPDX-License-Identifier: MIT
 *
 * The table of names; see map.h.
 */
#include "base/map.h"

#include <assert.h>

#include "base/alloc.h"

#define BUCKETS_MIN 16

void rd_map_init(rd_map *map) {
    *map = (rd_map){.bucket_count = BUCKETS_MIN, .key = rd_hash_key_random()};
    map->buckets = rd_alloc_zero(BUCKETS_MIN * sizeof(rd_map_node *));
}

void rd_map_clear(rd_map *map) {
    assert(map->count == 0);
    rd_free(map->buckets);
    map->buckets = NULL;
}

static rd_map_node **bucket_of(const rd_map *map, uint64_t hash) {
    return &map->buckets[hash & (map->bucket_count - 1)];
}

static void put(rd_map *map, rd_map_node *node) {
    rd_map_node **bucket = bucket_of(map, node->hash);
    node->next = *bucket;
    *bucket = node;
}

static void resize(rd_map *map, uint32_t bucket_count) {
    rd_map_node **old = map->buckets;
    const uint32_t old_count = map->bucket_count;
    map->buckets = rd_alloc_zero(bucket_count * sizeof(rd_map_node *));
    map->bucket_count = bucket_count;
    for (uint32_t i = 0; i < old_count; i++) {
        while (old[i] != NULL) {
            rd_map_node *node = old[i];
            old[i] = node->next;
            put(map, node);
        }
    }
    rd_free(old);
}

rd_map_node *rd_map_find(const rd_map *map, rd_slice name) {
    const uint64_t hash = rd_hash(map->key, name);
    rd_map_node *node = *bucket_of(map, hash);
    while (node != NULL && (node->hash != hash || !rd_slice_equal(node->name, name))) {
        node = node->next;
    }
    return node;
}

void rd_map_add(rd_map *map, rd_map_node *node) {
    if (map->count == map->bucket_count) resize(map, map->bucket_count * 2);
    node->hash = rd_hash(map->key, node->name);
    put(map, node);
    map->count++;
}

void rd_map_remove(rd_map *map, rd_map_node *node) {
    rd_map_node **at = bucket_of(map, node->hash);
    while (*at != node) at = &(*at)->next;
    *at = node->next;
    map->count--;
    if (map->bucket_count > BUCKETS_MIN && map->count < map->bucket_count / 8) {
        resize(map, map->bucket_count / 2);
    }
}
