/* SPDX-License-Identifier: MIT
 *
 * Limits of time on blocks that fibers run (Timeout). When the time is up, the error is raised
 * where the fiber waits, or where its strand does.
 *
 *   set ──(due)──▶ in a parking ──▶ raised there
 *    ▲    (nobody waits, or something else ends that wait)
 *    └──────── asked again ────────┘
 *
 * A wait that `unblock` has ended is left alone: a mutex or the element of a queue may be there for
 * this fiber alone, and would be lost. The limit is asked again soon, and raises in the next wait.
 */
#ifndef RD_FIBERS_LIMITS_H
#define RD_FIBERS_LIMITS_H

#include "fibers/rb_fibers.h"

typedef struct rd_limit {
    rd_list node; /* in rd_fibers.limits */
    rd_deadline deadline;
    rd_fibers *fibers;
    rd_parking *parking; /* that will raise it */
    VALUE fiber, strand;
    VALUE error; /* class and message */
} rd_limit;

/* A limit from now on until the end, for a fiber of a strand. UINT64_MAX: none. `on_due` calls
 * rd_limit_raise_in(). */
rd_limit *rd_limit_begin(rd_fibers *fibers, VALUE fiber, VALUE strand, uint64_t due_ns,
                         void (*on_due)(rd_deadline *deadline));
void rd_limit_end(rd_limit *limit);

/* The time is up. `parking` is the wait of the fiber or its strand; NULL: neither waits. */
void rd_limit_raise_in(rd_limit *limit, rd_parking *parking);

/* Its parking raises it now. Returns the error. */
VALUE rd_limit_take(rd_limit *limit);

/* Its parking does not raise it. */
void rd_limit_ask_again(rd_limit *limit);

void rd_limits_mark(const rd_fibers *fibers);
void rd_limits_free(rd_fibers *fibers);

#endif
