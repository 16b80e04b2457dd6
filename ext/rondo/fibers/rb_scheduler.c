/* SPDX-License-Identifier: MIT
 *
 * A scheduler with a loop of its own: its life, and the fibers it starts; see rb_scheduler.h.
 */
#include "fibers/rb_scheduler.h"

#include <pthread.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/thread.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "ruby/rb_error.h"

static VALUE scheduler_class, fiber_class, fiber_options, bare_options, stopped_error;
static ID new_id;
static unsigned forks;

static void count_fork(void) {
    forks++;
}

/* ---- waiting on its loop ---- */

static rd_own_loop *own_of(const rd_fibers *fibers) {
    return RD_CONTAINER(fibers, const rd_scheduler, fibers)->own;
}

typedef struct rd_loop_sleep {
    rd_own_loop *own;
    int64_t timeout_us;
} rd_loop_sleep;

static void *sleep_nogvl(void *argument) {
    rd_loop_sleep *sleep = argument;
    rd_loop_wait(&sleep->own->loop, &sleep->own->found, sleep->timeout_us);
    return NULL;
}

static int64_t timeout_until(uint64_t until_ns) {
    if (until_ns == UINT64_MAX) return -1;
    const uint64_t now = rd_clock_ns();
    return until_ns > now ? (int64_t)((until_ns - now + 999) / 1000) : 0;
}

/* Looks first without releasing the GVL: that costs more than the look. */
static void wait_on_loop(rd_fibers *fibers, uint64_t until_ns) {
    rd_own_loop *own = own_of(fibers);
    rd_loop_wait(&own->loop, &own->found, 0);
    if (own->found.count == 0 && rd_run_list_begin_sleep(&fibers->runnable)) {
        rd_loop_sleep sleep = {own, timeout_until(until_ns)};
        if (sleep.timeout_us != 0)
            rb_thread_call_without_gvl2(sleep_nogvl, &sleep, RUBY_UBF_IO, NULL);
        rd_run_list_end_sleep(&fibers->runnable);
    }
    rd_loop_lock(&own->loop);
    rd_loop_process(&own->loop, &own->found);
    rd_loop_unlock(&own->loop);
}

static void wake_loop(rd_run_list *list) {
    rd_loop_interrupt(&own_of(RD_CONTAINER(list, rd_fibers, runnable))->loop);
}

static void lock(rd_fibers *fibers) {
    rd_loop_lock(&own_of(fibers)->loop);
}

static void unlock(rd_fibers *fibers) {
    rd_loop_unlock(&own_of(fibers)->loop);
}

static bool is_forked(const rd_scheduler *scheduler) {
    return scheduler->forks != forks;
}

static bool is_left(const rd_fibers *fibers) {
    return is_forked(RD_CONTAINER(fibers, const rd_scheduler, fibers));
}

static const rd_fibers_ops own_loop = {wait_on_loop, lock, unlock, is_left};

/* ---- life ---- */

static void clear_waiters(rd_own_loop *own) {
    rd_loop_lock(&own->loop);
    rd_waiters_clear(&own->waiters);
    rd_loop_unlock(&own->loop);
}

static void release_loop(rd_own_loop *own, bool is_parents) {
    if (is_parents) {
        rd_loop_abandon(&own->loop);
    } else {
        clear_waiters(own);
        rd_loop_clear(&own->loop);
    }
    rd_free(own);
}

static void release(rd_scheduler *scheduler) {
    if (!scheduler->is_open) return;
    scheduler->is_open = false;
    rd_fibers_close(&scheduler->fibers, is_forked(scheduler));
    if (scheduler->own != NULL) release_loop(scheduler->own, is_forked(scheduler));
    scheduler->own = NULL;
}

static void scheduler_free(void *pointer) {
    rd_scheduler *scheduler = pointer;
    if (scheduler->is_open && scheduler->own == NULL) return; /* the process ends */
    release(scheduler);
    rd_thread_value_free(&scheduler->value);
    if (scheduler->was_open) rd_fibers_free(&scheduler->fibers);
    rd_free(scheduler);
}

static void scheduler_mark(void *pointer) {
    const rd_scheduler *scheduler = pointer;
    if (!scheduler->was_open) return;
    rd_thread_value_mark(&scheduler->value);
    rb_gc_mark(scheduler->thread);
    rb_gc_mark(scheduler->reason);
    if (scheduler->is_open) rd_fibers_mark(&scheduler->fibers);
}

static size_t scheduler_memory(const void *pointer) {
    const rd_scheduler *scheduler = pointer;
    return sizeof(*scheduler) + scheduler->value.count * sizeof(VALUE) +
           (scheduler->is_open ? rd_fibers_memory(&scheduler->fibers) : 0);
}

