/* SPDX-License-Identifier: MIT
 *
 * base/list.h: a ring has its nodes in order, whichever of them leaves.
 */
#include "base/list.h"
#include "check.h"

enum { MOST = 4 };

static rd_list nodes[MOST];

/* Appends the first `count` nodes. */
static rd_list *ring_of(int count) {
    rd_list *ring = NULL;
    for (int i = 0; i < count; i++) rd_ring_append(&ring, &nodes[i]);
    return ring;
}

/* The numbers of the nodes from first to last, as decimal digits, after a 1. */
static int digits(const rd_list *ring) {
    int number = 1;
    for (const rd_list *node = ring; node != NULL; node = rd_ring_next(ring, node)) {
        number = number * 10 + (int)(node - nodes);
    }
    return number;
}

static void test_nodes_stand_in_order(void) {
    CHECK_INT(digits(NULL), 1);
    CHECK_INT(digits(ring_of(1)), 10);
    CHECK_INT(digits(ring_of(3)), 1012);
    CHECK(ring_of(3)->prev == &nodes[2]);
}

static void test_any_node_may_leave(void) {
    static const int left[] = {112, 102, 101};
    for (int i = 0; i < 3; i++) {
        rd_list *ring = ring_of(3);
        rd_ring_remove(&ring, &nodes[i]);
        CHECK_INT(digits(ring), left[i]);
        CHECK(!rd_list_is_linked(&nodes[i]));
    }
}

static void test_the_first_is_taken(void) {
    rd_list *ring = ring_of(2);
    CHECK(rd_ring_shift(&ring) == &nodes[0]);
    rd_ring_append(&ring, &nodes[3]);
    CHECK_INT(digits(ring), 113);
    CHECK(rd_ring_shift(&ring) == &nodes[1]);
    CHECK(rd_ring_shift(&ring) == &nodes[3]);
    CHECK(ring == NULL && rd_ring_shift(&ring) == NULL);
}

int main(void) {
    test_nodes_stand_in_order();
    test_any_node_may_leave();
    test_the_first_is_taken();
    return check_summary();
}
