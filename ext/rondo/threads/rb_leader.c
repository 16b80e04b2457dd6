/* SPDX-License-Identifier: MIT
 *
 * An application thread: it waits as a standby, leads, retires. Also decides when the leader yields
 * the GVL. See rb_pool.h.
 */
#include "threads/rb_leader.h"

#include <ruby/fiber/scheduler.h>

#include "base/alloc.h"
#include "base/apart.h"
#include "system/clock.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_borrowed.h"
#include "binding/rb_fork.h"
#include "binding/rb_pool.h"
#include "binding/rb_report.h"
#include "binding/rb_strand.h"
#include "rack/rb_log.h"
#include "threads/rb_fiber_calls.h"
#include "threads/rb_serve.h"

#define YIELD_NS 1000000

static void count(_Atomic uint64_t *number) {
    uint64_t before = atomic_load_explicit(number, memory_order_relaxed);
    atomic_store_explicit(number, before + 1, memory_order_relaxed);
}

/* ---- the leader ---- */

/* What is to be done after a turn, as read under the lock. */
typedef struct rd_left_over {
    bool done;     /* the server has stopped */
    bool released; /* borrowed Strings are no longer needed */
    bool events;   /* or tasks wait for the application */
    bool requests; /* do */
    bool crowded;  /* another thread computes, as far as is known */
} rd_left_over;

/* A return from a sleep that took long was a yield, too. */
static void count_return(rd_pool *pool, const rd_lead *lead) {
    if (lead->return_ns < YIELD_NS) return;
    const uint64_t next_ns = lead->returned_ns + lead->return_ns;
    if (next_ns > pool->next_yield_ns) pool->next_yield_ns = next_ns;
}

static bool is_expected(rd_runner *runner) {
    const rd_binding *binding = runner->binding;
    if (runner->fibers != NULL && rd_fibers_can_run(runner->fibers)) return true;
    return rd_pool_has_place(binding) && !rd_list_is_empty(&binding->pool.aside);
}

static rd_left_over turn(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_server *server = binding->server;
    rd_pool *pool = &binding->pool;
    const bool is_expected_back = is_expected(runner);
    rd_server_wait wait = runner->fibers != NULL ? rd_fiber_calls_wait : rd_gvl_wait;
    rd_lock(binding);
    server->lead.may_hold = pool->active <= runner->inside;
    server->lead.expected = is_expected_back;
    server->lead.thread = runner->self;
    rd_server_turn(server, wait, rd_pool_has_place(binding));
    rd_left_over left = {rd_server_is_done(server), binding->lent.released != NULL,
                         server->events.ready_count > 0, rd_queue_has_requests(server),
                         pool->active > runner->inside || server->lead.way.was_called};
    runner->has_incidents = rd_has_incidents(&server->incidents);
    bool slept = server->lead.slept;
    if (slept) count_return(pool, &server->lead);
    rd_unlock(binding);
    pool->busy_turns = slept ? 0 : pool->busy_turns + 1;
    return left;
}

/* Threads that return from a wait, or that lost the loop during a short call, need the GVL now, not
 * at the end of a time slice. But a thread that computes for long then keeps it for its share. So
 * the leader yields again only after it has run for as long as the last yield took. */
static void yield_to_others(rd_pool *pool) {
    uint64_t before = rd_clock_ns();
    if (before < pool->next_yield_ns) return;
    rb_thread_schedule();
    uint64_t after = rd_clock_ns();
    pool->next_yield_ns = after + (after - before > YIELD_NS ? after - before : YIELD_NS);
}

/* Writing logs may block. Meanwhile another thread may take the loop. */
static void write_logs(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    if (!runner->has_incidents && binding->log.len == 0) return;
    rd_serve_hand_over(binding, NULL); /* sends answers first */
    runner->away = true;
    if (runner->has_incidents) rd_report_incidents(binding);
    if (binding->log.len > 0) rd_log_flush(binding);
    runner->away = false;
}

static int serve_in_fibers(rd_runner *runner, rd_left_over left) {
    if (left.requests || left.events) rd_fiber_calls_begin_some(runner, left.events);
    if (rd_is_forked(runner->binding)) return 0;
    rd_fiber_calls_go_on(runner, true);
    return rd_is_forked(runner->binding) ? 0 : rd_fiber_calls_killed(runner);
}

