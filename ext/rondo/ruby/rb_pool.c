/* SPDX-License-Identifier: MIT
 *
 * Who runs the loop, and how many threads there are; see rb_pool.h. The thread that called run()
 * supervises: it makes threads, takes signals, and never calls the application.
 */
#include "ruby/rb_pool.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "ruby/rb_call.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_names.h"

#define BLOCKING_MAX     65536
#define BLOCKING_ENOUGH  1024 /* about one call of sixty-four */
#define BUSY_TURNS       4
#define YIELD_NS         1000000
#define KILL_PATIENCE_MS 1000

static uint32_t max_threads(const rd_binding *binding) {
    return (uint32_t)binding->server->settings.max_threads;
}

static void publish(const rd_binding *binding) {
    rd_score_slot *score = binding->server->score;
    atomic_store_explicit(&score->busy, binding->pool.active, memory_order_relaxed);
    atomic_store_explicit(&score->threads, binding->pool.threads, memory_order_relaxed);
}

static void count(_Atomic uint64_t *number) {
    uint64_t before = atomic_load_explicit(number, memory_order_relaxed);
    atomic_store_explicit(number, before + 1, memory_order_relaxed);
}

/* ---- calling for others ---- */

static bool arm(rd_pool *pool) {
    if (atomic_load(&pool->standbys) == 0) return false;
    if (!atomic_exchange(&pool->armed, true)) sem_post(&pool->standby);
    return true;
}

static void want_thread(rd_pool *pool) {
    if (!atomic_exchange(&pool->thread_wanted, true)) sem_post(&pool->supervisor);
}

static bool may_grow(const rd_binding *binding) {
    const rd_pool *pool = &binding->pool;
    return pool->threads - pool->waiting < max_threads(binding);
}

/* rd_server.need_thread: from the watch thread, without the GVL. */
static void need_thread(rd_server *server) {
    rd_binding *binding = server->owner;
    if (!arm(&binding->pool)) want_thread(&binding->pool);
}

/* Somebody has to go on with the loop; where nobody is left, the watch thread does what it can. */
static void give_loop_away(rd_binding *binding) {
    binding->pool.leader = NULL;
    if (!arm(&binding->pool) && may_grow(binding)) want_thread(&binding->pool);
}

/* Before a call: whoever goes on with the loop if it blocks is woken beforehand, when that is
 * likely, and queues for the GVL. Else the watch thread wakes it, a millisecond later. */
static void provide_standby(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    if (atomic_load_explicit(&pool->standbys, memory_order_relaxed) == 0) {
        if (may_grow(binding)) want_thread(pool);
    } else if (pool->blocking > BLOCKING_ENOUGH || pool->busy_turns > BUSY_TURNS) {
        arm(pool);
    }
}

/* ---- places in the application ---- */

typedef struct rd_resuming {
    rd_list node;
    sem_t granted;
    bool has_place;
} rd_resuming;

static bool has_place(const rd_binding *binding) {
    return binding->pool.active < max_threads(binding);
}

/* Those who were inside already come before new requests. */
static void grant_places(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    while (has_place(binding) && !rd_list_is_empty(&pool->resuming)) {
        rd_resuming *first = RD_CONTAINER(rd_list_shift(&pool->resuming), rd_resuming, node);
        first->has_place = true;
        pool->active++;
        sem_post(&first->granted);
    }
}

static void take_place(rd_binding *binding) {
    binding->pool.active++;
    publish(binding);
}

static void leave_place(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    pool->active--;
    if (!rd_list_is_empty(&pool->resuming)) grant_places(binding);
    publish(binding);
    /* A leader that slept because there was no place left looks again. */
    if (pool->active + 1 == max_threads(binding)) rd_loop_wakeup(&binding->server->loop);
}

static void enter_application(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    runner->in_application = runner->away = true;
    take_place(binding);
    provide_standby(binding);
}

static void leave_application(rd_runner *runner) {
    rd_pool *pool = &runner->binding->pool;
    runner->in_application = runner->away = false;
    leave_place(runner->binding);
    if (pool->leader == runner) {
        pool->blocking -= pool->blocking >> 8;
    } else {
        pool->blocking += (BLOCKING_MAX - pool->blocking) >> 3;
    }
}

