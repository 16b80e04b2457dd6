/* SPDX-License-Identifier: MIT
 *
 * Timers of the application, by a clock that the test moves.
 */
#include "check.h"
#include "hand_clock.h"
#include "loop/app_timer.h"

#define MS  UINT64_C(1000000)
#define DAY (UINT64_C(86400000) * MS)

static rd_loop loop;
static rd_app_timers timers;
static rd_ready_set found;
static rd_app_timer a, b;
static int calls;
static uint64_t again_ns;

static void on_due(rd_app_timer *timer) {
    CHECK(loop.now_ns >= timer->due_ns);
    calls++;
    if (again_ns > 0) CHECK(rd_app_timer_set(&timers, timer, timer->due_ns + again_ns));
}

static void on_due_cancel(rd_app_timer *timer) {
    calls++;
    rd_app_timer_cancel(timer == &a ? &b : &a);
}

static void go_on(uint64_t ns) {
    hand_clock_ns += ns;
    rd_loop_lock(&loop);
    found.count = 0;
    rd_loop_process(&loop, &found);
    rd_loop_unlock(&loop);
}

static void start(uint32_t limit) {
    CHECK_INT(rd_loop_init(&loop, false), 0);
    timers = (rd_app_timers){.loop = &loop, .limit = limit};
    rd_app_timer_init(&a, on_due);
    rd_app_timer_init(&b, on_due);
    calls = 0;
    again_ns = 0;
}

static void end(void) {
    CHECK_INT(timers.count, 0);
    rd_loop_clear(&loop);
}

static void test_never_early(void) {
    start(2);
    CHECK(rd_app_timer_set(&timers, &a, hand_clock_ns + 5 * MS + 1));
    go_on(5 * MS);
    CHECK_INT(calls, 0);
    go_on(MS);
    CHECK_INT(calls, 1);
    CHECK(rd_app_timer_set(&timers, &a, hand_clock_ns - 1)); /* the time has passed */
    CHECK_INT(calls, 1);
    go_on(MS);
    CHECK_INT(calls, 2);
    end();
}

static void test_far_ahead(void) {
    start(1);
    CHECK(rd_app_timer_set(&timers, &a, hand_clock_ns + 40 * DAY));
    for (int day = 0; day < 39; day++) go_on(DAY);
    CHECK_INT(calls, 0);
    CHECK_INT(timers.count, 1);
    go_on(DAY);
    CHECK_INT(calls, 1);
    end();
}

static void test_again_and_cancel(void) {
    start(1);
    again_ns = 2 * MS;
    CHECK(rd_app_timer_set(&timers, &a, hand_clock_ns + MS));
    for (int ms = 0; ms < 10; ms++) go_on(MS);
    CHECK_INT(calls, 5);
    rd_app_timer_cancel(&a);
    rd_app_timer_cancel(&a);
    go_on(10 * MS);
    CHECK_INT(calls, 5);
    end();
}

static void test_cancel_in_a_callback(void) {
    start(2);
    a.on_due = b.on_due = on_due_cancel;
    CHECK(rd_app_timer_set(&timers, &a, hand_clock_ns + MS));
    CHECK(rd_app_timer_set(&timers, &b, hand_clock_ns + MS));
    go_on(MS);
    CHECK_INT(calls, 1);
    end();
}

static void test_limit(void) {
    start(1);
    CHECK(rd_app_timer_set(&timers, &a, hand_clock_ns + MS));
    CHECK(!rd_app_timer_set(&timers, &b, hand_clock_ns + MS));
    CHECK(rd_app_timer_set(&timers, &a, hand_clock_ns + 2 * MS)); /* counts as one */
    rd_app_timer_cancel(&b);
    go_on(2 * MS);
    CHECK_INT(calls, 1);
    CHECK(rd_app_timer_set(&timers, &b, hand_clock_ns + MS));
    rd_app_timer_cancel(&b);
    end();
}

int main(void) {
    test_never_early();
    test_far_ahead();
    test_again_and_cancel();
    test_cancel_in_a_callback();
    test_limit();
    return check_summary();
}