/* Between two turns the application runs. Returns the state of a Thread#kill, or 0. */
static int serve(rd_runner *runner, rd_left_over left) {
    int killed = 0;
    if (runner->fibers != NULL) return serve_in_fibers(runner, left);
    rd_serve(&runner->visit, left.events, &killed);
    return killed;
}

/* One turn, and what it brought. */
static void lead_once(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    const rd_left_over left = turn(runner);
    rd_gvl_check_interrupts();
    if (left.released) rd_borrowed_release_all(binding);
    if (left.done) {
        write_logs(runner);
        rd_pool_end(binding);
        return;
    }
    if (left.crowded) yield_to_others(pool);
    if (pool->begun) rd_pool_let_back_in(binding);
    const int killed = serve(runner, left);
    if (rd_is_forked(binding)) return; /* the parent has what is left */
    if (pool->leader == runner) rd_pool_let_back_in(binding);
    write_logs(runner);
    if (killed != 0) rb_jump_tag(killed);
}

static VALUE lead(rd_runner *runner) {
    const rd_pool *pool = &runner->binding->pool;
    while (pool->leader == runner && !pool->over) {
        lead_once(runner);
        if (rd_is_forked(runner->binding)) return Qfalse;
    }
    return Qtrue;
}

/* ---- the life of a thread ---- */

/* Whether the thread only waits for the GVL, because its time slice has ended. */
static bool is_preempted(const rd_runner *runner) {
    return !RTEST(rb_funcallv(runner->thread, rd_id.is_stopped, 0, NULL));
}

static bool takes_loop(rd_runner *runner) {
    rd_pool *pool = &runner->binding->pool;
    rd_runner *before = pool->leader;
    if (before != NULL && !before->away) return false;
    if (before != NULL) count(&runner->binding->server->score->takeovers);
    pool->leader = runner;
    /* A thread that lost the loop during a short call gets the GVL at once. Others wait a while, so
     * that the leader begins most requests without a yield. */
    bool gives_way = before != NULL && is_preempted(before);
    pool->next_yield_ns = gives_way ? 0 : rd_clock_ns() + YIELD_NS;
    runner->away = false;
    return true;
}

static bool may_retire(const rd_binding *binding) {
    const rd_pool *pool = &binding->pool;
    uint32_t kept = (uint32_t)binding->server->settings.min_threads;
    if (kept < 2 && rd_pool_max_threads(binding) > 1) kept = 2; /* a leader and its standby */
    return rd_pool_useful_threads(binding) > kept && atomic_load(&pool->standbys) > 0;
}

static int64_t reap_after_ns(const rd_binding *binding) {
    return binding->server->settings.reap_after_ms * INT64_C(1000000);
}

/* Waits for its turn to run the loop. False: this thread is not needed any more. */
static bool become_leader(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    while (!pool->over) {
        if (takes_loop(runner)) return true;
        rd_pool_begin_standby(runner);
        bool woken = rd_gvl_wait_semaphore(&runner->woken, reap_after_ns(binding));
        rd_pool_end_standby(runner);
        rd_gvl_check_interrupts();
        if (!woken && may_retire(binding)) return false;
    }
    return false;
}

static VALUE call_hook_object(VALUE hook) {
    return rb_funcallv(hook, rd_id.call, 0, NULL);
}

static void call_hook(rd_binding *binding, VALUE hook) {
    int state = 0;
    if (NIL_P(hook)) return;
    rb_protect(call_hook_object, hook, &state);
    if (state == 0) return;
    VALUE error = rb_errinfo();
    if (rd_ends_thread(error)) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    rd_report_error(binding, error, Qnil);
}

/* ---- with fibers ---- */

/* A thread that does not lead goes on with its fibers. False: it is not needed any more. */
static bool follow(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    const bool over = binding->pool.over;
    const bool empty = rd_fiber_calls_are_over(runner);
    if (over && runner->inside == 0) return false;
    if (!over) rd_pool_begin_standby(runner);
    const bool idle = rd_fiber_calls_sleep(runner, empty ? reap_after_ns(binding) : -1);
    if (!over) rd_pool_end_standby(runner);
    rd_gvl_check_interrupts();
    rd_fiber_calls_go_on(runner, false);
    if (rd_is_forked(binding)) return false;
    if (rd_fiber_calls_killed(runner) != 0) rb_jump_tag(rd_fiber_calls_killed(runner));
    return !idle || !may_retire(binding);
}

