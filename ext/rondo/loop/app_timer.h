/* SPDX-License-Identifier: MIT
 *
 * Timers of the application, on the loop's wheel: a time in nanoseconds, however far ahead, up to a
 * limited number of timers. A timer is never early, and at most a millisecond and a turn late. It
 * lives in its owner, which cancels it before it is freed. Under the loop lock. If the loop sleeps,
 * the caller that sets a timer must wake it.
 */
#ifndef RD_LOOP_APP_TIMER_H
#define RD_LOOP_APP_TIMER_H

#include "loop/loop.h"

typedef struct rd_app_timers {
    rd_loop *loop;
    uint32_t count, limit; /* of the timers that are set */
} rd_app_timers;

typedef struct rd_app_timer {
    rd_timer timer;
    rd_app_timers *timers; /* NULL until the timer was set */
    uint64_t due_ns;       /* monotonic */
    /* The timer is no longer set. It may be set again, and any other timer set or cancelled. */
    void (*on_due)(struct rd_app_timer *timer);
} rd_app_timer;

void rd_app_timer_init(rd_app_timer *timer, void (*on_due)(rd_app_timer *timer));

/* Sets the timer, or moves it to another time. Returns false when too many timers are set. */
bool rd_app_timer_set(rd_app_timers *timers, rd_app_timer *timer, uint64_t due_ns);

/* Does nothing if the timer is not set. */
void rd_app_timer_cancel(rd_app_timer *timer);

#endif
