/* SPDX-License-Identifier: MIT
 *
 * Timers of the application, on the loop's wheel: a time in nanoseconds, however far ahead, and as
 * many as a limit allows. A timer is never early; it is at most a millisecond and a turn late. It
 * lives in its owner, who cancels it before it goes. Under the loop lock. When the loop sleeps,
 * whoever sets a timer wakes it.
 */
#ifndef RD_LOOP_APP_TIMER_H
#define RD_LOOP_APP_TIMER_H

#include "loop/loop.h"

typedef struct rd_app_timers {
    rd_loop *loop;
    uint32_t count, limit; /* of those that are set */
} rd_app_timers;

typedef struct rd_app_timer {
    rd_timer timer;
    rd_app_timers *timers; /* NULL until it was set */
    uint64_t due_ns;       /* monotonic */
    /* The timer is not set any more: it may be set again, and any other be set or cancelled. */
    void (*on_due)(struct rd_app_timer *timer);
} rd_app_timer;

void rd_app_timer_init(rd_app_timer *timer, void (*on_due)(rd_app_timer *timer));

/* Sets it, or sets it to another time. False: so many are set that this one is not. */
bool rd_app_timer_set(rd_app_timers *timers, rd_app_timer *timer, uint64_t due_ns);

/* Nothing if it is not set. */
void rd_app_timer_cancel(rd_app_timer *timer);

#endif
