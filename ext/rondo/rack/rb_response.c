/* SPDX-License-Identifier: MIT
 *
 * From the application's [status, headers, body] to the responder: checks the status and the header
 * fields (rb_fields.c), determines the kind of the body and sends it. Rack SPEC, "The Response".
 */
#include "rack/rb_response.h"

#include "base/error.h"
#include "http/status.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "rack/rb_call.h"
#include "rack/rb_connection.h"
#include "rack/rb_each.h"
#include "rack/rb_fields.h"
#include "rack/rb_file.h"
#include "rack/rb_part.h"
#include "rack/rb_stream.h"

/* ---- the head ---- */

static int status_of(VALUE object) {
    int status = FIXNUM_P(object) ? FIX2INT(object) : NUM2INT(rb_Integer(object));
    if (status < 100 || status > 999) rd_refuse_response("invalid status", object);
    return status;
}

static void begin_collect(rd_collect *collect, rd_call *call) {
    rd_collect_init(collect, call);
    collect->head.status = status_of(call->answer.status);
    collect->head.raw = collect->head.status == 101 && rb_respond_to(call->answer.body, rd_id.call);
    rd_collect_fields(collect, call->answer.headers);
    if (!NIL_P(collect->hijack) && !collect->head.raw) {
        collect->head.raw = true; /* found meanwhile: collects again, with every field as it is */
        rd_collect_fields(collect, call->answer.headers);
    }
    if (collect->head.status < 200 && !collect->head.raw) {
        rd_refuse_response("an informational status is not a response", call->answer.status);
    }
    if (collect->head.raw && !collect->has_connection) {
        rd_collect_add(collect, RD_SLICE("connection"), RD_SLICE("close"));
    }
}

static int start_locked(rd_collect *collect) {
    rd_request *request = collect->call->request;
    collect->call->state.started = true;
    return request->responder->start(request, &collect->head);
}

static void start(rd_collect *collect) {
    rd_binding *binding = collect->call->binding;
    rd_call_check(collect->call);
    rd_lock(binding);
    int code = start_locked(collect);
    rd_unlock(binding);
    RD_COLLECT_GUARD(collect);
    if (code < 0) rd_raise_closed();
}

static void finish(rd_call *call) {
    if (rd_is_forked(call->binding)) return; /* a copy: the parent sends the body */
    rd_call_check(call);
    rd_lock(call->binding);
    call->request->responder->finish(call->request);
    rd_unlock(call->binding);
    call->state.done = true;
}

/* ---- bodies ---- */

static bool all_small_strings(VALUE array, size_t *total) {
    *total = 0;
    bool small = true;
    for (long i = 0; i < RARRAY_LEN(array); i++) {
        VALUE part = RARRAY_AREF(array, i);
        if (!RB_TYPE_P(part, T_STRING)) rd_refuse_response("body part is not a String", part);
        if (!rd_part_is_small(part)) small = false;
        *total += (size_t)RSTRING_LEN(part);
    }
    return small;
}

/* The common case: the body is complete, and the lock is taken only once. */
static void respond_array(rd_collect *collect, VALUE array) {
    rd_call *call = collect->call;
    size_t total;
    rd_call_check(call);
    bool small = all_small_strings(array, &total);
    if (collect->head.length < 0) collect->head.length = (int64_t)total;
    if (!small) {
        start(collect);
        for (long i = 0; i < RARRAY_LEN(array); i++) rd_part_write(call, RARRAY_AREF(array, i));
        finish(call);
        return;
    }
    rd_lock(call->binding);
    int code = start_locked(collect);
    for (long i = 0; i < RARRAY_LEN(array) && code >= 0; i++) {
        code = rd_part_copy(call, RARRAY_AREF(array, i));
    }
    if (code >= 0) call->request->responder->finish(call->request);
    rd_unlock(call->binding);
    call->state.done = true;
    RD_COLLECT_GUARD(collect);
}

static bool has_no_body(const rd_collect *collect) {
    return collect->call->request->head.method_id == RD_METHOD_HEAD ||
           !rd_status_has_body(collect->head.status);
}

static void respond_nothing(rd_collect *collect) {
    start(collect);
    finish(collect->call);
}

static void respond_each(rd_collect *collect) {
    start(collect);
    rd_give_parts(collect->call);
    finish(collect->call);
}

static void respond_raw(rd_collect *collect) {
    rd_call *call = collect->call;
    VALUE taker = NIL_P(collect->hijack) ? call->answer.body : collect->hijack;
    start(collect);
    VALUE io = rd_connection_detach(call);
    call->state.hijacked = true;
    rb_funcall(taker, rd_id.call, 1, io);
}

static void respond_stream(rd_collect *collect) {
    rd_call *call = collect->call;
    start(collect);
    call->stream = rd_stream_new(call);
    rb_funcall(call->answer.body, rd_id.call, 1, call->stream);
    rd_call_check(call);
    rd_stream_after_call(call);
}

/* Used only to find the length. Bodies of Rails always respond to to_ary; if they have no Array, it
 * returns something else or raises LocalJumpError (a range of a file that ActiveStorage has on the
 * disk). */
static bool respond_to_ary(rd_collect *collect, VALUE body) {
    if (collect->head.length >= 0 || !rb_respond_to(body, rd_id.to_ary)) return false;
    VALUE array = rb_funcall(body, rd_id.to_ary, 0);
    if (!RB_TYPE_P(array, T_ARRAY)) return false;
    respond_array(collect, array);
    return true;
}

/* False: use the body's `each`. */
static bool respond_path(rd_collect *collect, VALUE body) {
    const rd_path_answer answer = rd_file_respond_path(collect, body);
    if (answer == RD_PATH_REFUSED) rd_respond(collect->call);
    return answer != RD_PATH_NONE;
}

static void respond_body(rd_collect *collect) {
    VALUE body = collect->call->answer.body;
    if (RB_TYPE_P(body, T_ARRAY)) {
        respond_array(collect, body);
    } else if (rd_status_has_body(collect->head.status) && respond_path(collect, body)) {
        return; /* also for HEAD, which needs the length */
    } else if (has_no_body(collect)) {
        respond_nothing(collect);
    } else if (respond_to_ary(collect, body)) {
        return;
    } else if (rb_respond_to(body, rd_id.each)) {
        respond_each(collect);
    } else if (rb_respond_to(body, rd_id.call)) {
        respond_stream(collect);
    } else {
        rd_refuse_response("body responds to neither each nor call", body);
    }
}

void rd_respond(rd_call *call) {
    rd_collect collect;
    begin_collect(&collect, call);
    if (collect.head.raw) {
        respond_raw(&collect);
    } else if (!NIL_P(collect.file) && rd_status_has_body(collect.head.status)) {
        if (!rd_file_respond_named(&collect)) rd_respond(call);
    } else {
        respond_body(&collect);
    }
}
