/* SPDX-License-Identifier: MIT
 *
 * The loop as Ruby sees it: a turn of the core, then the application for a batch of requests, each
 * behind one rb_protect, whatever it raises. Runs on the thread that called Rondo::Server#run, on
 * one fiber of it at a time (rb_wait.c says when it changes).
 */
#include "base/clock.h"
#include "base/error.h"
#include "ruby/rb_call.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_names.h"

/* ---- the Ruby objects of a connection ---- */

static void meet_connection(rd_call *call) {
    rd_binding *binding = call->binding;
    if (!call->known) {
        call->connection = rd_connection_new(binding);
        rb_ary_store(binding->connections, call->slot, call->connection);
        rb_ary_store(binding->finished_arrays, call->slot, Qnil);
    } else {
        call->connection = RARRAY_AREF(binding->connections, call->slot);
    }
    /* An Array nobody put anything into serves the next request of its connection as well. */
    call->finished = RARRAY_AREF(binding->finished_arrays, call->slot);
    if (NIL_P(call->finished)) {
        call->finished = rb_ary_new_capa(0);
        rb_ary_store(binding->finished_arrays, call->slot, call->finished);
    }
    rd_connection_begin(call->connection, call);
}

static void forget_finished(rd_call *call) {
    rd_binding *binding = call->binding;
    if (RARRAY_AREF(binding->finished_arrays, call->slot) == call->finished) {
        rb_ary_store(binding->finished_arrays, call->slot, Qnil);
    }
}

static void part_connection(rd_call *call) {
    rd_connection_end(call->connection, call);
    if (RARRAY_LEN(call->finished) > 0) forget_finished(call);
}

/* A stream goes on: the next request of the connection may begin before it is completed, and gets
 * an Array of its own. */
static void leave_connection(rd_call *call) {
    rd_connection_end(call->connection, call);
    forget_finished(call);
}

/* ---- the application ---- */

static void take_response(rd_call *call, VALUE response) {
    VALUE triple = rb_check_array_type(response);
    if (NIL_P(triple) || RARRAY_LEN(triple) != 3) {
        rb_raise(rd_eResponseError, "the application did not return [status, headers, body]");
    }
    call->status = RARRAY_AREF(triple, 0);
    call->headers = RARRAY_AREF(triple, 1);
    call->body = RARRAY_AREF(triple, 2);
}

static VALUE call_application(VALUE argument) {
    rd_call *call = (rd_call *)argument;
    meet_connection(call);
    VALUE env = rd_env_build(call);
    VALUE response = rb_funcallv(call->binding->app, rd_id.call, 1, &env);
    if (call->hijacked || rd_is_forked(call->binding)) return Qnil;
    take_response(call, response);
    rd_respond(call);
    rd_close_body(call);
    return Qnil;
}

static VALUE close_body(VALUE argument) {
    rd_close_body((rd_call *)argument);
    return Qnil;
}

/* ---- what went wrong ---- */

static VALUE respond_error(VALUE argument) {
    rd_call *call = (rd_call *)argument;
    VALUE arguments[] = {call->error, NIL_P(call->env) ? rb_hash_new() : call->env};
    VALUE response = rb_funcallv(call->binding->reporter, rd_id.handle_error, 2, arguments);
    take_response(call, response);
    rd_respond(call);
    call->body_closed = false;
    rd_close_body(call);
    return Qnil;
}

static VALUE report_error(VALUE argument) {
    rd_call *call = (rd_call *)argument;
    VALUE arguments[] = {call->error, NIL_P(call->env) ? rb_hash_new() : call->env};
    return rb_funcallv(call->binding->reporter, rd_id.report_error, 2, arguments);
}

static VALUE respond_bare(VALUE argument) {
    rd_call *call = (rd_call *)argument;
    call->status = INT2FIX(500);
    call->headers = rb_hash_new();
    call->body = rb_ary_new();
    rd_respond(call);
    return Qnil;
}

/* Runs `step`; what it raises is dropped, because an error is being dealt with already. */
static bool try_step(VALUE (*step)(VALUE), rd_call *call) {
    int state = 0;
    rb_protect(step, (VALUE)call, &state);
    if (state != 0) rb_set_errinfo(Qnil);
    return state == 0;
}

static void abort_response(rd_call *call) {
    if (call->done) return;
    call->done = true;
    rd_lock(call->binding);
    call->request->responder->abort(call->request);
    rd_unlock(call->binding);
}

/* Signals are not the application's to lose: they end the server. */
static bool ends_the_server(VALUE error) {
    return rb_obj_is_kind_of(error, rb_eSignal) || rb_obj_is_kind_of(error, rb_eInterrupt);
}

