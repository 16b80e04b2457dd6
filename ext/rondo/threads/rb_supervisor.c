/* SPDX-License-Identifier: MIT
 *
 * The thread that called run(): makes application threads, takes signals and exceptions, reports
 * calls that take long. It never calls the application itself. See rb_pool.h.
 */
#include "threads/rb_supervisor.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "system/clock.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "binding/rb_pool.h"
#include "binding/rb_report.h"
#include "rack/rb_log.h"
#include "threads/rb_leader.h"
#include "app/rb_task.h"

#define KILL_PATIENCE_MS 1000

/* ---- threads ---- */

static VALUE make_thread(VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    VALUE thread = rb_thread_create(rd_leader_run_thread, binding);
    rb_ary_push(binding->app.threads, thread);
    return thread;
}

/* Calls methods, so a signal or an exception for this thread may be raised here. */
static void describe_thread(const rd_binding *binding, VALUE thread) {
    rb_funcall(thread, rb_intern("name="), 1, rb_sprintf("rondo %u", binding->pool.threads));
    rb_funcall(thread, rb_intern("report_on_exception="), 1, Qfalse);
}

/* False: the system gives no thread. The others go on, and the next demand tries again. */
static bool add_thread(rd_binding *binding) {
    int state = 0;
    rd_binding_ref(binding);
    binding->pool.threads++;
    VALUE thread = rb_protect(make_thread, (VALUE)binding, &state);
    if (state == 0) {
        rd_pool_write_scores(binding);
        describe_thread(binding, thread);
        return true;
    }
    binding->pool.threads--;
    rd_pool_write_scores(
        binding); /* other threads, which ran meanwhile, may have counted this one */
    rd_binding_unref(binding);
    VALUE error = rb_errinfo();
    bool serves_nobody = binding->pool.threads == 0 && !binding->pool.over; /* unless stopping */
    if (serves_nobody || rd_ends_thread(error)) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    rd_report_error(binding, error, Qnil);
    return false;
}

static bool lacks_thread(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    bool wanted = atomic_exchange(&pool->thread_wanted, false);
    if (pool->over) return false;
    if (pool->threads < (uint32_t)binding->server->settings.min_threads) return true;
    return wanted && atomic_load(&pool->standbys) == 0 && rd_pool_may_grow(binding);
}

/* ---- calls that take long ---- */

/* hooks.need_attention: any thread, without the GVL. */
static void need_attention(rd_server *server) {
    rd_pool *pool = &((rd_binding *)server->hooks.owner)->pool;
    atomic_store(&pool->attention_wanted, true);
    rd_semaphore_post(&pool->supervisor);
}

static const rd_request *first_reported(const rd_server *server) {
    for (rd_list *node = server->calls.active.next; node != &server->calls.active;
         node = node->next) {
        const rd_request *call = RD_CONTAINER(node, rd_request, in_queue);
        if (call->reported || call->hung) return call;
    }
    return NULL;
}

/* Copies as much as there is room for. Bytes that could control a terminal become \xHH. */
static int make_visible(char *to, size_t room, rd_slice text) {
    size_t len = 0;
    for (size_t i = 0; i < text.len && len + 5 <= room; i++) {
        const unsigned char byte = (unsigned char)text.ptr[i];
        const bool is_plain = byte >= 0x20 && byte < 0x7f;
        len += (size_t)snprintf(to + len, room - len, is_plain ? "%c" : "\\x%02X", byte);
    }
    return (int)len;
}

/* hooks.unheard: C code holds the GVL, so Ruby cannot write this line, and there is no backtrace.
 * It never blocks: the loop lock is held, and a pipe without a reader must not stop the loop. */
static void unheard(rd_server *server) {
    char line[512], verb[16], path[256];
    struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};
    const rd_request *call = first_reported(server);
    if (call == NULL || poll(&err, 1, 0) != 1) return;
    int verb_len = make_visible(verb, sizeof(verb), rd_request_slice(call, call->head.method));
    int path_len = make_visible(path, sizeof(path), rd_request_slice(call, call->head.path));
    double seconds = (double)(server->loop.now_ns - call->times.taken_ns) / 1e9;
    int len =
        snprintf(line, sizeof(line),
                 "! %.*s %.*s: %.1f s in the application, which blocks all of Ruby "
                 "(no backtrace: C code holds the GVL)%s\n",
                 verb_len, verb, path_len, path, seconds, call->hung ? ", given up (503)" : "");
    if (write(STDERR_FILENO, line, (size_t)len) < 0) return; /* the log cannot be written either */
}

