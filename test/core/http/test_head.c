/* SPDX-License-Identifier: MIT
 *
 * http/head: growing, forgetting and finding headers; method names.
 */
#include "check.h"

#include "http/head.h"

static void add(rd_head *head, unsigned id) {
    rd_header *header = rd_head_next_header(head);

    *header = (rd_header){.name_at = head->header_count, .id = (uint16_t)id};
    head->seen[id / 64] |= UINT64_C(1) << (id % 64);
    head->header_count++;
}

static void test_growth_keeps_headers(void) {
    rd_head head;

    rd_head_init(&head);
    for (unsigned i = 0; i < 1000; i++) add(&head, i % RD_HEADER_COUNT);
    CHECK_INT(head.header_count, 1000);
    CHECK(head.headers != head.first);
    for (unsigned i = 0; i < 1000; i++) CHECK_INT(head.headers[i].name_at, i);
    CHECK_INT(rd_head_find(&head, RD_HEADER_VIA)->name_at, RD_HEADER_VIA);
    rd_head_clear(&head);
}

static void test_reset_keeps_memory(void) {
    rd_head head;
    uint16_t capacity;

    rd_head_init(&head);
    for (unsigned i = 0; i < 30; i++) add(&head, RD_HEADER_VIA);
    capacity = head.header_capacity;
    rd_head_reset(&head);
    CHECK_INT(head.header_count, 0);
    CHECK_INT(head.header_capacity, capacity);
    CHECK(head.headers != head.first);
    CHECK(!rd_head_has(&head, RD_HEADER_VIA));
    CHECK(rd_head_find(&head, RD_HEADER_VIA) == NULL);
    rd_head_clear(&head);
    CHECK(head.headers == head.first);
}

static void test_sizes(void) {
    CHECK_INT(sizeof(rd_header), 16);
    CHECK(rd_head_find(&(rd_head){.header_count = 0}, RD_HEADER_COUNT) == NULL);
}

static void test_methods(void) {
#define ROW(name) CHECK_INT(rd_method_id(#name, strlen(#name)), RD_METHOD_##name);
    RD_METHODS(ROW)
#undef ROW
    CHECK_INT(rd_method_id("get", 3), RD_METHOD_OTHER);
    CHECK_INT(rd_method_id("GETS", 4), RD_METHOD_OTHER);
    CHECK_INT(rd_method_id("PROPFIND", 8), RD_METHOD_OTHER);
    CHECK_INT(rd_method_id("", 0), RD_METHOD_OTHER);
}

int main(void) {
    test_growth_keeps_headers();
    test_reset_keeps_memory();
    test_sizes();
    test_methods();
    return check_summary();
}
