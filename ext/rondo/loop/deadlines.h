/* SPDX-License-Identifier: MIT
 *
 * Deadlines in nanoseconds, in a heap: for waits of the application that the timer wheel is too
 * coarse for, such as a sleep of 200 microseconds. Setting and cancelling cost the logarithm of
 * their number. A deadline lives in its owner, which cancels it before it is freed. One owner, no
 * lock.
 */
#ifndef RD_LOOP_DEADLINES_H
#define RD_LOOP_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rd_deadline {
    uint64_t due_ns; /* monotonic; meaningful while it is set */
    uint32_t place;  /* in the heap, from 1; 0: not set */
    void (*on_due)(struct rd_deadline *deadline);
} rd_deadline;

typedef struct rd_deadlines {
    rd_deadline **heap;
    uint32_t count, room;
} rd_deadlines;

void rd_deadlines_init(rd_deadlines *deadlines);

/* The deadlines that are still set count as cancelled. */
void rd_deadlines_clear(rd_deadlines *deadlines);

static inline bool rd_deadline_is_set(const rd_deadline *deadline) {
    return deadline->place != 0;
}

/* Sets the deadline, or moves it to another time. */
void rd_deadline_set(rd_deadlines *deadlines, rd_deadline *deadline, uint64_t due_ns);

/* Does nothing if the deadline is not set. */
void rd_deadline_cancel(rd_deadlines *deadlines, rd_deadline *deadline);

/* When the first one is due. UINT64_MAX: none is set. */
uint64_t rd_deadlines_next(const rd_deadlines *deadlines);

/* Calls on_due of each that is due at `now_ns`, the earliest first. It is not set any more then,
 * and may be set again, for a later time; any other may be set or cancelled. */
void rd_deadlines_advance(rd_deadlines *deadlines, uint64_t now_ns);

#endif
