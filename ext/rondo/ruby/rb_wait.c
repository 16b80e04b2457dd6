/* SPDX-License-Identifier: MIT
 *
 * Waiting inside an application call for the client: until it took enough of the response, sent
 * its body, or left. Nobody else may wait for that, so on the thread of the loop the fiber that
 * waits is parked and another one goes on with the loop:
 *
 *   fiber A: app.call … body part … [queue full] ── transfer ──▶ fiber B: loop, other requests …
 *            … next part … ◀──────────── transfer ───────────────  … [A's client has read]
 *
 * Nothing is switched while nobody waits, and an application call stays on one fiber from its
 * beginning to the end of its body, so fiber-local values hold. Other threads wait for a
 * condition. When too many are parked already, the caller runs turns that take on no request.
 */
#include "ruby/rb_call.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"

enum { WAIT_NOBODY, WAIT_THREAD, WAIT_FIBER }; /* wait_slot: WAIT_FIBER + index */

bool rd_has_drained(const rd_request *request) {
    return request->conn == NULL || !request->conn->above_high || !rd_conn_is_open(request->conn);
}

bool rd_has_body(const rd_request *request) {
    return request->body_complete || request->body_error != 0 || request->conn == NULL;
}

bool rd_has_sent_all(const rd_request *request) {
    return request->conn == NULL || request->conn->out.bytes == 0;
}

/* ---- fibers ---- */

static VALUE run_fiber(RB_BLOCK_CALL_FUNC_ARGLIST(unused, core)) {
    (void)unused;
    return rd_run_in_fiber(rd_binding_of(core));
}

static VALUE new_fiber(VALUE core) {
    return rb_fiber_new(run_fiber, core);
}

/* A fiber that can go on with the loop; nil when the system has no more of them. */
static VALUE next_runner(rd_binding *binding) {
    VALUE fiber = rb_ary_pop(binding->idle_fibers);
    if (!NIL_P(fiber)) return fiber;
    int state = 0;
    fiber = rb_protect(new_fiber, binding->self, &state);
    if (state == 0) return fiber;
    rb_set_errinfo(Qnil);
    return Qnil;
}

static uint32_t parking_place(rd_binding *binding) {
    long len = RARRAY_LEN(binding->parked_fibers);
    for (long i = 0; i < len; i++) {
        if (NIL_P(RARRAY_AREF(binding->parked_fibers, i))) return (uint32_t)i;
    }
    return (uint32_t)len;
}

/* Marks the request as waited for, unless there is nothing to wait for any more. */
static bool begin_waiting(rd_binding *binding, rd_request *request, rd_satisfied satisfied,
                          uint32_t slot) {
    rd_lock(binding);
    bool waits = !satisfied(request);
    request->waiting = waits;
    request->wait_slot = slot;
    rd_unlock(binding);
    return waits;
}

static bool park(rd_binding *binding, rd_request *request, rd_satisfied satisfied) {
    if (binding->parked_count >= (uint32_t)binding->server->settings.max_parked_bodies) {
        return false;
    }
    VALUE runner = next_runner(binding);
    if (NIL_P(runner)) return false;
    uint32_t place = parking_place(binding);
    if (!begin_waiting(binding, request, satisfied, WAIT_FIBER + place)) {
        rb_ary_push(binding->idle_fibers, runner);
        return true;
    }
    rb_ary_store(binding->parked_fibers, place, rb_fiber_current());
    binding->parked_count++;
    rb_fiber_transfer(runner, 0, NULL);
    return true;
}

void rd_resume_waiting(rd_binding *binding, rd_request *request) {
    if (request->wait_slot < WAIT_FIBER) {
        rd_gvl_announce_change(binding);
        return;
    }
    long place = (long)(request->wait_slot - WAIT_FIBER);
    VALUE fiber = rb_ary_entry(binding->parked_fibers, place);
    request->wait_slot = WAIT_NOBODY;
    if (NIL_P(fiber)) return;
    rb_ary_store(binding->parked_fibers, place, Qnil);
    binding->parked_count--;
    rb_ary_push(binding->idle_fibers, rb_fiber_current());
    rb_fiber_transfer(fiber, 0, NULL);
}

/* ---- without a fiber ---- */

static void wait_in_turns(rd_binding *binding, rd_request *request, rd_satisfied satisfied) {
    for (bool done = false; !done;) {
        rd_lock(binding);
        request->waiting = false;
        if (!satisfied(request)) rd_server_turn_inner(binding->server, rd_gvl_wait);
        done = satisfied(request);
        rd_unlock(binding);
        rd_gvl_check_interrupts();
    }
}

static void wait_in_thread(rd_binding *binding, rd_request *request, rd_satisfied satisfied) {
    for (;;) {
        uint64_t seen = rd_gvl_change_count(binding);
        if (!begin_waiting(binding, request, satisfied, WAIT_THREAD)) return;
        rd_loop_wakeup(&binding->server->loop); /* it may sleep without knowing of new output */
        rd_gvl_await_change(binding, seen);
    }
}

void rd_wait_until(rd_binding *binding, rd_request *request, rd_satisfied satisfied) {
    if (binding->runner != rb_thread_current()) {
        wait_in_thread(binding, request, satisfied);
        return;
    }
    for (bool done = false; !done;) {
        if (!park(binding, request, satisfied)) wait_in_turns(binding, request, satisfied);
        rd_lock(binding);
        done = satisfied(request);
        rd_unlock(binding);
    }
}

void rd_wait_forget(rd_binding *binding) {
    rb_ary_clear(binding->idle_fibers);
    rb_ary_clear(binding->parked_fibers);
    binding->parked_count = 0;
}