bool rd_pool_step_out(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    bool leaves = pool->waiting < (uint32_t)binding->server->settings.max_parked_bodies;
    if (leaves) {
        pool->waiting++;
        leave_place(binding);
    }
    if (pool->leader == runner) give_loop_away(binding);
    return leaves;
}

static VALUE check_interrupts(VALUE unused) {
    (void)unused;
    rd_gvl_check_interrupts();
    return Qnil;
}

static int protected_interrupts(void) {
    int state = 0;
    rb_protect(check_interrupts, Qnil, &state);
    return state;
}

int rd_pool_step_in(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    rd_resuming self = {.has_place = false};
    int state = 0;
    sem_init(&self.granted, 0, 0);
    rd_list_append(&pool->resuming, &self.node);
    grant_places(binding);
    while (!self.has_place && state == 0) {
        rd_gvl_wait_semaphore(&self.granted, -1);
        state = protected_interrupts();
    }
    if (!self.has_place) { /* an exception does not wait for a place */
        rd_list_unlink(&self.node);
        pool->active++;
    }
    pool->waiting--;
    sem_destroy(&self.granted);
    publish(binding);
    return state;
}

rd_runner *rd_pool_current(rd_binding *binding) {
    VALUE thread = rb_thread_current();
    rd_list *all = &binding->pool.runners;
    for (rd_list *node = all->next; node != all; node = node->next) {
        rd_runner *runner = RD_CONTAINER(node, rd_runner, node);
        if (runner->thread == thread) return runner->in_application ? runner : NULL;
    }
    return NULL;
}

/* ---- the leader ---- */

static void end_all(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    pool->over = true;
    for (uint32_t i = 0; i < pool->threads; i++) sem_post(&pool->standby);
    sem_post(&pool->supervisor);
}

/* What a turn leaves to be done, as seen under the lock. */
typedef struct rd_left_over {
    bool done;     /* the server is */
    bool released; /* borrowed Strings are not needed any more */
    bool refused;  /* lines for the log */
} rd_left_over;

static rd_left_over turn(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_server *server = binding->server;
    rd_pool *pool = &binding->pool;
    rd_lock(binding);
    server->may_hold = pool->active == 0;
    rd_server_turn(server, rd_gvl_wait, has_place(binding));
    rd_left_over left = {rd_server_is_done(server), binding->released != NULL,
                         server->refusal_count > 0};
    bool slept = server->slept;
    rd_unlock(binding);
    pool->busy_turns = slept ? 0 : pool->busy_turns + 1;
    return left;
}

/* Threads that come back from a wait, or that lost the loop in the middle of a short call, need
 * the GVL now and not at the end of a time slice. One that computes for long takes its whole
 * slice then, so it is offered again only after as much time of the leader's. */
static void yield_to_others(rd_pool *pool) {
    if (pool->active == 0) return;
    uint64_t before = rd_clock_ns();
    if (before < pool->next_yield_ns) return;
    rb_thread_schedule();
    uint64_t after = rd_clock_ns();
    pool->next_yield_ns = after + (after - before > YIELD_NS ? after - before : YIELD_NS);
}

/* Logs may block: meanwhile another thread may take the loop. */
static void tidy_up(rd_runner *runner, rd_left_over left) {
    rd_binding *binding = runner->binding;
    if (left.released) rd_borrow_release_all(binding);
    if (!left.refused && binding->log_len == 0) return;
    runner->away = true;
    if (left.refused) rd_log_refusals(binding);
    if (binding->log_len > 0) rd_log_flush(binding);
    runner->away = false;
}

/* Answers that stand ready leave now: another thread has the loop, or nobody. */
static void hand_over(rd_binding *binding, rd_request *before) {
    rd_lock(binding);
    if (before != NULL) rd_server_let_go(binding->server, before);
    rd_conn_set_flush(&binding->server->conns);
    rd_unlock(binding);
}

