/* SPDX-License-Identifier: MIT
 *
 * The table of names: what was put in is found whatever its size, and nothing else is; it grows and
 * shrinks; names are bytes.
 */
#include "base/map.h"
#include "check.h"

enum { MANY = 5000 };

typedef struct element {
    rd_map_node node;
    char name[24];
} element;

static element elements[MANY];

static void name_elements(void) {
    for (int i = 0; i < MANY; i++) {
        element *self = &elements[i];
        const int len = snprintf(self->name, sizeof(self->name), "%d", i);
        self->node.name = rd_slice_of(self->name, (size_t)len);
    }
}

static void check_from(const rd_map *map, int first, int end) {
    for (int i = 0; i < MANY; i++) {
        rd_map_node *expected = i >= first && i < end ? &elements[i].node : NULL;
        const char *name = elements[i].name;
        if (rd_map_find(map, rd_slice_of(name, strlen(name))) == expected) continue;
        CHECK_SAYS(false, "%d of %d to %d", i, first, end);
    }
    CHECK_INT(map->count, end - first);
}

static void test_in_and_out(void) {
    rd_map map;
    rd_map_init(&map);
    for (int i = 0; i < MANY; i++) {
        rd_map_add(&map, &elements[i].node);
        if (i % 500 == 0) check_from(&map, 0, i + 1);
    }
    check_from(&map, 0, MANY);
    CHECK(map.bucket_count >= MANY);
    for (int i = 0; i < MANY; i++) {
        rd_map_remove(&map, &elements[i].node);
        if (i % 500 == 0) check_from(&map, i + 1, MANY);
    }
    CHECK_INT(map.bucket_count, 16);
    rd_map_clear(&map);
}

static void test_bytes(void) {
    rd_map map;
    rd_map_init(&map);
    rd_map_node one = {.name = rd_slice_of("a\0b", 3)}, two = {.name = rd_slice_of("a\0c", 3)};
    rd_map_node none = {.name = rd_slice_of("", 0)};
    rd_map_add(&map, &one);
    rd_map_add(&map, &two);
    rd_map_add(&map, &none);
    CHECK(rd_map_find(&map, rd_slice_of("a\0b", 3)) == &one);
    CHECK(rd_map_find(&map, rd_slice_of("a\0c", 3)) == &two);
    CHECK(rd_map_find(&map, rd_slice_of("a", 1)) == NULL);
    CHECK(rd_map_find(&map, rd_slice_of("a", 0)) == &none);
    rd_map_remove(&map, &one);
    CHECK(rd_map_find(&map, rd_slice_of("a\0b", 3)) == NULL);
    CHECK(rd_map_find(&map, rd_slice_of("a\0c", 3)) == &two);
    rd_map_remove(&map, &two);
    rd_map_remove(&map, &none);
    rd_map_clear(&map);
}

int main(void) {
    name_elements();
    test_in_and_out();
    test_bytes();
    return check_summary();
}