static VALUE report_by(rd_visit *visit, ID method_of_reporter) {
    const rd_request *request = visit->request;
    rd_slice method = rd_request_slice(request, request->head.method);
    rd_slice path = rd_request_slice(request, request->head.path);
    uint64_t ms = (rd_clock_ns() - request->times.taken_ns) / 1000000;
    VALUE env = visit->call != NULL ? visit->call->env : Qnil;
    return rb_funcall(visit->runner->binding->app.reporter, method_of_reporter, 5,
                      rb_str_new(method.ptr, (long)method.len),
                      rb_str_new(path.ptr, (long)path.len), DBL2NUM((double)ms / 1000),
                      visit->strand->place(visit), env);
}

static VALUE report_slow(VALUE argument) {
    return report_by((rd_visit *)argument, rb_intern("report_slow"));
}

static VALUE report_hung(VALUE argument) {
    return report_by((rd_visit *)argument, rb_intern("report_hung"));
}

VALUE rd_supervisor_in_flight(rd_binding *binding) {
    rd_server *server = binding->server;
    rd_request *oldest = NULL;
    rd_lock(binding);
    const uint32_t count = server->http.requests.live;
    rd_list *node = server->calls.active.next;
    while (node != &server->calls.active && RD_CONTAINER(node, rd_request, in_queue)->hung) {
        node = node->next;
    }
    if (node != &server->calls.active) {
        oldest = RD_CONTAINER(node, rd_request, in_queue);
        rd_request_ref(oldest);
    }
    rd_unlock(binding);
    if (oldest == NULL) return rb_ary_new_from_args(1, UINT2NUM(count));
    rd_slice method = rd_request_slice(oldest, oldest->head.method);
    rd_slice path = rd_request_slice(oldest, oldest->head.path);
    const double seconds = (double)(rd_clock_ns() - oldest->times.taken_ns) / 1e9;
    VALUE all = rb_ary_new_from_args(4, UINT2NUM(count), rb_str_new(method.ptr, (long)method.len),
                                     rb_str_new(path.ptr, (long)path.len), DBL2NUM(seconds));
    rd_lock(binding);
    rd_request_unref(oldest);
    rd_unlock(binding);
    return all;
}

static VALUE raise_timeout(VALUE argument) {
    rd_visit *visit = (rd_visit *)argument;
    const int64_t ms = visit->runner->binding->server->settings.request_timeout_ms;
    visit->strand->raise(visit, rd_eRequestTimeout,
                         rb_sprintf("no answer within %.3g s", (double)ms / 1000));
    return Qnil;
}

static void try(VALUE (*step)(VALUE), rd_visit *visit) {
    int state = 0;
    rb_protect(step, (VALUE)visit, &state);
    if (state == 0) return;
    if (rd_ends_thread(rb_errinfo())) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
}

/* True: something was done; meanwhile other threads may have run, and this one may have ended. */
static bool attend_to(rd_visit *visit) {
    rd_binding *binding = visit->runner->binding;
    if (visit->request == NULL) return false; /* an event */
    rd_lock(binding);
    bool slow = visit->request->reported, timed_out = visit->request->timed_out;
    const bool hung = visit->request->hung;
    rd_unlock(binding);
    if (hung && !visit->logged_hung) {
        visit->logged_hung = visit->logged_slow = true; /* with the backtrace */
        try(report_hung, visit);
        return true;
    }
    if (timed_out && (visit->to_undo & RD_UNDO_TIMEOUT) == 0) {
        visit->to_undo |= RD_UNDO_TIMEOUT;
        try(raise_timeout, visit); /* its log line has the backtrace */
        return true;
    }
    if (!slow || visit->logged_slow) return false;
    visit->logged_slow = true;
    try(report_slow, visit);
    return true;
}

static bool attend_to_one(rd_binding *binding) {
    RD_EACH_VISIT(&binding->pool, visit, node) {
        if (attend_to(visit)) return true;
    }
    return false;
}

static void attend(rd_binding *binding) {
    rd_lock(binding);
    binding->server->calls.attention_ns = 0;
    rd_unlock(binding);
    while (attend_to_one(binding)) {
    }
}

/* Whether only hung calls are left, whose clients were already answered: their threads are killed,
 * not waited for. */
static bool only_hung_left(const rd_binding *binding) {
    const rd_pool *pool = &binding->pool;
    if (!pool->over) return false;
    for (const rd_list *node = pool->runners.next; node != &pool->runners; node = node->next) {
        if (RD_CONTAINER(node, rd_runner, node)->inside == 0) return false;
    }
    RD_EACH_VISIT(pool, visit, node) {
        if (visit->request == NULL || !visit->request->hung) return false;
    }
    return true;
}

/* ---- fibers that keep their threads ---- */

#define LEAST_LOOK_NS 5000000

