/* SPDX-License-Identifier: MIT
 *
 * One application call, from the request to its answer. One rb_protect catches everything that it
 * raises. Runs on an application thread; rb_pool.c says on which one.
 */
#include "app/rb_dispatch.h"

#include "base/apart.h"
#include "base/error.h"
#include "system/clock.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "binding/rb_report.h"
#include "rack/rb_call.h"
#include "rack/rb_complete.h"
#include "rack/rb_connection.h"
#include "rack/rb_env.h"
#include "rack/rb_identity.h"
#include "rack/rb_response.h"
#include "rack/rb_stream.h"
#include "app/rb_upgrade.h"

/* ---- the application ---- */

/* Whether the response is [status, headers, body]. */
static inline bool take_triple(rd_call *call, VALUE response) {
    if (!RB_TYPE_P(response, T_ARRAY)) response = rb_check_array_type(response);
    if (NIL_P(response) || RARRAY_LEN(response) != 3) return false;
    call->answer.status = RARRAY_AREF(response, 0);
    call->answer.headers = RARRAY_AREF(response, 1);
    call->answer.body = RARRAY_AREF(response, 2);
    return true;
}

static void take_response(rd_call *call, VALUE response) {
    if (take_triple(call, response)) return;
    rb_raise(rd_eResponseError, "the application did not return [status, headers, body]");
}

static VALUE call_application(VALUE argument) {
    rd_call *call = (rd_call *)argument;
    call->connection = rd_connection_new();
    call->finished = rb_ary_new_capa(0);
    VALUE env = rd_env_build(call);
    VALUE response = rb_funcallv(call->binding->app.object, rd_id.call, 1, &env);
    if (rd_is_forked(call->binding)) return Qnil;
    rd_call_check(call);
    if (call->state.hijacked) { /* nothing is sent, but middleware relies on `close` */
        take_triple(call, response);
    } else {
        take_response(call, response);
        if (!rd_may_upgrade(call) || !rd_upgrade(call)) rd_respond(call);
    }
    rd_call_close_body(call);
    return Qnil;
}

static VALUE close_body(VALUE argument) {
    rd_call_close_body((rd_call *)argument);
    return Qnil;
}

/* ---- errors ---- */

static VALUE respond_error(VALUE argument) {
    rd_call *call = (rd_call *)argument;
    VALUE arguments[] = {call->error, NIL_P(call->env) ? rb_hash_new() : call->env};
    VALUE response = rb_funcallv(call->binding->app.reporter, rd_id.handle_error, 2, arguments);
    if (rd_is_forked(call->binding)) return Qnil;
    take_response(call, response);
    call->answer.body_closed = false;
    rd_respond(call);
    rd_call_close_body(call);
    return Qnil;
}

static VALUE respond_bare(VALUE argument) {
    rd_call *call = (rd_call *)argument;
    call->answer.status = INT2FIX(500);
    call->answer.headers = rb_hash_new();
    call->answer.body = rb_ary_new();
    rd_respond(call);
    return Qnil;
}

static void report(rd_call *call) {
    const int state = rd_report_error(call->binding, call->error, call->env);
    if (state != 0) call->killed = state;
}

static bool is_clients_end(rd_call *call, VALUE error) {
    rd_lock(call->binding);
    const bool gone = call->request->gone;
    rd_unlock(call->binding);
    return gone && rb_obj_is_kind_of(error, rd_eClosed);
}

/* Answers with the error. That may fail as well: lowlevel_error_handler is application code. */
static bool try_respond_error(rd_call *call) {
    int state = 0;
    rb_protect(respond_error, (VALUE)call, &state);
    if (state == 0) return true;
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    if (!rb_obj_is_kind_of(error, rb_eException)) {
        call->killed = state;
    } else if (!is_clients_end(call, error)) {
        rd_report_error(call->binding, error, call->env);
    }
    rd_call_try(close_body, call); /* the body of the answer to the error */
    return false;
}

static void abort_response(rd_call *call) {
    if (call->state.done || rd_is_forked(call->binding)) return;
    call->state.done = true;
    rd_lock(call->binding);
    call->request->responder->abort(call->request);
    rd_unlock(call->binding);
}

