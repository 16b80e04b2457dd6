/* SPDX-License-Identifier: MIT
 *
 * server/calls.c: very many calls that take too long, each at another time.
 */
#include "serving.h"

#define CALLS 10000

static rd_request calls[CALLS];

static unsigned count_hung(void) {
    unsigned count = 0;
    for (unsigned i = 0; i < CALLS; i++) count += calls[i].hung;
    return count;
}

static void check(void) {
    rd_loop_refresh(&server->loop);
    rd_calls_check(server);
}

static void begin(uint64_t apart_ns) {
    for (unsigned i = 0; i < CALLS; i++) {
        calls[i] = (rd_request){.times.taken_ns = hand_clock_ns};
        rd_list_init(&calls[i].in_queue);
        rd_calls_begin(server, &calls[i]);
        hand_clock_ns += apart_ns;
    }
}

/* One becomes due every microsecond, and a look at all of them takes many. */
static void test_a_look_at_all_calls_is_followed_by_a_rest(void) {
    settings.hard_request_timeout_ms = 1000;
    start(answer_path);
    rd_loop_lock(&server->loop);
    begin(1000);
    hand_clock_ns += UINT64_C(1000000000) - CALLS * UINT64_C(1000);
    check();
    const unsigned first = count_hung();
    CHECK(first >= 1 && first < CALLS);
    hand_clock_ns += 1000000;
    check();
    CHECK_INT(count_hung(), first); /* it rests */
    CHECK(server->calls.due_ns >= hand_clock_ns + 15000000);
    hand_clock_ns = server->calls.due_ns;
    check();
    CHECK_INT(count_hung(), CALLS);
    while (!rd_list_is_empty(&server->calls.active)) rd_list_shift(&server->calls.active);
    rd_loop_unlock(&server->loop);
    end();
}

/* A few calls are found in time. */
static void test_few_calls_need_no_rest(void) {
    settings.hard_request_timeout_ms = 1000;
    start(answer_path);
    rd_loop_lock(&server->loop);
    calls[0] = (rd_request){.times.taken_ns = hand_clock_ns};
    rd_list_init(&calls[0].in_queue);
    rd_calls_begin(server, &calls[0]);
    CHECK_INT(server->calls.due_ns, hand_clock_ns + UINT64_C(1000000000));
    hand_clock_ns = server->calls.due_ns;
    check();
    CHECK(calls[0].hung);
    rd_list_shift(&server->calls.active);
    rd_loop_unlock(&server->loop);
    end();
}

int main(void) {
    rd_settings_init(&settings);
    test_a_look_at_all_calls_is_followed_by_a_rest();
    test_few_calls_need_no_rest();
    return check_summary();
}