/* Calls the application for a batch of requests; the state of a Thread#kill, or 0. */
static int serve_batch(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    rd_request *before = NULL;
    rd_call call;
    int killed = 0;
    while (binding->pool.leader == runner && has_place(binding)) {
        bool more = rd_call_begin(&call, runner, before);
        before = NULL;
        if (!more) return 0;
        enter_application(runner);
        before = rd_call_run(&call);
        if (rd_is_forked(binding)) return 0;
        leave_application(runner);
        killed = call.killed;
        if (killed != 0) break;
    }
    hand_over(binding, before);
    if (binding->pool.leader != runner && binding->log_len > 0) rd_log_flush(binding);
    return killed;
}

static VALUE lead(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    while (pool->leader == runner && !pool->over) {
        rd_left_over left = turn(runner);
        rd_gvl_check_interrupts();
        tidy_up(runner, left);
        if (left.done) {
            end_all(binding);
            return Qtrue;
        }
        yield_to_others(pool);
        int killed = serve_batch(runner);
        if (rd_is_forked(binding)) return Qfalse;
        if (killed != 0) rb_jump_tag(killed);
    }
    return Qtrue;
}

/* ---- the life of a thread ---- */

/* Whether the thread could go on if it had the GVL: its time slice ended. */
static bool is_preempted(const rd_runner *runner) {
    return !RTEST(rb_funcallv(runner->thread, rd_id.is_stopped, 0, NULL));
}

static bool takes_loop(rd_runner *runner) {
    rd_pool *pool = &runner->binding->pool;
    rd_runner *before = pool->leader;
    if (before != NULL && !before->away) return false;
    if (before != NULL) count(&runner->binding->server->score->takeovers);
    pool->leader = runner;
    /* Whoever lost it in the middle of a short call goes on at once; the others have to wait for
     * a while, so that most requests are begun without giving way. */
    bool gives_way = before != NULL && is_preempted(before);
    pool->next_yield_ns = gives_way ? 0 : rd_clock_ns() + YIELD_NS;
    runner->away = false;
    return true;
}

static bool may_retire(const rd_binding *binding) {
    const rd_pool *pool = &binding->pool;
    uint32_t kept = (uint32_t)binding->server->settings.min_threads;
    if (kept < 2 && max_threads(binding) > 1) kept = 2; /* a leader and its standby */
    return pool->threads - pool->waiting > kept && atomic_load(&pool->standbys) > 0;
}

/* Waits for its turn to run the loop; false: this thread is not needed any more. */
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

static void call_hook(rd_binding *binding, VALUE hook) {
    int state = 0;
    if (NIL_P(hook)) return;
    rb_protect(rd_call_hook, hook, &state);
    if (state == 0) return;
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    rd_report_error(binding, error);
}

/* False when the thread is not needed any more. */
static VALUE take_part(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    return become_leader(runner) ? lead(argument) : Qfalse;
}

/* What is raised into a thread outside of the application (a Timeout that comes too late) must not
 * take the thread down. */
static bool take_part_protected(rd_runner *runner) {
    rd_binding *binding = runner->binding;
    int state = 0;
    VALUE goes_on = rb_protect(take_part, (VALUE)runner, &state);
    runner->in_application = false;
    runner->away = true;
    if (rd_is_forked(binding)) return false;
    if (state == 0) return RTEST(goes_on);
    VALUE error = rb_errinfo();
    if (!rb_obj_is_kind_of(error, rb_eException)) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    rd_report_error(binding, error);
    return true;
}

static VALUE live(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    rd_binding *binding = runner->binding;
    call_hook(binding, binding->thread_start);
    while (take_part_protected(runner)) {
    }
    if (rd_is_forked(binding)) return Qnil;
    call_hook(binding, binding->thread_exit);
    return Qnil;
}

static VALUE end_life(VALUE argument) {
    rd_runner *runner = (rd_runner *)argument;
    rd_binding *binding = runner->binding;
    rd_pool *pool = &binding->pool;
    if (rd_is_forked(binding)) return Qnil;
    rd_list_unlink(&runner->node);
    rb_ary_delete(binding->threads, runner->thread);
    pool->threads--;
    publish(binding);
    if (pool->leader == runner) {
        pool->leader = NULL;
        arm(pool);
    }
    sem_post(&pool->supervisor);
    return Qnil;
}