static void remember_jump(rd_binding *binding, int state, VALUE error) {
    if (binding->jump_state != 0) return;
    binding->jump_state = state;
    RD_BINDING_SET(binding, jump_error, error);
    rd_server_stop(binding->server, RD_STOP_NOW);
}

NORETURN(static void end_at_once(rd_binding *binding, int state));

/* The thread is being killed: Ruby lets nothing go on, and what it keeps as the reason must stay
 * untouched. Connections are closed now. */
static void end_at_once(rd_binding *binding, int state) {
    rd_server_stop(binding->server, RD_STOP_NOW);
    rd_lock(binding);
    rd_server_turn_inner(binding->server, rd_gvl_wait);
    rd_unlock(binding);
    rb_jump_tag(state);
}

static void handle_failure(rd_call *call, int state) {
    VALUE error = rb_errinfo();
    if (!rb_obj_is_kind_of(error, rb_eException)) {
        abort_response(call);
        end_at_once(call->binding, state);
    }
    rb_set_errinfo(Qnil);
    if (ends_the_server(error)) {
        remember_jump(call->binding, state, error);
        abort_response(call);
        try_step(close_body, call);
        return;
    }
    call->error = error;
    try_step(close_body, call);
    if (rb_obj_is_kind_of(error, rd_eClosed) && call->request->gone) {
        abort_response(call); /* the client left: nobody's fault */
    } else if (call->started || call->done || call->hijacked) {
        try_step(report_error, call);
        abort_response(call);
    } else if (!try_step(respond_error, call) && !call->started) {
        try_step(respond_bare, call);
    }
    if (!call->done) abort_response(call);
}

/* ---- the end of a request ---- */

typedef struct rd_finished_call {
    VALUE callable;
    VALUE arguments[4];
} rd_finished_call;

static VALUE call_finished(VALUE argument) {
    rd_finished_call *finished = (rd_finished_call *)argument;
    return rb_funcallv(finished->callable, rd_id.call, 4, finished->arguments);
}

/* In reverse order, with (env, status, headers, error); Rack SPEC, rack.response_finished. */
static void run_finished(rd_call *call) {
    rd_finished_call finished = {
        .arguments = {call->env, call->status, call->headers, call->error}};
    for (long i = RARRAY_LEN(call->finished) - 1; i >= 0; i--) {
        int state = 0;
        finished.callable = rb_ary_entry(call->finished, i);
        rb_protect(call_finished, (VALUE)&finished, &state);
        if (state == 0) continue;
        rd_call report = *call;
        report.error = rb_errinfo();
        rb_set_errinfo(Qnil);
        try_step(report_error, &report);
    }
}

static VALUE log_request(VALUE argument) {
    rd_log_request((rd_call *)argument);
    return Qnil;
}

static void complete(rd_call *call) {
    rd_binding *binding = call->binding;
    if (call->connection != 0) {
        if (RARRAY_LEN(call->finished) > 0) run_finished(call);
        part_connection(call);
    }
    if (!NIL_P(binding->request_log) && !call->hijacked) try_step(log_request, call);
    if (call->input != 0) rd_input_detach(call->input);
}

static void let_go(rd_binding *binding, rd_request *request) {
    rd_lock(binding);
    rd_request_unref(request);
    rd_unlock(binding);
}

void rd_call_complete(rd_call *call) {
    complete(call);
    let_go(call->binding, call->request);
}

/* The request to let go of, or NULL when a stream goes on with it. */
static rd_request *dispatch(rd_call *call) {
    int state = 0;
    if (!NIL_P(call->binding->request_log)) call->began_ns = rd_clock_ns();
    rb_protect(call_application, (VALUE)call, &state);
    if (rd_is_forked(call->binding)) return NULL; /* the parent answers */
    if (state != 0) handle_failure(call, state);
    if (call->stream != 0 && !call->left_open) rd_stream_after_call(call);
    if (call->left_open) {
        leave_connection(call); /* the stream completes the request; it has its own reference */
    } else {
        complete(call);
    }
    return call->request;
}

/* ---- the loop ---- */

/* Takes the next request and lets go of the one before, in one visit to the lock. */
static bool next_call(rd_binding *binding, rd_call *call, rd_request *before) {
    for (;;) {
        rd_lock(binding);
        if (before != NULL) rd_request_unref(before);
        before = NULL;
        rd_request *request = rd_server_next_request(binding->server);
        if (request == NULL) {
            rd_unlock(binding);
            return false;
        }
        rd_conn *conn = request->conn;
        if (conn == NULL) { /* its client left before its turn came */
            rd_request_unref(request);
            rd_unlock(binding);
            continue;
        }
        *call = (rd_call){.binding = binding,
                          .request = request,
                          .env = Qnil,
                          .error = Qnil,
                          .status = Qnil,
                          .headers = Qnil,
                          .body = Qnil,
                          .slot = conn->slot,
                          .peer = conn->peer,
                          .known = conn->known};
        conn->known = true;
        rd_unlock(binding);
        return true;
    }
}