static const rb_data_type_t scheduler_type = {
    .wrap_struct_name = "Rondo::Scheduler",
    .function = {.dmark = scheduler_mark, .dfree = scheduler_free, .dsize = scheduler_memory},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE scheduler_allocate(VALUE klass) {
    return TypedData_Wrap_Struct(klass, &scheduler_type, rd_alloc_zero(sizeof(rd_scheduler)));
}

static rd_scheduler *get(VALUE self) {
    return rb_check_typeddata(self, &scheduler_type);
}

rd_scheduler *rd_scheduler_of_any(VALUE self) {
    rd_scheduler *scheduler = get(self);
    if (!scheduler->is_open) rb_raise(rd_eError, "the scheduler is closed");
    return scheduler;
}

/* The thread that uses it first has it. */
rd_scheduler *rd_scheduler_of(VALUE self) {
    rd_scheduler *scheduler = rd_scheduler_of_any(self);
    if (scheduler->thread == Qfalse) scheduler->thread = rb_thread_current();
    if (scheduler->thread != rb_thread_current())
        rb_raise(rd_eError, "the scheduler belongs to another thread");
    return scheduler;
}

bool rd_scheduler_is_left(const rd_scheduler *scheduler) {
    if (!is_forked(scheduler)) return false;
    rb_fiber_scheduler_set(Qnil);
    return true;
}

static void begin(rd_scheduler *scheduler, const rd_scheduler_parts *parts) {
    rb_funcall(scheduler_class, rb_intern("ask_for_names"), 0);
    rd_fibers_init(&scheduler->fibers, parts->ops, parts->waiters, parts->wake);
    scheduler->fibers.owner = parts->owner;
    scheduler->forks = forks;
    scheduler->thread = Qfalse;
    scheduler->reason = rb_gv_get("$!");
    scheduler->is_open = scheduler->was_open = true;
}

/* A scheduler with a loop of its own.
 * @raise [SystemCallError] no descriptor is left */
static VALUE scheduler_initialize(VALUE self) {
    rd_scheduler *scheduler = get(self);
    if (scheduler->was_open) rb_raise(rd_eError, "initialised twice");
    rd_own_loop *own = rd_alloc_zero(sizeof(*own));
    if (rd_loop_init(&own->loop, false) != 0) {
        rd_free(own);
        rb_sys_fail("scheduler");
    }
    rd_waiters_init(&own->waiters, &own->loop, RD_FIBERS_MOST_WAITERS);
    scheduler->own = own;
    begin(scheduler, &(rd_scheduler_parts){&own_loop, NULL, &own->waiters, wake_loop});
    rd_thread_value_prepare(self);
    return self;
}

VALUE rd_scheduler_new(const rd_scheduler_parts *parts, rd_fibers **fibers) {
    VALUE self = scheduler_allocate(scheduler_class);
    rd_scheduler *scheduler = get(self);
    begin(scheduler, parts);
    scheduler->thread = rb_thread_current();
    *fibers = &scheduler->fibers;
    return self;
}

/* Runs fibers until none waits. On the thread's own fiber.
 * @return [nil]
 * @raise [Error] it was called in a fiber
 * @raise what a fiber raises and does not rescue */
static VALUE scheduler_run(VALUE self) {
    rd_fibers_run(&rd_scheduler_of(self)->fibers);
    return Qnil;
}

/* @return [Integer] how many fibers wait */
static VALUE scheduler_waiting(VALUE self) {
    const rd_fibers *fibers = &rd_scheduler_of_any(self)->fibers;
    return UINT2NUM(fibers->parked_count - fibers->guests);
}

/* ---- the end ---- */

static VALUE end_close(VALUE self) {
    release(get(self));
    return Qnil;
}

/* Each fiber that waits is told to end; what it does for that may wait. */
static VALUE stop(VALUE self) {
    rd_scheduler *scheduler = rd_scheduler_of(self);
    rd_fibers_raise_all(&scheduler->fibers, rb_exc_new_cstr(stopped_error, "the thread ends"));
    for (int state = -1; state != 0;) {
        rb_protect(scheduler_run, self, &state);
        if (state == 0) break;
        if (!rb_obj_is_kind_of(rb_errinfo(), stopped_error)) rb_jump_tag(state);
        rb_set_errinfo(Qnil);
    }
    return Qnil;
}

VALUE rd_scheduler_stopped(void) {
    return stopped_error;
}

/* In an `ensure` clause only `$!` knows the exception. If it was there before, it is not the reason
 * of the end: a `rescue` clause uses a scheduler. */
static VALUE close_now(VALUE self) {
    VALUE reason = rb_gv_get("$!");
    return NIL_P(reason) || reason == get(self)->reason ? scheduler_run(self) : stop(self);
}

static void refuse_in_fiber(VALUE self) {
    const rd_scheduler *scheduler = get(self);
    if (!scheduler->is_open || is_forked(scheduler)) return;
    if (rd_scheduler_of(self)->fibers.hub != Qfalse) rb_raise(rd_eError, "closed in a fiber");
}

/* Called by Ruby when the thread ends, or gets another scheduler. Runs fibers until none waits. If
 * the thread ends by an exception, the fibers get one too: {Stopped}.
 * @return [nil]
 * @raise [Error] it was called in a fiber */
static VALUE scheduler_close(VALUE self) {
    rd_scheduler *scheduler = get(self);
    if (!scheduler->is_open) return Qnil;
    if (is_forked(scheduler)) return end_close(self);
    refuse_in_fiber(self);
    if (scheduler->own == NULL) return scheduler->fibers.parked_count > 0 ? Qnil : end_close(self);
    rd_thread_value_hold(&scheduler->value);
    return rb_ensure(close_now, self, end_close, self);
}

/* Runs fibers until none waits, and ends the scheduler.
 * @return [nil] */
static VALUE close_by_hand(VALUE self) {
    refuse_in_fiber(self); /* Ruby 3.3 forgets the scheduler also when its hook raises */
    if (rb_fiber_scheduler_get() == self) return rb_fiber_scheduler_set(Qnil);
    return scheduler_close(self);
}

/* @return [Boolean] whether it has ended */
static VALUE scheduler_is_closed(VALUE self) {
    return get(self)->is_open ? Qfalse : Qtrue;
}

/* ---- fibers ---- */

static VALUE new_fiber(VALUE options, VALUE block) {
    return rb_funcall_with_block_kw(fiber_class, new_id, 1, &options, block, RB_PASS_KEYWORDS);
}

VALUE rd_scheduler_new_fiber(VALUE block) {
    return new_fiber(bare_options, block);
}

/* Starts a fiber at once and returns when it waits, or has ended. `Fiber.schedule` calls it.
 * @overload fiber(**options, &block)
 *   @param options [Hash] of Fiber.new, where this Ruby knows them
 * @return [Fiber]
 * @raise what the block raises before it waits */
static VALUE scheduler_fiber(int argc, VALUE *argv, VALUE self) {
    rd_scheduler *scheduler = rd_scheduler_of(self);
    if (rd_scheduler_is_left(scheduler)) rb_raise(rd_eError, "a forked child has no scheduler");
    VALUE options = fiber_options;
    if (argc > 0) options = rb_funcall(fiber_options, rb_intern("merge"), 1, argv[argc - 1]);
    VALUE fiber = new_fiber(options, rb_block_proc());
    rd_fibers_start(&scheduler->fibers, fiber);
    return fiber;
}

static void init_constants(VALUE klass) {
    new_id = rb_intern("new");
    scheduler_class = klass;
    rb_gc_register_mark_object(klass);
    fiber_class = rb_const_get(rb_cObject, rb_intern("Fiber"));
    fiber_options = rb_hash_new();
    rb_hash_aset(fiber_options, ID2SYM(rb_intern("blocking")), Qfalse);
    rb_obj_freeze(fiber_options);
    bare_options = rb_hash_dup(fiber_options);
#ifdef HAVE_RB_FIBER_NEW_STORAGE
    rb_hash_aset(bare_options, ID2SYM(rb_intern("storage")), Qnil);
#endif
    rb_obj_freeze(bare_options);
    rb_gc_register_mark_object(fiber_class);
    rb_gc_register_mark_object(fiber_options);
    rb_gc_register_mark_object(bare_options);
}

/* Document-class: Rondo::Scheduler
 * Lets code that waits in a fiber wait without holding up its thread: `Fiber.set_scheduler`. */
void rd_init_scheduler(VALUE rondo) {
    VALUE klass = rb_define_class_under(rondo, "Scheduler", rb_cObject);
    pthread_atfork(NULL, NULL, count_fork);
    init_constants(klass);
    /* Document-class: Rondo::Scheduler::Stopped
     * What a fiber gets that still waits when its thread ends. */
    stopped_error = rb_define_class_under(klass, "Stopped", rb_eException);
    rb_gc_register_mark_object(stopped_error);
    rb_define_alloc_func(klass, scheduler_allocate);
    rb_define_method(klass, "initialize", scheduler_initialize, 0);
    rb_define_method(klass, "run", scheduler_run, 0);
    rb_define_method(klass, "waiting", scheduler_waiting, 0);
    rb_define_method(klass, "close", close_by_hand, 0);
    rb_define_method(klass, "scheduler_close", scheduler_close, 0);
    rb_define_method(klass, "closed?", scheduler_is_closed, 0);
    rb_define_method(klass, "fiber", scheduler_fiber, -1);
}
