/* SPDX-License-Identifier: MIT
 *
 * Visits in fibers; see rb_fiber_calls.h.
 */
#include "threads/rb_fiber_calls.h"

#include <ruby/fiber/scheduler.h>

#include "base/alloc.h"
#include "base/apart.h"
#include "system/clock.h"
#include "fibers/rb_launcher.h"
#include "fibers/rb_scheduler.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "binding/rb_fork.h"
#include "binding/rb_pool.h"
#include "binding/rb_report.h"
#include "app/rb_dispatch.h"
#include "app/rb_events.h"
#include "threads/rb_serve.h"
#include "app/rb_task.h"

#define MOST_AT_ONCE 32  /* fibers that go on between two turns */
#define MOST_IDLE    256 /* fibers that are kept for later visits, with fiber_pool */

#define END_PATIENCE_NS 1000000000 /* with fibers that do not end when their thread does */

struct rd_fiber_calls {
    VALUE scheduler, block, idle, launcher; /* kept, and they stay where they are: keep() */
    rd_visit *begun;        /* what the fiber that begins now is for; NULL: none begins */
    rd_list spare;          /* rd_visit */
    int killed;             /* state of a Thread#kill that ended a fiber: the thread ends, too */
    bool others;            /* events or tasks wait */
    bool others_first;      /* in the fiber that was begun last */
    bool is_done;           /* the fiber that was begun last has left nothing for this turn */
    atomic_bool is_in_loop; /* the thread sleeps in the loop, not at `woken` */
};

/* ---- waiting ---- */

static rd_runner *runner_of(const rd_fibers *fibers) {
    return fibers->owner;
}

/* The thread sleeps, or is about to. Any thread, also under the loop lock. */
static void wake(rd_run_list *list) {
    rd_runner *runner = runner_of(RD_CONTAINER(list, rd_fibers, runnable));
    if (atomic_load(&runner->own->is_in_loop)) {
        rd_loop_interrupt(&runner->binding->server->loop);
    } else {
        rd_semaphore_post(&runner->woken);
    }
}

static void lock(rd_fibers *fibers) {
    rd_lock(runner_of(fibers)->binding);
}

static void unlock(rd_fibers *fibers) {
    rd_unlock(runner_of(fibers)->binding);
}

static bool is_left(const rd_fibers *fibers) {
    return rd_is_forked(runner_of(fibers)->binding);
}

static int64_t until(uint64_t due_ns) {
    if (due_ns == UINT64_MAX) return -1;
    const uint64_t now = rd_clock_ns();
    return due_ns > now ? (int64_t)(due_ns - now) : 0;
}