static VALUE take_part_in_fibers(rd_runner *runner) {
    const rd_binding *binding = runner->binding;
    const rd_pool *pool = &binding->pool;
    rd_fiber_calls_at_hub(runner);
    while (!rd_is_forked(binding)) {
        if (!pool->over && (pool->leader == runner || takes_loop(runner))) {
            runner->away = false;
            lead_once(runner);
        } else if (!follow(runner)) {
            break;
        }
    }
    return Qfalse;
}

/* False when the thread is not needed any more. */
static VALUE take_part(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    if (runner->fibers != NULL) return take_part_in_fibers(runner);
    return become_leader(runner) ? lead(runner) : Qfalse;
}

/* What is raised into a thread outside of the application (a Timeout that comes too late) must not
 * end the thread. */
static bool take_part_protected(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    int state = 0;
    VALUE goes_on = rb_protect(take_part, (VALUE)runner, &state);
    if (runner->visit.is_inside) runner->inside--;
    runner->visit.is_inside = false;
    runner->away = true;
    if (rd_is_forked(binding)) return false;
    if (state == 0) return RTEST(goes_on);
    VALUE error = rb_errinfo();
    if (!rb_obj_is_kind_of(error, rb_eException)) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    rd_report_error(binding, error, Qnil);
    return true;
}

/* A scheduler that the application has set stays, and the thread has no fibers of ours. */
static void begin_fibers(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    if (NIL_P(rb_fiber_scheduler_get())) {
        rd_fiber_calls_begin(runner);
    } else {
        rb_funcall(binding->app.reporter, rb_intern("report_foreign_scheduler"), 1,
                   rb_fiber_scheduler_get());
    }
}

static VALUE live(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    rd_binding *binding = runner->binding;
    call_hook(binding, binding->app.thread_start);
    if (rd_pool_has_fibers(binding)) begin_fibers(runner);
    while (!rd_is_forked(binding) && take_part_protected(runner)) {
    }
    return Qnil;
}

static VALUE leave(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    call_hook(runner->binding, runner->binding->app.thread_exit);
    return Qnil;
}

static void stop_leading(rd_runner *runner) {
    rd_pool *pool = &runner->binding->pool;
    if (pool->leader != runner) return;
    pool->leader = NULL;
    rd_pool_arm(pool);
}

static void end_life(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    if (rd_is_forked(binding)) return;
    rd_list_unlink(&runner->node);
    rd_list_unlink(&runner->visit.node);
    rb_ary_delete(binding->app.threads, runner->thread);
    pool->threads--;
    rd_pool_write_scores(binding);
    stop_leading(runner);
    rd_semaphore_post(&pool->supervisor);
}

/* The thread ends as it would have: by this exception, or by its end. */
static void end_by(int state, VALUE error) {
    if (rb_obj_is_kind_of(error, rb_eException)) rb_set_errinfo(error);
    if (rb_errinfo() == error) rb_jump_tag(state);
}

VALUE rd_leader_run_thread(void *argument) {
    rd_binding *binding = argument;
    VALUE self = binding->self; /* the server lives as long as its threads */
    VALUE thread = rb_thread_current();
    rd_runner *runner = rd_alloc_zero(sizeof(*runner));
    *runner =
        (rd_runner){.binding = binding, .thread = thread, .away = true, .self = rd_thread_self()};
    runner->visit = (rd_visit){.runner = runner, .strand = &rd_thread_strand, .fiber = Qfalse};
    rd_list_append(&binding->pool.runners, &runner->node);
    rd_list_append(&binding->pool.visits, &runner->visit.node);
    int state = 0; /* not rb_ensure(): continuations would run its end too early */
    rb_protect(live, (VALUE)runner, &state);
    VALUE error = rb_errinfo();
    if (!rd_is_forked(binding)) stop_leading(runner);
    const bool is_free = rd_fiber_calls_end(runner);
    if (state == 0 && !rd_is_forked(binding)) {
        rb_protect(leave, (VALUE)runner, &state);
        error = rb_errinfo();
    }
    end_life(runner);
    if (!rd_is_forked(binding)) rd_binding_unref(binding);
    if (is_free) rd_free(runner);
    if (state != 0) end_by(state, error);
    RB_GC_GUARD(thread);
    RB_GC_GUARD(self);
    return Qnil;
}
