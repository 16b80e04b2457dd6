/* SPDX-License-Identifier: MIT
 *
 * Hooks for waits without a descriptor of the application; see rb_scheduler_waits.h.
 */
#include "fibers/rb_scheduler_waits.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fibers/rb_limits.h"
#include "fibers/rb_scheduler.h"

/* ---- sleep, locks, queues ---- */

/* Returns whether it was unblocked. */
static bool wait_unblocked(rd_scheduler *scheduler, VALUE timeout) {
    rd_fibers *fibers = &scheduler->fibers;
    const uint64_t due_ns = rd_fibers_deadline(timeout);
    if (rd_fibers_take_permit(fibers)) return true;
    rd_parking *parking = rd_parking_begin(fibers);
    parking->unblocks = true;
    if (due_ns != UINT64_MAX) rd_deadline_set(&fibers->deadlines, &parking->deadline, due_ns);
    return rd_fibers_park(parking) > 0;
}

/* Kernel#sleep, Mutex#sleep.
 * @overload kernel_sleep(seconds = nil)
 *   @param seconds [Numeric, nil] nil: until it is unblocked
 * @return [true] */
static VALUE kernel_sleep(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 1);
    rd_scheduler *scheduler = rd_scheduler_of(self);
    if (rd_scheduler_is_left(scheduler)) {
        return rb_funcallv(rb_mKernel, rb_intern("sleep"), argc, argv);
    }
    wait_unblocked(scheduler, argc > 0 ? argv[0] : Qnil);
    return Qtrue;
}

/* Mutex#lock, Queue#pop, Thread#join and so on.
 * @overload block(blocker, timeout = nil)
 *   @param blocker [Object] what it waits for
 *   @param timeout [Numeric, nil] seconds
 * @return [Boolean] whether it was unblocked; it may be by mistake */
static VALUE block(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 2);
    rd_scheduler *scheduler = rd_scheduler_of(self);
    if (rd_scheduler_is_left(scheduler)) return Qfalse; /* the caller looks again, without us */
    return wait_unblocked(scheduler, argc > 1 ? argv[1] : Qnil) ? Qtrue : Qfalse;
}

/* Any thread.
 * @param blocker [Object] what the fiber waits for
 * @param fiber [Fiber]
 * @return [nil] */
static VALUE unblock(VALUE self, VALUE blocker, VALUE fiber) {
    (void)blocker;
    rd_fibers_unblock(&rd_scheduler_of_any(self)->fibers, fiber);
    return Qnil;
}

/* Another thread or fiber ends the wait of this one, because it closes what that waits for.
 * @param fiber [Fiber]
 * @param error [Exception] what it gets
 * @return [nil] */
static VALUE fiber_interrupt(VALUE self, VALUE fiber, VALUE error) {
    rd_fibers_raise(&rd_scheduler_of_any(self)->fibers, fiber, fiber, error);
    return Qnil;
}

/* Lets the other fibers run that can.
 * @return [nil] */
static VALUE yield_to_others(VALUE self) {
    rd_scheduler *scheduler = rd_scheduler_of(self);
    if (!rd_scheduler_is_left(scheduler)) wait_unblocked(scheduler, INT2FIX(0));
    return Qnil;
}

/* ---- Timeout ---- */

static VALUE end_limit(VALUE argument) {
    rd_limit_end((rd_limit *)argument);
    return Qnil;
}

/* Timeout.timeout.
 * @param seconds [Numeric]
 * @param error_class [Class] of what is raised where the block waits when time is up
 * @param message [String]
 * @yield [Numeric] the seconds
 * @return what the block returns */
static VALUE timeout_after(VALUE self, VALUE seconds, VALUE error_class, VALUE message) {
    rd_scheduler *scheduler = rd_scheduler_of(self);
    if (rd_scheduler_is_left(scheduler)) {
        VALUE timeout = rb_const_get(rb_cObject, rb_intern("Timeout"));
        VALUE arguments[] = {seconds, error_class, message};
        return rb_funcall_with_block(timeout, rb_intern("timeout"), 3, arguments, rb_block_proc());
    }
    rd_fibers *fibers = &scheduler->fibers;
    VALUE error = rb_assoc_new(error_class, message);
    rd_limit *limit = rd_fibers_limit(fibers, rb_fiber_current(), rd_fibers_strand(fibers), error,
                                      rd_fibers_deadline(seconds));
    return rb_ensure(rb_yield, seconds, end_limit, (VALUE)limit);
}

/* ---- child processes ---- */

static VALUE status_of(VALUE pid, int flags) {
    VALUE status = rb_const_get(rb_mProcess, rb_intern("Status"));
    return rb_funcall(status, rb_intern("wait"), 2, pid, INT2NUM(flags));
}

/* Waits until the process has ended. False: this system cannot say so. */
static bool wait_for_end(rd_fibers *fibers, pid_t pid) {
#ifdef SYS_pidfd_open
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
#else
    const int fd = -1;
    (void)pid;
#endif
    if (fd < 0) return false;
    rd_parking *parking = rd_parking_begin(fibers);
    parking->own_fd = fd;
    const int added = rd_parking_wait_for(parking, fd, RD_READABLE);
    if (added != 0) rd_run_list_add(&fibers->runnable, &parking->runnable, -1);
    return rd_fibers_park(parking) > 0;
}

/* Process.wait, `system`, backticks.
 * @param pid [Integer]
 * @param flags [Integer] of waitpid
 * @return [Process::Status, nil] */
static VALUE process_wait(VALUE self, VALUE pid, VALUE flags) {
    rd_scheduler *scheduler = rd_scheduler_of(self);
    const int wanted = NUM2INT(flags);
    if (rd_scheduler_is_left(scheduler)) return status_of(pid, wanted);
    const pid_t number = NUM2PIDT(pid);
    while (number > 0 && wanted == 0) {
        VALUE status = status_of(pid, WNOHANG);
        if (!NIL_P(status)) return status;
        if (!wait_for_end(&scheduler->fibers, number)) break;
    }
    return rb_funcall(self, rb_intern("wait_apart"), 2, pid, flags);
}

void rd_init_scheduler_waits(VALUE klass) {
    rb_define_method(klass, "kernel_sleep", kernel_sleep, -1);
    rb_define_method(klass, "block", block, -1);
    rb_define_method(klass, "unblock", unblock, 2);
    rb_define_method(klass, "fiber_interrupt", fiber_interrupt, 2);
    rb_define_method(klass, "yield", yield_to_others, 0);
    rb_define_method(klass, "timeout_after", timeout_after, 3);
    rb_define_method(klass, "process_wait", process_wait, 2);
}
