/* SPDX-License-Identifier: MIT
 *
 * Which call the present code belongs to, and what all ways to answer a call share; see rb_call.h.
 */
#include "rack/rb_call.h"

#include "base/apart.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"
#include "binding/rb_pool.h"

void rd_call_check(const rd_call *call) {
    if (rd_call_is_current(call)) return;
    rb_raise(rd_eError, "a continuation of a finished request was called");
}

/* NULL also if a continuation has restored the frames of another call. */
rd_call *rd_call_current(void) {
    RD_EACH_BINDING(binding, node) {
        const rd_visit *visit = rd_visit_current(binding);
        if (visit == NULL || visit->request == NULL) continue;
        return visit->call->serial == visit->serial ? visit->call : NULL;
    }
    return NULL;
}

bool rd_call_has_client(const rd_call *call) {
    rd_lock(call->binding);
    const bool there = call->request->conn != NULL;
    rd_unlock(call->binding);
    return there;
}

RD_APART bool rd_call_try(VALUE (*step)(VALUE), rd_call *call) {
    int state = 0;
    rb_protect(step, (VALUE)call, &state);
    if (state == 0) return true;
    if (!rb_obj_is_kind_of(rb_errinfo(), rb_eException)) call->killed = state;
    rb_set_errinfo(Qnil);
    return false;
}

void rd_call_close_body(rd_call *call) {
    if (call->answer.body_closed || RB_SPECIAL_CONST_P(call->answer.body)) return;
    call->answer.body_closed = true;
    if (RB_TYPE_P(call->answer.body, T_ARRAY) && RBASIC_CLASS(call->answer.body) == rb_cArray)
        return;
    if (rd_is_forked(call->binding)) return; /* a copy: the parent closes the body */
    if (rb_respond_to(call->answer.body, rd_id.close))
        rb_funcall(call->answer.body, rd_id.close, 0);
}

void rd_call_replace_response(rd_call *call, VALUE response) {
    rd_call_close_body(call);
    call->answer.body_closed = false;
    call->answer.status = RARRAY_AREF(response, 0);
    call->answer.headers = RARRAY_AREF(response, 1);
    call->answer.body = RARRAY_AREF(response, 2);
}

VALUE rd_upgrade_symbol(const rd_upgrade_row *upgrade) {
    return ID2SYM(rb_intern2(upgrade->name.ptr, (long)upgrade->name.len));
}
