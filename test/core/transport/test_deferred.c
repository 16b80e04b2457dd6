/* SPDX-License-Identifier: MIT
 *
 * transport/deferred: work that was put off is done in turns of the loop, by turns for all who
 * wait, and new work stands behind it.
 */
#include "transport/deferred.h"

#include "base/settings.h"
#include "check.h"
#include "hand_clock.h"

typedef struct job {
    rd_deferred deferred;
    unsigned left; /* parts */
    uint64_t takes_ns;
    char name;
} job;

static rd_loop loop;
static rd_settings settings;
static rd_conn_set set;

static char order[64];
static size_t order_len;

static void go_on(rd_deferred *deferred) {
    job *one = RD_CONTAINER(deferred, job, deferred);
    if (order_len < sizeof(order) - 1) order[order_len++] = one->name;
    hand_clock_ns += one->takes_ns;
    if (--one->left > 0) rd_deferred_wait(&set, deferred);
}

static void put(job *one, char name, unsigned parts) {
    *one = (job){.name = name, .left = parts};
    rd_deferred_init(&one->deferred, go_on);
    rd_deferred_wait(&set, &one->deferred);
}

static void begin(void) {
    memset(order, 0, sizeof(order));
    order_len = 0;
    CHECK_INT(rd_loop_init(&loop, false), 0);
    rd_conn_set_init(&set, &loop, &settings);
}

static void finish(void) {
    CHECK(!rd_conn_set_has_layers(&set));
    CHECK_INT(set.layers.count, 0);
    rd_loop_clear(&loop);
    rd_conn_set_clear(&set);
}

static void test_by_turns(void) {
    job a, b, c;
    begin();
    put(&a, 'a', 3);
    put(&b, 'b', 1);
    put(&c, 'c', 2);
    rd_deferred_wait(&set, &b.deferred); /* stands there already */
    CHECK(rd_conn_set_has_layers(&set));
    while (rd_conn_set_has_layers(&set)) rd_conn_set_serve_layers(&set, true);
    CHECK_STR(order, "abcaca");
    CHECK(!rd_deferred_waits(&a.deferred));
    finish();
}

static void test_leaving(void) {
    job a, b;
    begin();
    put(&a, 'a', 1);
    put(&b, 'b', 1);
    rd_deferred_leave(&set, &a.deferred);
    rd_deferred_leave(&set, &a.deferred);
    rd_deferred_finish(&set);
    CHECK_STR(order, "b");
    finish();
}

/* A turn has so much time for new work, and none while others wait. */
static void test_time_of_a_turn(void) {
    job a;
    begin();
    const uint64_t until = rd_deferred_until(&set, 1000000);
    CHECK(until > 1000000);
    rd_deferred_spend(&set, 40000);
    CHECK_INT(rd_deferred_until(&set, 1000000), until - 40000);
    rd_deferred_spend(&set, 1000000);
    CHECK_INT(rd_deferred_until(&set, 1000000), 0);
    loop.turns++;
    CHECK_INT(rd_deferred_until(&set, 1000000), until);
    put(&a, 'a', 1);
    CHECK_INT(rd_deferred_until(&set, 1000000), 0);
    rd_deferred_finish(&set);
    CHECK_INT(rd_deferred_until(&set, 1000000), until);
    finish();
}

static void test_parts_that_take_long(void) {
    job a, b;
    begin();
    put(&a, 'a', 9);
    put(&b, 'b', 9);
    a.takes_ns = b.takes_ns = 40000;
    rd_deferred_serve(&set);
    CHECK_STR(order, "aba");
    loop.turns++;
    rd_deferred_spend(&set, 40000);
    rd_deferred_serve(&set);
    CHECK_STR(order, "ababa");
    rd_deferred_finish(&set);
    finish();
}

/* However much time new work took: whoever waits goes on in each turn, but not for ever. */
static void test_a_turn_without_time(void) {
    job a;
    begin();
    put(&a, 'a', 3);
    for (unsigned left = 3; left > 0; left--) {
        CHECK_INT(a.left, left);
        rd_deferred_spend(&set, 1000000);
        rd_deferred_serve(&set);
    }
    CHECK_STR(order, "aaa");
    finish();
}

int main(void) {
    test_by_turns();
    test_leaving();
    test_time_of_a_turn();
    test_parts_that_take_long();
    test_a_turn_without_time();
    return check_summary();
}