/* The thread is being killed: does only what an `ensure` clause would do. */
static void give_up(rd_call *call, int state) {
    call->killed = state;
    abort_response(call);
    rd_call_try(close_body, call);
}

/* The thread in run() ends the server, as if the signal had been delivered there. */
static VALUE pass_to_supervisor(VALUE argument) {
    rd_call *call = (rd_call *)argument;
    VALUE supervisor = call->binding->app.supervisor;
    if (NIL_P(supervisor)) return Qnil;
    return rb_funcall(supervisor, rb_intern("raise"), 1, call->error);
}

static void handle_failure(rd_call *call, int state) {
    VALUE error = rb_errinfo();
    if (!rb_obj_is_kind_of(error, rb_eException)) {
        give_up(call, state);
        return;
    }
    rb_set_errinfo(Qnil);
    call->error = error;
    if (rd_ends_thread(error)) { /* a signal, which must not be lost */
        abort_response(call);
        rd_call_try(close_body, call);
        rd_call_try(pass_to_supervisor, call);
        return;
    }
    rd_call_try(close_body, call);
    rd_lock(call->binding);
    const bool timed_out = call->request->timed_out;
    rd_unlock(call->binding);
    if (is_clients_end(call, error)) {
        abort_response(call); /* the client left: not an error */
    } else if (call->state.started || call->state.done || call->state.hijacked || timed_out) {
        report(call);
        abort_response(call);
    } else if (!try_respond_error(call) && !call->state.started) {
        rd_call_try(respond_bare, call);
    }
    if (!call->state.done) abort_response(call);
}

/* ---- from the leader ---- */

/* A continuation has restored the frames of a call that is over, with everything on its stack. The
 * memory of its request may belong to another request by now. This aborts the call that the thread
 * really has. */
static rd_request *drop_stray(rd_call *call, int state) {
    rd_visit *visit = call->visit;
    rd_request *request = visit->request;
    *call = (rd_call){.binding = visit->runner->binding,
                      .visit = visit,
                      .request = request,
                      .serial = visit->serial,
                      .env = Qnil,
                      .answer = {Qnil, Qnil, Qnil, false},
                      .error = state == 0 ? Qnil : rb_errinfo()};
    if (request != NULL) abort_response(call);
    if (state == 0) return request;
    rb_set_errinfo(Qnil);
    if (rb_obj_is_kind_of(call->error, rb_eException)) {
        report(call);
    } else {
        call->killed = state;
    }
    return request;
}

rd_request *rd_call_run(rd_call *call) {
    int state = 0;
    call->serial = call->visit->serial;
    call->visit->call = call;
    rb_protect(call_application, (VALUE)call, &state);
    if (rd_is_forked(call->binding)) return NULL; /* the parent process answers */
    if (!rd_call_is_current(call)) return drop_stray(call, state);
    if (state != 0) {
        rd_identity_drop(call);
        handle_failure(call, state);
    }
    if (rd_is_forked(call->binding)) return NULL;
    if (call->stream != 0 && !call->state.left_open) rd_stream_after_call(call);
    if (!call->state.left_open)
        rd_complete(call); /* if not, the stream does it, with its own reference */
    return call->request;
}

static void init_call(rd_call *call, rd_visit *visit, rd_request *request) {
    const rd_conn *conn = request->conn;
    *call = (rd_call){.binding = visit->runner->binding,
                      .visit = visit,
                      .request = request,
                      .env = Qnil,
                      .error = Qnil,
                      .answer = {Qnil, Qnil, Qnil, false},
                      .conn = {conn->peer, conn->index, conn->origin.secure},
                      .whole = request->body_complete,
                      .quantum_since_ns = request->times.taken_ns};
    if (request->conn->layered) rd_identity_note(call);
}

/* Takes the lock once for both. */
bool rd_call_begin(rd_call *call, rd_visit *visit, rd_request *before) {
    rd_runner *runner = visit->runner;
    rd_binding *binding = runner->binding;
    rd_request *request = before;
    rd_lock(binding);
    do { /* a request whose client is already gone is dropped at once */
        request = rd_server_next_request(binding->server, request);
    } while (request != NULL && request->conn == NULL);
    if (request != NULL) init_call(call, visit, request);
    runner->has_incidents = rd_has_incidents(&binding->server->incidents);
    rd_unlock(binding);
    return request != NULL;
}
