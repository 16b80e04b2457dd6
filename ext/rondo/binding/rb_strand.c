/* SPDX-License-Identifier: MIT
 *
 * Threads as strands; see rb_strand.h.
 */
#include "binding/rb_strand.h"

#include "ruby/rb_gvl.h"
#include "binding/rb_pool.h"

static bool thread_is_current(const rd_visit *visit) {
    return visit->runner->thread == rb_thread_current();
}

static void thread_raise(const rd_visit *visit, VALUE error_class, VALUE message) {
    rb_funcall(visit->runner->thread, rb_intern("raise"), 2, error_class, message);
}

static void thread_begin(rd_sleep *sleep) {
    rd_semaphore_init(&sleep->woken);
}

static bool thread_sleep(rd_sleep *sleep, int64_t timeout_ms) {
    return rd_gvl_wait_semaphore(&sleep->woken, timeout_ms);
}

static void thread_wake(rd_sleep *sleep) {
    rd_semaphore_post(&sleep->woken);
}

const rd_strand_ops rd_thread_strand = {
    .is_current = thread_is_current,
    .raise = thread_raise,
    .begin = thread_begin,
    .sleep = thread_sleep,
    .wake = thread_wake,
};
