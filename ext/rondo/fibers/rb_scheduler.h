/* SPDX-License-Identifier: MIT
 *
 * Rondo::Scheduler: what Ruby asks when a fiber waits (Fiber::Scheduler), as an object. Each thread
 * has its own. The hooks are in rb_scheduler_waits.c and rb_scheduler_io.c.
 */
#ifndef RD_FIBERS_SCHEDULER_H
#define RD_FIBERS_SCHEDULER_H

#include "fibers/rb_fibers.h"
#include "fibers/rb_thread_value.h"

/* A loop that no server runs. */
typedef struct rd_own_loop {
    rd_loop loop;
    rd_fd_waiters waiters;
    rd_ready_set found;
} rd_own_loop;

typedef struct rd_scheduler {
    rd_fibers fibers;
    rd_own_loop *own;      /* NULL: the loop is a server's */
    unsigned forks;        /* of this process when it was made */
    VALUE thread;          /* that has its fibers; Qfalse: none yet */
    VALUE reason;          /* `$!` when it was made */
    rd_thread_value value; /* from its close on */
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

/* What it is made of when its descriptors wait in another loop. `waiters` live longer than it. */
typedef struct rd_scheduler_parts {
    const rd_fibers_ops *ops;
    void *owner;
    rd_fd_waiters *waiters;
    void (*wake)(rd_run_list *list);
} rd_scheduler_parts;

/* A scheduler of this thread. Closing it does not run fibers. If one still waits then, it stays
 * open, and has to be kept. */
VALUE rd_scheduler_new(const rd_scheduler_parts *parts, rd_fibers **fibers);

/* The class of what a fiber gets that still waits when its thread ends. */
VALUE rd_scheduler_stopped(void);

/* A new fiber that does not block, so hooks are called in it. It does not run yet, and inherits no
 * storage: what the program has kept in its own is not the next request's. */
VALUE rd_scheduler_new_fiber(VALUE block);

void rd_init_scheduler(VALUE rondo);

#endif
