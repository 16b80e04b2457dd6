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
    if (status < 100 || status > 999)
        rd_refuse_response("the status is not a number from 100 to 999", object);
    return status;
}

static void begin_collect(rd_collector *collector, rd_call *call) {
    rd_collector_init(collector, call);
    collector->head.status = status_of(call->answer.status);
    collector->head.raw =
        collector->head.status == 101 && rb_respond_to(call->answer.body, rd_id.call);
    rd_collector_read(collector, call->answer.headers);
    if (!NIL_P(collector->hijack) && !collector->head.raw) {
        collector->head.raw = true; /* found meanwhile: collects again, with every field as it is */
        rd_collector_read(collector, call->answer.headers);
    }
    if (collector->head.status < 200 && !collector->head.raw) {
        rd_refuse_response("an informational status is not a response", call->answer.status);
    }
    if (collector->head.raw && !collector->has_connection) {
        rd_collector_add(collector, RD_SLICE("connection"), RD_SLICE("close"));
    }
}

static int start_locked(rd_collector *collector) {
    rd_request *request = collector->call->request;
    collector->call->state.started = true;
    return request->responder->start(request, &collector->head);
}

static void start(rd_collector *collector) {
    rd_binding *binding = collector->call->binding;
    rd_call_check(collector->call);
    rd_lock(binding);
    int code = start_locked(collector);
    rd_unlock(binding);
    RD_COLLECTOR_GUARD(collector);
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
        if (!RB_TYPE_P(part, T_STRING))
            rd_refuse_response("the body has a part that is not a String", part);
        if (!rd_part_is_small(part)) small = false;
        *total += (size_t)RSTRING_LEN(part);
    }
    return small;
}

/* The common case: the body is complete, and the lock is taken only once. */
static void respond_array(rd_collector *collector, VALUE array) {
    rd_call *call = collector->call;
    size_t total;
    rd_call_check(call);
    bool small = all_small_strings(array, &total);
    if (collector->head.length < 0) collector->head.length = (int64_t)total;
    if (!small) {
        start(collector);
        for (long i = 0; i < RARRAY_LEN(array); i++) rd_part_write(call, RARRAY_AREF(array, i));
        finish(call);
        return;
    }
    rd_lock(call->binding);
    int code = start_locked(collector);
    for (long i = 0; i < RARRAY_LEN(array) && code >= 0; i++) {
        code = rd_part_copy(call, RARRAY_AREF(array, i));
    }
    if (code >= 0) call->request->responder->finish(call->request);
    rd_unlock(call->binding);
    call->state.done = true;
    RD_COLLECTOR_GUARD(collector);
}

static bool has_no_body(const rd_collector *collector) {
    return collector->call->request->head.method_id == RD_METHOD_HEAD ||
           !rd_status_has_body(collector->head.status);
}

static void respond_nothing(rd_collector *collector) {
    start(collector);
    finish(collector->call);
}

static void respond_each(rd_collector *collector) {
    start(collector);
    rd_send_each(collector->call);
    finish(collector->call);
}

static void respond_raw(rd_collector *collector) {
    rd_call *call = collector->call;
    VALUE taker = NIL_P(collector->hijack) ? call->answer.body : collector->hijack;
    start(collector);
    VALUE io = rd_connection_detach(call);
    call->state.hijacked = true;
    rb_funcall(taker, rd_id.call, 1, io);
}

static void respond_stream(rd_collector *collector) {
    rd_call *call = collector->call;
    start(collector);
    call->stream = rd_stream_new(call);
    rb_funcall(call->answer.body, rd_id.call, 1, call->stream);
    rd_call_check(call);
    rd_stream_after_call(call);
}

/* Used only to find the length. Bodies of Rails always respond to to_ary; if they have no Array, it
 * returns something else or raises LocalJumpError (a range of a file that ActiveStorage has on the
 * disk). */
static bool respond_to_ary(rd_collector *collector, VALUE body) {
    if (collector->head.length >= 0 || !rb_respond_to(body, rd_id.to_ary)) return false;
    VALUE array = rb_funcall(body, rd_id.to_ary, 0);
    if (!RB_TYPE_P(array, T_ARRAY)) return false;
    respond_array(collector, array);
    return true;
}

/* False: use the body's `each`. */
static bool respond_path(rd_collector *collector, VALUE body) {
    const rd_path_answer answer = rd_file_respond_path(collector, body);
    if (answer == RD_PATH_REFUSED) rd_respond(collector->call);
    return answer != RD_PATH_NONE;
}

static void respond_body(rd_collector *collector) {
    VALUE body = collector->call->answer.body;
    if (RB_TYPE_P(body, T_ARRAY)) {
        respond_array(collector, body);
    } else if (rd_status_has_body(collector->head.status) && respond_path(collector, body)) {
        return; /* also for HEAD, which needs the length */
    } else if (has_no_body(collector)) {
        respond_nothing(collector);
    } else if (respond_to_ary(collector, body)) {
        return;
    } else if (rb_respond_to(body, rd_id.each)) {
        respond_each(collector);
    } else if (rb_respond_to(body, rd_id.call)) {
        respond_stream(collector);
    } else {
        rd_refuse_response("the body responds to neither each nor call", body);
    }
}

void rd_respond(rd_call *call) {
    rd_collector collector;
    begin_collect(&collector, call);
    if (collector.head.raw) {
        respond_raw(&collector);
    } else if (!NIL_P(collector.file) && rd_status_has_body(collector.head.status)) {
        if (!rd_file_respond_named(&collector)) rd_respond(call);
    } else {
        respond_body(&collector);
    }
}