static VALUE report_slow_fiber(VALUE argument) {
    const rd_runner *runner = (const rd_runner *)argument;
    const rd_binding *binding = runner->binding;
    VALUE place = rb_funcall(runner->thread, rb_intern("backtrace"), 0);
    return rb_funcall(binding->app.reporter, rb_intern("report_slow_fiber"), 2,
                      LL2NUM(binding->server->settings.slow_fiber_ms), place);
}

/* True: other threads may have run, and this one may have ended. */
static bool report_fiber_of(rd_runner *runner, uint64_t limit_ns) {
    const rd_fibers *fibers = runner->fibers;
    if (fibers == NULL || fibers->since_ns == 0 || fibers->since_ns == runner->reported_ns)
        return false;
    if (rd_clock_ns() - fibers->since_ns < limit_ns) return false;
    int state = 0;
    runner->reported_ns = fibers->since_ns;
    rb_protect(report_slow_fiber, (VALUE)runner, &state);
    if (state != 0 && rd_ends_thread(rb_errinfo())) rb_jump_tag(state);
    if (state != 0) rb_set_errinfo(Qnil);
    return true;
}

static bool report_one_fiber(rd_pool *pool, uint64_t limit_ns) {
    for (rd_list *node = pool->runners.next; node != &pool->runners; node = node->next) {
        if (report_fiber_of(RD_CONTAINER(node, rd_runner, node), limit_ns)) return true;
    }
    return false;
}

/* Waits until something is to be done. If fibers are watched, it looks at them twice in the time
 * that one may have its thread. */
static void wait_for_need(rd_binding *binding) {
    rd_pool *pool = &binding->pool;
    const int64_t limit_ns = binding->server->settings.slow_fiber_ms * INT64_C(1000000);
    if (limit_ns == 0 || !rd_pool_has_fibers(binding)) {
        rd_gvl_wait_semaphore(&pool->supervisor, -1);
        return;
    }
    rd_gvl_wait_semaphore(&pool->supervisor,
                          limit_ns / 2 > LEAST_LOOK_NS ? limit_ns / 2 : LEAST_LOOK_NS);
    while (!rd_is_forked(binding) && report_one_fiber(pool, (uint64_t)limit_ns)) {
    }
}

static VALUE supervise(VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    rd_pool *pool = &binding->pool;
    while (!pool->over || pool->threads > 0) {
        while (lacks_thread(binding) && add_thread(binding)) {
        }
        wait_for_need(binding);
        rd_gvl_check_interrupts();
        if (rd_is_forked(binding)) return Qnil;
        if (atomic_exchange(&pool->attention_wanted, false)) attend(binding);
        if (only_hung_left(binding)) return Qnil;
    }
    return Qnil;
}

static VALUE end_thread(VALUE thread) {
    rb_funcall(thread, rb_intern("kill"), 0);
    return rb_funcall(thread, rb_intern("join"), 1, DBL2NUM(KILL_PATIENCE_MS / 1000.0));
}

/* An exception ends this thread, so everything ends at once. */
static void end_threads(rd_binding *binding) {
    rd_server_stop(binding->server, RD_STOP_NOW);
    rd_pool_end(binding);
    VALUE threads = rb_ary_dup(binding->app.threads);
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        int state = 0;
        rb_protect(end_thread, RARRAY_AREF(threads, i), &state);
    }
}

/* Threads that were killed may not have carried out the stop. A turn with a stop to carry out does
 * not sleep; any other turn would. */
static void carry_out_stop(rd_binding *binding) {
    rd_server *server = binding->server;
    rd_lock(binding);
    if (atomic_load(&server->stop.wanted) > server->stop.state) {
        rd_server_turn(server, rd_gvl_wait, false);
    }
    rd_unlock(binding);
}

static VALUE end_run(VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    if (rd_is_forked(binding)) return Qnil;
    VALUE error = rb_errinfo();
    if (binding->pool.threads > 0) end_threads(binding);
    rd_watch_stop(binding->server);
    carry_out_stop(binding);
    RD_BINDING_SET(binding, app.supervisor, Qnil);
    if (binding->log.len > 0) rd_log_flush(binding);
    binding->running = false;
    rd_task_end_all(binding);
    if (NIL_P(error) || rb_obj_is_kind_of(error, rb_eException)) rb_set_errinfo(error);
    return Qnil;
}

void rd_supervisor_run(rd_binding *binding) {
    binding->server->hooks.need_attention = need_attention;
    binding->server->hooks.unheard = unheard;
    int code = rd_watch_start(binding->server);
    if (code != 0) rb_syserr_fail(code, "cannot start the watch thread");
    binding->pool.over = false;
    binding->running = true;
    rd_task_begin_remembered(binding);
    RD_BINDING_SET(binding, app.supervisor, rb_thread_current());
    rb_ensure(supervise, (VALUE)binding, end_run, (VALUE)binding);
}
