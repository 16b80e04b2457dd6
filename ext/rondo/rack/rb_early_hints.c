/* SPDX-License-Identifier: MIT
 *
 * The object in rack.early_hints, which the application calls; see rb_early_hints.h.
 */
#include "rack/rb_early_hints.h"

#include "binding/rb_binding.h"
#include "rack/rb_connection.h"
#include "rack/rb_fields.h"

static void send_hints(rd_call *call, VALUE headers) {
    rd_collector collector;
    rd_collector_init(&collector, call);
    collector.head.status = 103;
    rd_collector_read(&collector, headers);
    rd_lock(call->binding);
    if (call->request->responder->inform(call->request, &collector.head) >= 0) {
        call->request->responder->flush(call->request);
    }
    rd_unlock(call->binding);
    RD_COLLECTOR_GUARD(&collector);
}

static VALUE send_early_hints(RB_BLOCK_CALL_FUNC_ARGLIST(headers, connection)) {
    rd_call *call = rd_connection_call(connection);
    if (call != NULL && !call->state.started && !call->state.done) send_hints(call, headers);
    return Qnil;
}

VALUE rd_early_hints_new(VALUE connection) {
    return rb_proc_new(send_early_hints, connection);
}