static bool is_root(const rd_binding *binding) {
    return rb_fiber_current() == binding->root_fiber;
}

static void jump(rd_binding *binding) {
    VALUE error = binding->jump_error;
    int state = binding->jump_state;
    binding->jump_state = 0;
    RD_BINDING_SET(binding, jump_error, Qnil);
    rb_set_errinfo(error);
    rb_jump_tag(state);
}

/* One turn of the core; true when the server is done. */
static bool turn(rd_binding *binding) {
    rd_server *server = binding->server;
    rd_lock(binding);
    rd_server_turn(server, rd_gvl_wait);
    rd_request *waiting = rd_server_next_wakeup(server);
    bool done = rd_server_is_done(server);
    rd_unlock(binding);
    if (waiting != NULL) rd_resume_waiting(binding, waiting);
    if (binding->jump_state == 0) rd_gvl_check_interrupts();
    rd_borrow_release_all(binding);
    if (server->refusal_count > 0) rd_log_refusals(binding);
    return done && waiting == NULL;
}

static void run_loop(rd_binding *binding) {
    rd_call call;
    while (!rd_is_forked(binding) && !turn(binding)) {
        rd_request *before = NULL;
        while (binding->jump_state == 0 && !rd_is_forked(binding) &&
               next_call(binding, &call, before)) {
            before = dispatch(&call);
        }
        if (before != NULL && binding->jump_state != 0) let_go(binding, before);
        if (binding->log_len > 0) rd_log_flush(binding);
    }
}

static VALUE run_protected(VALUE argument) {
    run_loop((rd_binding *)argument);
    return Qnil;
}

/* A Timeout around a wait for the client is raised into the thread, but its call is parked: the one
 * that has its place longest gets it instead of the loop. Anything else from outside ends run(). */
static bool pass_to_parked(rd_binding *binding, VALUE error) {
    if (strncmp(rb_obj_classname(error), "Timeout::", 9) != 0 &&
        strncmp(rb_obj_classname(error), "Rack::Timeout::", 15) != 0) {
        return false;
    }
    for (long i = 0; i < RARRAY_LEN(binding->parked_fibers); i++) {
        VALUE fiber = RARRAY_AREF(binding->parked_fibers, i);
        if (NIL_P(fiber)) continue;
        rb_ary_store(binding->parked_fibers, i, Qnil);
        binding->parked_count--;
        rb_ary_push(binding->idle_fibers, rb_fiber_current());
        rb_funcall(fiber, rb_intern("raise"), 1, error);
        return true;
    }
    return false;
}

/* An exception that reaches the loop from outside (Thread#raise, a signal) ends the server. It is
 * kept until the fiber that called run() can raise it, and the loop goes on to wind things up. */
static void run_until_done(rd_binding *binding) {
    for (;;) {
        int state = 0;
        rb_protect(run_protected, (VALUE)binding, &state);
        if (state == 0) return;
        VALUE error = rb_errinfo();
        if (!rb_obj_is_kind_of(error, rb_eException)) end_at_once(binding, state);
        rb_set_errinfo(Qnil);
        if (!pass_to_parked(binding, error)) remember_jump(binding, state, error);
    }
}

VALUE rd_run_in_fiber(rd_binding *binding) {
    run_until_done(binding);
    rb_ary_delete(binding->idle_fibers, binding->root_fiber);
    return rb_fiber_transfer(binding->root_fiber, 0, NULL);
}

static VALUE run_here(VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    run_until_done(binding);
    if (binding->jump_state != 0 && is_root(binding)) jump(binding);
    return Qnil;
}

static VALUE end_run(VALUE argument) {
    rd_binding *binding = (rd_binding *)argument;
    RD_BINDING_SET(binding, runner, Qnil);
    RD_BINDING_SET(binding, root_fiber, Qnil);
    rd_wait_forget(binding);
    if (binding->log_len > 0) rd_log_flush(binding);
    binding->running = false;
    return Qnil;
}

void rd_run(rd_binding *binding) {
    if (binding->running) rb_raise(rd_eError, "the server is running already");
    binding->running = true;
    RD_BINDING_SET(binding, runner, rb_thread_current());
    RD_BINDING_SET(binding, root_fiber, rb_fiber_current());
    rb_ensure(run_here, (VALUE)binding, end_run, (VALUE)binding);
}
