/* SPDX-License-Identifier: MIT
 *
 * Timers in nanoseconds on a wheel of milliseconds; see app_timer.h.
 */
#include "loop/app_timer.h"

/* The wheel reaches twelve days ahead and brings a later time forward to that. */
static void arm(rd_app_timer *timer) {
    const uint64_t ms = timer->due_ns / 1000000, rest = timer->due_ns % 1000000;
    rd_timer_set(&timer->timers->loop->timers, &timer->timer, rest > 0 ? ms + 1 : ms);
}

static void on_wheel_due(rd_timer *of_wheel) {
    rd_app_timer *timer = RD_CONTAINER(of_wheel, rd_app_timer, timer);
    if (timer->timers->loop->now_ns < timer->due_ns) {
        arm(timer);
        return;
    }
    timer->timers->count--;
    timer->on_due(timer);
}

void rd_app_timer_init(rd_app_timer *timer, void (*on_due)(rd_app_timer *timer)) {
    *timer = (rd_app_timer){.on_due = on_due};
    rd_timer_init(&timer->timer, on_wheel_due);
}

bool rd_app_timer_set(rd_app_timers *timers, rd_app_timer *timer, uint64_t due_ns) {
    if (!rd_timer_is_armed(&timer->timer)) {
        if (timers->count >= timers->limit) return false;
        timers->count++;
    }
    timer->timers = timers;
    timer->due_ns = due_ns;
    arm(timer);
    return true;
}

void rd_app_timer_cancel(rd_app_timer *timer) {
    if (!rd_timer_is_armed(&timer->timer)) return;
    timer->timers->count--;
    rd_timer_cancel(&timer->timer);
}
