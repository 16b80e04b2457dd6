/* SPDX-License-Identifier: MIT
 *
 * The end of a request: rack.response_finished, its log line, its input; see rb_complete.h.
 */
#include "rack/rb_complete.h"

#include "base/apart.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "binding/rb_report.h"
#include "rack/rb_call.h"
#include "rack/rb_input.h"
#include "rack/rb_log.h"

typedef struct rd_finished_call {
    VALUE callable;
    VALUE arguments[4];
} rd_finished_call;

static VALUE call_finished(VALUE argument) {
    rd_finished_call *finished = (rd_finished_call *)argument;
    return rb_funcallv(finished->callable, rd_id.call, 4, finished->arguments);
}

/* Calls them in reverse order, with (env, status, headers, error); Rack SPEC,
 * rack.response_finished. */
RD_APART static void run_finished(rd_call *call) {
    rd_finished_call finished = {
        .arguments = {call->env, call->answer.status, call->answer.headers, call->error}};
    for (long i = RARRAY_LEN(call->finished) - 1; i >= 0; i--) {
        int state = 0;
        finished.callable = rb_ary_entry(call->finished, i);
        rb_protect(call_finished, (VALUE)&finished, &state);
        if (rd_is_forked(call->binding)) return;
        if (state == 0) continue;
        VALUE error = rb_errinfo();
        rb_set_errinfo(Qnil);
        rd_report_error(call->binding, error, call->env);
    }
}

static VALUE log_request(VALUE argument) {
    rd_log_request((rd_call *)argument);
    return Qnil;
}

void rd_complete(rd_call *call) {
    rd_binding *binding = call->binding;
    if (call->finished != 0 && RARRAY_LEN(call->finished) > 0) {
        run_finished(call);
        if (rd_is_forked(binding)) return;
    }
    if (!NIL_P(binding->log.output) && !call->state.hijacked) rd_call_try(log_request, call);
    if (call->input != 0) rd_input_detach(call->input);
}

void rd_complete_and_unref(rd_call *call) {
    rd_complete(call);
    if (rd_is_forked(call->binding)) return; /* in a callback: the request is the parent's */
    rd_lock(call->binding);
    rd_request_unref(call->request);
    rd_server_write_scores(call->binding->server); /* no turn may follow for long */
    rd_unlock(call->binding);
}
