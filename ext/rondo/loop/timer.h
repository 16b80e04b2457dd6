/* SPDX-License-Identifier: MIT
 *
 * A hierarchical timer wheel in milliseconds: five levels of 64 slots. Adding and cancelling are
 * list operations. A timer lives inside its owner. Belongs to a loop, under the loop lock.
 *
 *   level 0: 1 ms a slot   level 1: 64 ms   level 2: 4 s   level 3: 4.4 min   level 4: 4.7 h
 *
 * A timer stands at the level of the highest bit group in which its due time differs from now. So
 * every slot that can still fire lies ahead of now's slot of its level, and the next timer to fire
 * is in the first set bit of the lowest level that has one.
 */
#ifndef RD_LOOP_TIMER_H
#define RD_LOOP_TIMER_H

#include <stdint.h>

#include "base/list.h"

#define RD_TIMER_LEVELS 5
#define RD_TIMER_SLOTS  64

typedef struct rd_timer {
    rd_list node;
    uint64_t due; /* monotonic milliseconds; meaningful while linked */
    void (*on_due)(struct rd_timer *timer);
} rd_timer;

typedef struct rd_timer_wheel {
    uint64_t now;
    uint64_t occupied[RD_TIMER_LEVELS]; /* a bit for each slot; may still be set for an emptied
                                         * slot */
    rd_list slots[RD_TIMER_LEVELS][RD_TIMER_SLOTS];
} rd_timer_wheel;

void rd_timer_wheel_init(rd_timer_wheel *wheel, uint64_t now);

void rd_timer_init(rd_timer *timer, void (*on_due)(rd_timer *));

static inline int rd_timer_is_armed(const rd_timer *timer) {
    return rd_list_is_linked(&timer->node);
}

/* (Re)arms the timer. A due time in the past fires at the next advance. One more than twelve days
 * ahead is brought forward to twelve days. */
void rd_timer_set(rd_timer_wheel *wheel, rd_timer *timer, uint64_t due);

void rd_timer_cancel(rd_timer *timer);

/* Moves the wheel to `now` and calls on_due of every timer that is due. Each is unlinked before its
 * call; on_due may set and cancel any timer. */
void rd_timer_advance(rd_timer_wheel *wheel, uint64_t now);

/* When the wheel must be advanced next, never later than the earliest timer. UINT64_MAX: never. */
uint64_t rd_timer_next(const rd_timer_wheel *wheel);

#endif