static int64_t sooner(int64_t a, int64_t b) {
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void wait_apart(rd_fibers *fibers, uint64_t until_ns) {
    rd_runner *runner = runner_of(fibers);
    if (!rd_run_list_begin_sleep(&fibers->runnable)) return;
    const int64_t most_ns = until(until_ns);
    if (most_ns != 0) rd_gvl_wait_semaphore(&runner->woken, most_ns);
    rd_run_list_end_sleep(&fibers->runnable);
}

bool rd_fiber_calls_sleep(rd_runner *runner, int64_t most_ns) {
    rd_fibers *fibers = runner->fibers;
    if (!rd_run_list_begin_sleep(&fibers->runnable)) return false;
    const int64_t own_ns = until(rd_deadlines_next(&fibers->deadlines));
    const int64_t least_ns = sooner(most_ns, own_ns);
    const bool woken = least_ns == 0 || rd_gvl_wait_semaphore(&runner->woken, least_ns);
    rd_run_list_end_sleep(&fibers->runnable);
    return !woken && own_ns != least_ns;
}

void rd_fiber_calls_wait(rd_server *server, int64_t timeout_us) {
    const rd_binding *binding = server->hooks.owner;
    rd_runner *runner = binding->pool.leader;
    rd_fibers *fibers = runner->fibers;
    atomic_store(&runner->own->is_in_loop, true);
    const bool sleeps = rd_run_list_begin_sleep(&fibers->runnable);
    const int64_t own_ns = until(rd_deadlines_next(&fibers->deadlines));
    const int64_t own_us = own_ns < 0 ? -1 : (own_ns + 999) / 1000;
    rd_gvl_wait(server, sleeps ? sooner(timeout_us, own_us) : 0);
    rd_run_list_end_sleep(&fibers->runnable);
    atomic_store(&runner->own->is_in_loop, false);
}

static const rd_fibers_ops server_loop = {wait_apart, lock, unlock, is_left};

/* ---- in a fiber ---- */

static void spare(rd_visit *visit) {
    rd_list_unlink(&visit->node);
    rd_list_append(&visit->runner->own->spare, &visit->node);
}

/* Every second fiber runs events and tasks first: requests that all wait would use up all fibers of
 * a turn. */
static bool serve_both(rd_visit *visit, int *killed) {
    rd_fiber_calls *own = visit->runner->own;
    own->others_first = own->others && !own->others_first;
    if (!own->others_first) return rd_serve(visit, own->others, killed);
    return rd_serve_others(visit, killed) && rd_serve(visit, false, killed);
}

/* If the fiber has not waited, the hub still waits for it. */
static void serve(rd_visit *visit) {
    rd_runner *runner = visit->runner;
    rd_fiber_calls *own = runner->own;
    int killed = 0;
    runner->fibers->context = visit;
    const bool is_done = serve_both(visit, &killed);
    if (rd_is_forked(runner->binding)) return;
    if (visit->round == runner->round) own->is_done = is_done;
    if (killed != 0) own->killed = killed; /* Ruby 3.1 would raise a TypeError in the hub */
}

/* Waits for the next visit. False: it is too many, or it is not like a new one. */
static bool rest(const rd_visit *visit) {
    rd_runner *runner = visit->runner;
    if (runner->own->killed != 0 || RARRAY_LEN(runner->own->idle) >= MOST_IDLE) return false;
    if (!rd_visit_has_left_nothing(visit)) return false;
    rb_ary_push(runner->own->idle, visit->fiber);
    rd_fibers_rest(runner->fibers);
    return true;
}

/* Code that knows the fiber may switch to it while it rests. */
static rd_visit *take_begun(rd_runner *runner) {
    while (runner->own->begun == NULL) rd_fibers_rest(runner->fibers);
    rd_visit *visit = runner->own->begun;
    runner->own->begun = NULL;
    return visit;
}

/* The whole life of a fiber. */
static VALUE live(RB_BLOCK_CALL_FUNC_ARGLIST(yielded, owner)) {
    (void)yielded, (void)argc, (void)argv, (void)blockarg;
    rd_runner *runner = (rd_runner *)owner;
    VALUE fiber = rb_fiber_current();
    bool rests;
    do {
        rd_visit *visit = take_begun(runner);
        visit->fiber = fiber;
        serve(visit);
        if (rd_is_forked(runner->binding)) return Qnil; /* the parent has the runner */
        /* The hub goes on with the next one of its batch, which may block the thread. */
        if (visit->round != runner->round) runner->away = true;
        spare(visit);
        rests = rest(visit);
    } while (rests);
    return Qnil;
}

/* ---- at the hub ---- */

static rd_visit *take_visit(rd_runner *runner) {
    rd_list *node = rd_list_shift(&runner->own->spare);
    rd_visit *visit = node != NULL ? RD_CONTAINER(node, rd_visit, node) : rd_alloc(sizeof(*visit));
    *visit = (rd_visit){
        .runner = runner, .strand = &rd_fiber_strand, .fiber = Qfalse, .round = ++runner->round};
    rd_list_append(&runner->binding->pool.visits, &visit->node);
    return visit;
}

static VALUE begin_new_fiber(VALUE argument) {
    const rd_runner *runner = (const rd_runner *)argument;
    rd_fibers_start(runner->fibers, rd_scheduler_new_fiber(runner->own->block));
    return Qnil;
}

/* The thread itself is the visit, and waits in it. */
RD_APART static void serve_at_hub(rd_visit *visit) {
    rb_set_errinfo(Qnil);
    visit->strand = &rd_thread_strand;
    serve(visit);
    if (rd_is_forked(visit->runner->binding)) return;
    visit->runner->fibers->context = NULL;
    spare(visit);
}

/* One that rests; nil: none does. The application may have ended it by Fiber#raise. */
static VALUE take_idle(const rd_fiber_calls *own) {
    VALUE fiber;
    do {
        fiber = rb_ary_pop(own->idle);
    } while (!NIL_P(fiber) && !RTEST(rb_fiber_alive_p(fiber)));
    return fiber;
}

/* No stack is left for one more fiber. What waits is taken when a call has ended; if there is none,
 * by the thread itself. */
static void do_without(rd_visit *visit) {
    rd_pool *pool = &visit->runner->binding->pool;
    if (pool->active == 0) {
        serve_at_hub(visit);
        return;
    }
    spare(visit);
    rb_set_errinfo(Qnil);
    pool->places = pool->active;
}

/* A new fiber has raised, or has not begun. */
RD_APART static void take_failure(rd_runner *runner, int state) {
    VALUE error = rb_errinfo();
    rd_visit *visit = runner->own->begun;
    runner->own->begun = NULL;
    if (visit != NULL && rd_is_fiber_error(error)) {
        do_without(visit);
        return;
    }
    if (visit != NULL) spare(visit);
    rb_jump_tag(state);
}

/* There was a stack again. */
static void note_success(rd_binding *binding) {
    if (binding->pool.places < rd_settings_places(&binding->server->settings))
        binding->pool.places++;
}

/* False: there is no memory for more fibers, so others have to go on first. */
static bool begin_fiber(rd_runner *runner) {
    rd_fiber_calls *own = runner->own;
    int state = 0;
    VALUE fiber = take_idle(own);
    own->begun = take_visit(runner);
    own->is_done = false;
    if (NIL_P(fiber)) {
        runner->fibers->launcher = own->launcher;
        rb_protect(begin_new_fiber, (VALUE)runner, &state);
        if (state != 0 && !rd_is_forked(runner->binding)) take_failure(runner, state);
    } else {
        runner->fibers->launcher = Qfalse; /* it has its stack */
        rd_fibers_start(runner->fibers, fiber);
    }
    if (rd_is_forked(runner->binding)) return false;
    runner->away = false;
    if (state == 0) note_success(runner->binding);
    return state == 0;
}

/* Whether the hub begins one more fiber, after one that waits. */
static bool begins_more(rd_runner *runner) {
    rd_fiber_calls *own = runner->own;
    if (rd_is_forked(runner->binding) || own->is_done || own->killed != 0) return false;
    if (runner->binding->pool.leader != runner || !rd_pool_has_place(runner->binding)) return false;
    return rd_serve_waits(runner->binding, &own->others);
}

void rd_fiber_calls_begin_some(rd_runner *runner, bool others) {
    if (!rd_pool_has_place(runner->binding)) return;
    runner->own->others = others;
    for (int left = MOST_AT_ONCE; left > 0; left--) {
        if (!begin_fiber(runner) || !begins_more(runner)) return;
    }
}

int rd_fiber_calls_killed(const rd_runner *runner) {
    return runner->own->killed;
}

void rd_fiber_calls_go_on(rd_runner *runner, bool is_leader) {
    if (!rd_fibers_can_run(runner->fibers)) return;
    runner->round++;
    runner->away = true;
    rd_fibers_run_some(runner->fibers, is_leader ? MOST_AT_ONCE : UINT32_MAX);
    if (rd_is_forked(runner->binding)) return;
    runner->away = false;
    if (runner->binding->pool.leader != runner) rd_serve_hand_over(runner->binding, NULL);
}

/* ---- beginning and end ---- */

/* The thread may end by an exception, which leaves nothing of them on its stack. */
static void keep(rd_fiber_calls *own, void (*call)(VALUE *address)) {
    call(&own->scheduler);
    call(&own->block);
    call(&own->idle);
    call(&own->launcher);
}

void rd_fiber_calls_begin(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    const rd_scheduler_parts parts = {&server_loop, runner, &binding->waiters, wake};
    rd_fibers *fibers;
    VALUE block = rb_proc_new(live, (VALUE)runner), idle = rb_ary_new();
    VALUE scheduler = rd_scheduler_new(&parts, &fibers);
    VALUE launcher = rd_scheduler_new_fiber(rd_launcher_block(fibers));
    rd_launcher_begin(fibers, launcher);
    rd_fiber_calls *own = rd_alloc_zero(sizeof(*own));
    *own = (rd_fiber_calls){
        .scheduler = scheduler, .block = block, .idle = idle, .launcher = launcher};
    rd_list_init(&own->spare);
    keep(own, rb_gc_register_address);
    fibers->is_timed = binding->server->settings.slow_fiber_ms > 0;
    runner->own = own;
    runner->fibers = fibers;
    rd_thread_be_punctual(); /* a page that sleeps 5 ms: 4 % more requests a second */
    rb_fiber_scheduler_set(scheduler);
}

void rd_fiber_calls_at_hub(rd_runner *runner) {
    rd_fibers_begin_hub(runner->fibers);
}

bool rd_fiber_calls_are_over(const rd_runner *runner) {
    return runner->inside == 0 && runner->fibers->parked_count == 0;
}

static void free_visits(rd_list *visits) {
    for (rd_list *node; (node = rd_list_shift(visits)) != NULL;)
        rd_free(RD_CONTAINER(node, rd_visit, node));
}

/* Where a fiber waits, it gets the exception; what it does for its end may wait again. */
static VALUE let_end(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    rd_gvl_check_interrupts(); /* the thread does not sleep while one waits */
    rd_fiber_calls_go_on(runner, false);
    return Qnil;
}

/* An exception that is not the one of the end is the application's. */
static void report_left(rd_runner *runner) {
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    if (!rb_obj_is_kind_of(error, rb_eException)) return; /* the thread ends already */
    if (rb_obj_is_kind_of(error, rd_scheduler_stopped())) return;
    rd_report_error(runner->binding, error, Qnil);
}

/* What is raised in the thread now has nothing left to end. It is reported. */
static void call_at_the_end(VALUE (*call)(VALUE argument), rd_runner *runner) {
    int state = 0;
    rb_protect(call, (VALUE)runner, &state);
    if (state != 0) report_left(runner);
}

static VALUE end_all(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    const uint64_t until_ns = rd_clock_ns() + END_PATIENCE_NS;
    rd_fibers_begin_hub(runner->fibers);
    rd_fibers_raise_all(runner->fibers, rb_exc_new_cstr(rd_scheduler_stopped(), "the thread ends"));
    while (!rd_fiber_calls_are_over(runner) && rd_clock_ns() < until_ns) {
        if (!rd_fibers_can_run(runner->fibers)) rd_fiber_calls_sleep(runner, until(until_ns));
        call_at_the_end(let_end, runner);
        if (rd_is_forked(runner->binding)) break;
    }
    return Qnil;
}

static VALUE forget_scheduler(VALUE unused) {
    (void)unused;
    return rb_fiber_scheduler_set(Qnil);
}

/* A fiber that does not end keeps its stack, and the server: both may know each other. */
RD_APART static void leave_behind(rd_runner *runner) {
    rd_binding_ref(runner->binding);
}

bool rd_fiber_calls_end(rd_runner *runner) {
    if (runner->own == NULL) return true;
    if (!rd_is_forked(runner->binding) && !rd_fiber_calls_are_over(runner))
        call_at_the_end(end_all, runner);
    rd_fibers_stop_hub(runner->fibers);
    call_at_the_end(forget_scheduler, runner);
    if (!rd_is_forked(runner->binding) && !rd_fiber_calls_are_over(runner)) {
        leave_behind(runner);
        return false;
    }
    keep(runner->own, rb_gc_unregister_address);
    free_visits(&runner->own->spare);
    rd_free(runner->own);
    return true;
}
