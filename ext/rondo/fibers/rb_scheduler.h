/* SPDX-License-Identifier: MIT
 *
 * Rondo::Scheduler: what Ruby asks when a fiber waits (Fiber::Scheduler), as an object. Each thread
 * has its own. The hooks are in rb_scheduler_waits.c and rb_scheduler_io.c.
 */
#ifndef RD_FIBERS_SCHEDULER_H
#define RD_FIBERS_SCHEDULER_H

#include "fibers/rb_fibers.h"

typedef struct rd_scheduler {
    rd_fibers fibers;
    rd_loop loop; /* its own: no server runs its turns */
    rd_fd_waiters waiters;
    rd_ready_set found;
    unsigned forks; /* of this process when it was made */
    VALUE thread;   /* that has its fibers; Qfalse: none yet */
    VALUE reason;   /* `$!` when it was made */
    bool is_open, was_open;
} rd_scheduler;

/* Raises if it is closed, or has fibers of another thread. */
rd_scheduler *rd_scheduler_of(VALUE self);

/* The same, on any thread. */
rd_scheduler *rd_scheduler_of_any(VALUE self);

/* Whether this process is a child that was forked in one of its fibers: the poller is the parent's,
 * and no other fiber goes on here. If so the thread has no scheduler any more, and the hook does
 * what Ruby does without one. */
bool rd_scheduler_is_left(const rd_scheduler *scheduler);

void rd_init_scheduler(VALUE rondo);

#endif