static VALUE run_thread(void *argument) {
    rd_binding *binding = argument;
    VALUE self = binding->self; /* the server lives as long as its threads */
    rd_runner runner = {.binding = binding, .thread = rb_thread_current(), .away = true};
    rd_list_append(&binding->pool.runners, &runner.node);
    rb_ensure(live, (VALUE)&runner, end_life, (VALUE)&runner);
    if (!rd_is_forked(binding)) rd_binding_unref(binding);
    RB_GC_GUARD(self);
    return Qnil;
}

/* ---- the supervisor ---- */

static VALUE make_thread(VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    VALUE thread = rb_thread_create(run_thread, binding);
    rb_funcall(thread, rb_intern("name="), 1, rb_sprintf("rondo %u", binding->pool.threads));
    rb_funcall(thread, rb_intern("report_on_exception="), 1, Qfalse);
    rb_ary_push(binding->threads, thread);
    return Qnil;
}

static void add_thread(rd_binding *binding) {
    int state = 0;
    rd_binding_ref(binding);
    binding->pool.threads++;
    rb_protect(make_thread, (VALUE)binding, &state);
    if (state == 0) {
        publish(binding);
        return;
    }
    binding->pool.threads--;
    rd_binding_unref(binding);
    if (binding->pool.threads == 0) rb_jump_tag(state);
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    rd_report_error(binding, error); /* those there are go on */
}

static bool lacks_thread(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    bool wanted = atomic_exchange(&pool->thread_wanted, false);
    if (pool->over) return false;
    if (pool->threads < (uint32_t)binding->server->settings.min_threads) return true;
    return wanted && atomic_load(&pool->standbys) == 0 && may_grow(binding);
}

static VALUE supervise(VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    rd_pool *pool = &binding->pool;
    while (!pool->over || pool->threads > 0) {
        while (lacks_thread(binding)) add_thread(binding);
        rd_gvl_wait_semaphore(&pool->supervisor, -1);
        rd_gvl_check_interrupts();
        if (rd_is_forked(binding)) return Qnil;
    }
    return Qnil;
}

static VALUE end_thread(VALUE thread) {
    rb_funcall(thread, rb_intern("kill"), 0);
    return rb_funcall(thread, rb_intern("join"), 1, DBL2NUM(KILL_PATIENCE_MS / 1000.0));
}

/* This thread was told to end by an exception: everything ends at once. */
static void end_threads(rd_binding *binding) {
    rd_server_stop(binding->server, RD_STOP_NOW);
    end_all(binding);
    VALUE threads = rb_ary_dup(binding->threads);
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        int state = 0;
        rb_protect(end_thread, RARRAY_AREF(threads, i), &state);
    }
}

static VALUE end_run(VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    if (rd_is_forked(binding)) return Qnil;
    VALUE error = rb_errinfo();
    if (binding->pool.threads > 0) end_threads(binding);
    rd_watch_stop(binding->server);
    if (rd_server_is_stopping(binding->server)) {
        rd_lock(binding);
        rd_server_turn(binding->server, rd_gvl_wait, false); /* closes what is left */
        rd_unlock(binding);
    }
    RD_BINDING_SET(binding, supervisor, Qnil);
    if (binding->log_len > 0) rd_log_flush(binding);
    binding->running = false;
    rb_set_errinfo(error);
    return Qnil;
}

void rd_pool_run(rd_binding *binding) {
    int code = rd_watch_start(binding->server);
    if (code != 0) rb_syserr_fail(code, "cannot start the watch thread");
    binding->pool.over = false;
    binding->running = true;
    RD_BINDING_SET(binding, supervisor, rb_thread_current());
    rb_ensure(supervise, (VALUE)binding, end_run, (VALUE)binding);
}

void rd_pool_init(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    rd_list_init(&pool->runners);
    rd_list_init(&pool->resuming);
    sem_init(&pool->standby, 0, 0);
    sem_init(&pool->supervisor, 0, 0);
    atomic_init(&pool->standbys, 0);
    atomic_init(&pool->armed, false);
    atomic_init(&pool->thread_wanted, false);
    binding->server->owner = binding;
    binding->server->need_thread = need_thread;
    atomic_store(&binding->server->score->max_threads, max_threads(binding));
}

void rd_pool_clear(rd_binding *binding) {
    sem_destroy(&binding->pool.standby);
    sem_destroy(&binding->pool.supervisor);
}
