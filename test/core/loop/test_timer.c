/* SPDX-License-Identifier: MIT
 *
 * The timer wheel against a model that looks at every timer: random times, far jumps, cancelling
 * and re-arming while timers fire.
 */
#include "check.h"
#include "loop/timer.h"

enum { COUNT = 400 };

typedef struct probe {
    rd_timer timer;
    uint64_t due; /* the model; 0: not armed */
    unsigned fired;
} probe;

static probe probes[COUNT];
static rd_timer_wheel wheel;
static uint64_t seed = 42;

static uint64_t next_random(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void on_due(rd_timer *timer) {
    probe *fired = RD_CONTAINER(timer, probe, timer);
    CHECK(fired->due != 0 && fired->due <= wheel.now);
    CHECK(!rd_timer_is_armed(timer));
    fired->due = 0;
    fired->fired++;
}

static void arm(probe *one, uint64_t due) {
    rd_timer_set(&wheel, &one->timer, due);
    one->due = due > wheel.now ? due : wheel.now + 1;
}

static uint64_t random_span(void) {
    static const uint64_t spans[] = {1, 3, 63, 64, 65, 4095, 4096, 262144, 86400000};
    uint64_t span = spans[next_random() % 9]; /* first: C does not order two calls */
    return next_random() % (span + 1);
}

static void check_against_model(void) {
    uint64_t earliest = UINT64_MAX;
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK((probes[i].due != 0) == rd_timer_is_armed(&probes[i].timer));
        CHECK(probes[i].due == 0 || probes[i].due > wheel.now);
        if (probes[i].due != 0 && probes[i].due < earliest) earliest = probes[i].due;
    }
    CHECK(rd_timer_next(&wheel) <= earliest);
}

static void test_random_times(void) {
    rd_timer_wheel_init(&wheel, 1000000007);
    for (unsigned i = 0; i < COUNT; i++) rd_timer_init(&probes[i].timer, on_due);
    for (unsigned round = 0; round < 4000; round++) {
        probe *one = &probes[next_random() % COUNT];
        if (one->due != 0 && next_random() % 4 == 0) {
            rd_timer_cancel(&one->timer);
            one->due = 0;
        } else {
            arm(one, wheel.now + random_span());
        }
        if (round % 3 == 0) rd_timer_advance(&wheel, wheel.now + random_span() / 8);
        if (round % 50 == 0) check_against_model();
    }
    rd_timer_advance(&wheel, wheel.now + 100000000);
    check_against_model();
    for (unsigned i = 0; i < COUNT; i++) CHECK_INT(probes[i].due, 0);
    CHECK_INT(rd_timer_next(&wheel), UINT64_MAX);
}

static probe first, second;

static void cancel_second(rd_timer *timer) {
    (void)timer;
    first.fired++;
    rd_timer_cancel(&second.timer);
}

static void fire_again(rd_timer *timer) {
    if (++second.fired < 3) rd_timer_set(&wheel, timer, wheel.now + 5);
}

static void test_cancel_and_rearm_inside_on_due(void) {
    first.fired = second.fired = 0;
    rd_timer_wheel_init(&wheel, 10);
    rd_timer_init(&first.timer, cancel_second);
    rd_timer_init(&second.timer, fire_again);
    rd_timer_set(&wheel, &first.timer, 20);
    rd_timer_set(&wheel, &second.timer, 20);
    rd_timer_advance(&wheel, 30);
    CHECK_INT(first.fired, 1);
    CHECK_INT(second.fired, 0);
    rd_timer_set(&wheel, &second.timer, 31);
    for (uint64_t now = 31; now < 60; now++) rd_timer_advance(&wheel, now);
    CHECK_INT(second.fired, 3);
}

/* A timer beyond the end of the top level is neither early nor lost. */
static void test_across_the_top_level(void) {
    uint64_t edge = UINT64_C(1) << 30;
    first.fired = 0;
    rd_timer_wheel_init(&wheel, edge - 3);
    rd_timer_init(&first.timer, on_due);
    arm(&first, edge + 10);
    rd_timer_advance(&wheel, edge + 9);
    CHECK_INT(first.fired, 0);
    rd_timer_advance(&wheel, edge + 20);
    CHECK_INT(first.fired, 1);
}

int main(void) {
    test_random_times();
    test_cancel_and_rearm_inside_on_due();
    test_across_the_top_level();
    return check_summary();
}
