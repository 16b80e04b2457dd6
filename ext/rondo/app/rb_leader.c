/* SPDX-License-Identifier: MIT
 *
 * An application thread: it waits as a standby, leads, retires. Also decides when the leader yields
 * the GVL. See rb_pool.h.
 */
#include "app/rb_leader.h"

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
#include "app/rb_dispatch.h"
#include "app/rb_events.h"
#include "app/rb_task.h"

#define YIELD_NS        1000000
#define EVENTS_PER_TURN 32

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
    bool crowded;  /* another thread computes, as far as is known */
} rd_left_over;

/* A return from a sleep that took long was a yield, too. */
static void count_return(rd_pool *pool, const rd_lead *lead) {
    if (lead->return_ns < YIELD_NS) return;
    const uint64_t next_ns = lead->returned_ns + lead->return_ns;
    if (next_ns > pool->next_yield_ns) pool->next_yield_ns = next_ns;
}

static rd_left_over turn(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_server *server = binding->server;
    rd_pool *pool = &binding->pool;
    rd_lock(binding);
    server->lead.may_hold = pool->active == 0;
    server->lead.expected = rd_pool_has_place(binding) && !rd_list_is_empty(&pool->aside);
    server->lead.thread = runner->self;
    rd_server_turn(server, rd_gvl_wait, rd_pool_has_place(binding));
    rd_left_over left = {rd_server_is_done(server), binding->lent.released != NULL,
                         server->events.ready_count > 0,
                         pool->active > 0 || server->lead.way.was_called};
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

/* Sends the answers that are ready, because another thread has the loop, or none. */
static void hand_over(rd_binding *binding, rd_request *before) {
    rd_lock(binding);
    if (before != NULL) rd_server_let_go(binding->server, before);
    rd_conn_set_flush(&binding->server->conns);
    rd_unlock(binding);
}

/* Writing logs may block. Meanwhile another thread may take the loop. */
static void write_logs(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    if (!runner->has_incidents && binding->log.len == 0) return;
    hand_over(binding, NULL); /* sends answers first */
    runner->away = true;
    if (runner->has_incidents) rd_report_incidents(binding);
    if (binding->log.len > 0) rd_log_flush(binding);
    runner->away = false;
}

/* Calls the application for a batch of requests. Returns the state of a Thread#kill, or 0. */
static int serve_batch(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_request *before = NULL;
    rd_call call;
    int killed = 0;
    while (binding->pool.leader == runner && rd_pool_has_place(binding)) {
        bool more = rd_call_begin(&call, runner, before);
        before = NULL;
        if (!more) return 0;
        rd_pool_enter(&runner->visit, call.request);
        before = rd_call_run(&call);
        if (rd_is_forked(binding)) return 0;
        rd_pool_leave(&runner->visit);
        killed = call.killed;
        if (killed != 0) break;
    }
    hand_over(binding, before);
    return killed;
}

/* Delivers events of upgraded connections to the application. Returns the state of a Thread#kill,
 * or 0. */
static int serve_events(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_event event = {.source = NULL};
    int killed = 0;
    for (int left = EVENTS_PER_TURN; killed == 0; left--) {
        bool goes_on = left > 0 && binding->pool.leader == runner && rd_pool_has_place(binding);
        rd_lock(binding);
        bool more = rd_server_next_event(binding->server, &event, goes_on);
        rd_unlock(binding);
        if (!more) break;
        rd_pool_enter(&runner->visit, NULL);
        killed = rd_event_dispatch(binding, &event);
        if (rd_is_forked(binding)) return 0;
        rd_pool_leave(&runner->visit);
    }
    if (event.source != NULL) { /* killed */
        rd_lock(binding);
        rd_server_next_event(binding->server, &event, false);
        rd_unlock(binding);
    }
    return killed;
}

/* Runs tasks for as long as a batch of requests may take. Returns the state of a Thread#kill, or
 * 0. */
RD_APART static int serve_tasks(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_task *task = NULL;
    int killed = 0;
    for (;;) {
        bool goes_on = killed == 0 && binding->pool.leader == runner && rd_pool_has_place(binding);
        task = rd_task_next(binding, task, goes_on);
        if (task == NULL) return killed;
        rd_pool_enter(&runner->visit, NULL);
        killed = rd_task_run(binding, task);
        if (rd_is_forked(binding)) return 0;
        rd_pool_leave(&runner->visit);
    }
}

static int serve_others(rd_runner *runner) {
    const int killed = serve_events(runner);
    return killed != 0 || rd_is_forked(runner->binding) ? killed : serve_tasks(runner);
}

static VALUE lead(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    while (pool->leader == runner && !pool->over) {
        rd_left_over left = turn(runner);
        rd_gvl_check_interrupts();
        if (left.released) rd_borrowed_release_all(binding);
        if (left.done) {
            write_logs(runner);
            rd_pool_end(binding);
            break;
        }
        if (left.crowded) yield_to_others(pool);
        if (pool->begun) rd_pool_let_back_in(binding);
        int killed = serve_batch(runner);
        if (rd_is_forked(binding)) return Qfalse; /* the parent has these events, too */
        if (left.events && killed == 0) killed = serve_others(runner);
        if (rd_is_forked(binding)) return Qfalse;
        if (pool->leader == runner) rd_pool_let_back_in(binding);
        write_logs(runner);
        if (killed != 0) rb_jump_tag(killed);
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
    return pool->threads - pool->waiting > kept && atomic_load(&pool->standbys) > 0;
}

/* Waits for its turn to run the loop. False: this thread is not needed any more. */
static bool become_leader(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    while (!pool->over) {
        if (takes_loop(runner)) return true;
        atomic_fetch_add(&pool->standbys, 1);
        bool woken = rd_gvl_wait_semaphore(&pool->standby, binding->server->settings.reap_after_ms);
        atomic_fetch_sub(&pool->standbys, 1);
        atomic_store(&pool->armed, false);
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

/* False when the thread is not needed any more. */
static VALUE take_part(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    return become_leader(runner) ? lead(argument) : Qfalse;
}

/* What is raised into a thread outside of the application (a Timeout that comes too late) must not
 * end the thread. */
static bool take_part_protected(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    int state = 0;
    VALUE goes_on = rb_protect(take_part, (VALUE)runner, &state);
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

static VALUE live(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    rd_binding *binding = runner->binding;
    call_hook(binding, binding->app.thread_start);
    while (!rd_is_forked(binding) && take_part_protected(runner)) {
    }
    if (rd_is_forked(binding)) return Qnil;
    call_hook(binding, binding->app.thread_exit);
    return Qnil;
}

static void end_life(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    if (rd_is_forked(binding)) return;
    rd_list_unlink(&runner->node);
    rb_ary_delete(binding->app.threads, runner->thread);
    pool->threads--;
    rd_pool_write_scores(binding);
    if (pool->leader == runner) {
        pool->leader = NULL;
        rd_pool_arm(pool);
    }
    rd_semaphore_post(&pool->supervisor);
}

VALUE rd_leader_run_thread(void *argument) {
    rd_binding *binding = argument;
    VALUE self = binding->self; /* the server lives as long as its threads */
    VALUE thread = rb_thread_current();
    rd_runner *runner = rd_alloc_zero(sizeof(*runner));
    *runner =
        (rd_runner){.binding = binding, .thread = thread, .away = true, .self = rd_thread_self()};
    runner->visit = (rd_visit){.runner = runner, .strand = &rd_thread_strand};
    rd_list_append(&binding->pool.runners, &runner->node);
    int state = 0; /* not rb_ensure(): continuations would run its end too early */
    rb_protect(live, (VALUE)runner, &state);
    end_life(runner);
    if (!rd_is_forked(binding)) rd_binding_unref(binding);
    rd_free(runner);
    if (state != 0) rb_jump_tag(state);
    RB_GC_GUARD(thread);
    RB_GC_GUARD(self);
    return Qnil;
}
