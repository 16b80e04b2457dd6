/* SPDX-License-Identifier: MIT
 *
 * Strands: what runs a visit of the application, a thread or a fiber of one. Code that waits inside
 * a call, or asks whose call it is, goes through a table of the strand's.
 */
#ifndef RD_BINDING_STRAND_H
#define RD_BINDING_STRAND_H

#include <ruby.h>
#include <stdbool.h>
#include <stdint.h>

#include "fibers/rb_fibers.h"
#include "system/semaphore.h"

typedef struct rd_binding rd_binding;
typedef struct rd_runner rd_runner;
typedef struct rd_visit rd_visit;
typedef struct rd_strand_ops rd_strand_ops;

/* One sleep inside a call, or between two checks, on the stack of the strand that sleeps. */
typedef struct rd_sleep {
    const rd_strand_ops *ops;
    rd_semaphore woken; /* what a thread waits for */
    rd_fibers *fibers;  /* of the fiber that sleeps */
    rd_gate gate;       /* what it waits for */
    bool was_woken;     /* it, in its last sleep */
    int state;          /* of what was raised in it during that, or 0 */
} rd_sleep;

struct rd_strand_ops {
    /* Whether the code that runs now belongs to this visit; so does what an Enumerator runs in a
     * fiber of its own. */
    bool (*is_current)(const rd_visit *visit);

    /* Whether the strand may run more, as the same visit, after it has run something. */
    bool (*goes_on)(const rd_visit *visit);

    /* Raises in the visit, from another thread. May raise itself. */
    void (*raise)(rd_visit *visit, VALUE error_class, VALUE message);

    /* The Thread or Fiber whose backtrace says where the visit is. May raise. */
    VALUE (*place)(const rd_visit *visit);

    /* Whether the visit sleeps until another one wakes it, for example at a Mutex. May raise. */
    bool (*is_locked_out)(const rd_visit *visit);

    void (*begin)(rd_sleep *sleep, rd_runner *runner);
    /* Sleeps until it is woken, at most timeout_ms (-1: for ever). True: it was woken. False: time
     * is up, or something was raised. Releases the GVL, or runs other fibers; never raises. */
    bool (*sleep)(rd_sleep *sleep, int64_t timeout_ms);
    /* What was raised in it meanwhile: the state of rb_protect(), or 0. */
    int (*raised)(const rd_sleep *sleep);
    /* Any thread, with or without the loop lock. */
    void (*wake)(rd_sleep *sleep);
};

/* Whether a visit has left nothing in its fiber, which runs now: no fiber-local variable, no
 * storage, no instance variable. Then the next visit finds the fiber like a new one. With the
 * setting fiber_pool that does not matter. */
bool rd_visit_has_left_nothing(const rd_visit *visit);

/* The visit has ended: nothing raises in its fiber any more. */
void rd_visit_end_limit(rd_visit *visit);

extern const rd_strand_ops rd_thread_strand;
extern const rd_strand_ops rd_fiber_strand;

/* The application thread of this server that runs now; NULL: this is another thread. */
rd_runner *rd_runner_current(const rd_binding *binding);

/* Begins a sleep of the code that runs now, on a thread of this server or another one. */
void rd_sleep_begin(rd_sleep *sleep, const rd_binding *binding);

#endif
