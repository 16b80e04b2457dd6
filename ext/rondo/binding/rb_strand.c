/* SPDX-License-Identifier: MIT
 *
 * Threads and fibers as strands; see rb_strand.h.
 */
#include "binding/rb_strand.h"

#include <string.h>

#include "system/clock.h"
#include "fibers/rb_limits.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_pool.h"

/* ---- threads ---- */

static bool thread_is_current(const rd_visit *visit) {
    return visit->runner->thread == rb_thread_current();
}

static bool thread_goes_on(const rd_visit *visit) {
    (void)visit;
    return true;
}

static void thread_raise(rd_visit *visit, VALUE error_class, VALUE message) {
    rb_funcall(visit->runner->thread, rb_intern("raise"), 2, error_class, message);
}

static VALUE thread_place(const rd_visit *visit) {
    return visit->runner->thread;
}

static bool thread_is_locked_out(const rd_visit *visit) {
    VALUE text = rb_funcall(visit->runner->thread, rb_intern("inspect"), 0);
    return strstr(StringValueCStr(text), " sleep_forever>") != NULL;
}

static void thread_begin(rd_sleep *sleep, rd_runner *runner) {
    (void)runner;
    rd_semaphore_init(&sleep->woken);
}

static bool thread_sleep(rd_sleep *sleep, int64_t timeout_ms) {
    return rd_gvl_wait_semaphore(&sleep->woken, timeout_ms < 0 ? -1 : timeout_ms * 1000000);
}

static int thread_raised(const rd_sleep *sleep) {
    (void)sleep;
    return rd_gvl_protected_interrupts();
}

static void thread_wake(rd_sleep *sleep) {
    rd_semaphore_post(&sleep->woken);
}

const rd_strand_ops rd_thread_strand = {
    .is_current = thread_is_current,
    .goes_on = thread_goes_on,
    .raise = thread_raise,
    .place = thread_place,
    .is_locked_out = thread_is_locked_out,
    .begin = thread_begin,
    .sleep = thread_sleep,
    .raised = thread_raised,
    .wake = thread_wake,
};

/* ---- fibers ---- */

static bool fiber_is_current(const rd_visit *visit) {
    return thread_is_current(visit) && visit->runner->fibers->context == visit;
}

bool rd_visit_has_left_nothing(const rd_visit *visit) {
    if (visit->runner->binding->server->settings.fiber_pool) return true;
    if (rb_ivar_count(visit->fiber) > 0) return false;
    if (RARRAY_LEN(rb_funcallv(visit->runner->thread, rd_id.keys, 0, NULL)) > 0) return false;
#ifdef HAVE_RB_FIBER_NEW_STORAGE
    if (!NIL_P(rb_funcallv(visit->fiber, rd_id.storage, 0, NULL))) return false;
#endif
    return true;
}

/* The hub has begun it, or has gone on, so others wait there by now. */
static bool fiber_goes_on(const rd_visit *visit) {
    rd_fibers_note_time(visit->runner->fibers);
    return visit->round == visit->runner->round && rd_visit_has_left_nothing(visit);
}

static rd_parking *parking_of(const rd_visit *visit) {
    return rd_fibers_find(visit->runner->fibers, visit->fiber, visit->fiber);
}

/* If it does not wait, its thread is in it. A wait that has been ended gives the visit what it
 * waited for, such as a Mutex, so the next one raises. */
static void fiber_raise(rd_visit *visit, VALUE error_class, VALUE message) {
    rd_parking *parking = parking_of(visit);
    if (parking == NULL) {
        thread_raise(visit, error_class, message);
    } else if (visit->limit == NULL) {
        VALUE error = rb_assoc_new(error_class, message);
        visit->limit =
            rd_fibers_limit(visit->runner->fibers, visit->fiber, visit->fiber, error, UINT64_MAX);
        rd_limit_raise_in(visit->limit, parking);
    }
}

void rd_visit_end_limit(rd_visit *visit) {
    if (visit->limit != NULL) rd_limit_end(visit->limit);
    visit->limit = NULL;
}

static VALUE fiber_place(const rd_visit *visit) {
    const rd_parking *parking = parking_of(visit);
    return parking == NULL ? visit->runner->thread : parking->fiber;
}

static bool fiber_is_locked_out(const rd_visit *visit) {
    const rd_parking *parking = parking_of(visit);
    return parking != NULL && parking->unblocks && !rd_deadline_is_set(&parking->deadline);
}

static void fiber_begin(rd_sleep *sleep, rd_runner *runner) {
    sleep->fibers = runner->fibers;
    sleep->gate = (rd_gate){.list = &runner->fibers->runnable};
    sleep->state = 0;
}

static VALUE park(VALUE argument) {
    rd_fibers_park((rd_parking *)argument);
    return Qnil;
}

static void leave_gate(rd_parking *parking, void *argument) {
    (void)parking;
    rd_sleep *sleep = argument;
    sleep->was_woken = rd_gate_leave(&sleep->gate);
}

static bool fiber_sleep(rd_sleep *sleep, int64_t timeout_ms) {
    rd_fibers *fibers = sleep->fibers;
    rd_parking *parking = rd_parking_begin(fibers);
    parking->undo = leave_gate;
    parking->undo_argument = sleep;
    rd_gate_wait(&sleep->gate, &parking->runnable);
    if (timeout_ms >= 0) {
        const uint64_t due_ns = rd_clock_ns() + (uint64_t)timeout_ms * 1000000;
        rd_deadline_set(&fibers->deadlines, &parking->deadline, due_ns);
    }
    rb_protect(park, (VALUE)parking, &sleep->state);
    return sleep->was_woken && sleep->state == 0;
}

static int fiber_raised(const rd_sleep *sleep) {
    return sleep->state;
}

static void fiber_wake(rd_sleep *sleep) {
    rd_gate_open(&sleep->gate);
}

const rd_strand_ops rd_fiber_strand = {
    .is_current = fiber_is_current,
    .goes_on = fiber_goes_on,
    .raise = fiber_raise,
    .place = fiber_place,
    .is_locked_out = fiber_is_locked_out,
    .begin = fiber_begin,
    .sleep = fiber_sleep,
    .raised = fiber_raised,
    .wake = fiber_wake,
};

/* ---- the code that runs now ---- */

rd_runner *rd_runner_current(const rd_binding *binding) {
    const VALUE thread = rb_thread_current();
    const rd_list *all = &binding->pool.runners;
    for (rd_list *node = all->next; node != all; node = node->next) {
        rd_runner *runner = RD_CONTAINER(node, rd_runner, node);
        if (runner->thread == thread) return runner;
    }
    return NULL;
}

/* Outside of all fibers, such as in a block that is called when the thread begins, the thread
 * sleeps. */
void rd_sleep_begin(rd_sleep *sleep, const rd_binding *binding) {
    rd_runner *runner = rd_runner_current(binding);
    const bool is_fiber =
        runner != NULL && runner->fibers != NULL && rd_fibers_strand(runner->fibers) != Qfalse;
    sleep->ops = is_fiber ? &rd_fiber_strand : &rd_thread_strand;
    sleep->ops->begin(sleep, runner);
}
