/* SPDX-License-Identifier: MIT
 *
 * Waiting inside an application call for the client: until it took enough of the response, sent
 * its body, or left. Nobody else may wait for that: an application thread gives its place away
 * meanwhile (rb_pool.h), so that slow clients cost threads that sleep, never requests that wait.
 * Sending a part of a body is here because it ends in such a wait, or in letting others go first.
 */
#include "system/clock.h"
#include "base/error.h"
#include "ruby/rb_call.h"
#include "ruby/rb_error.h"
#include "ruby/rb_gvl.h"

#define TURN_NS   2000000   /* of a call, from rd_call.turn_ns on, while others wait */
#define NEEDED_NS 100000000 /* of one that came in because nobody else went on */

bool rd_has_drained(const rd_request *request) {
    return request->conn == NULL || !request->conn->above_high || !rd_conn_is_open(request->conn);
}

bool rd_has_body(const rd_request *request) {
    return request->body_complete || request->body_error != 0 || request->conn == NULL;
}

bool rd_has_sent_all(const rd_request *request) {
    return request->conn == NULL || request->conn->out.bytes == 0;
}

typedef struct rd_thread_waiter {
    rd_client_wait wait;
    rd_semaphore changed;
} rd_thread_waiter;

static void wake(rd_waiter *waiter) {
    rd_semaphore_post(&RD_CONTAINER(waiter, rd_thread_waiter, wait.waiter)->changed);
}

/* Stands in the request's list, unless there is nothing to wait for any more. */
static bool begin_waiting(rd_binding *binding, rd_request *request, rd_satisfied satisfied,
                          rd_thread_waiter *waiter) {
    rd_lock(binding);
    bool waits = !satisfied(request);
    if (waits) rd_request_begin_wait(request, &waiter->wait.waiter);
    rd_unlock(binding);
    return waits;
}

/* The state of what was raised meanwhile, or 0. */
static int wait_once(rd_binding *binding, rd_request *request, rd_thread_waiter *waiter,
                     int64_t most_ms) {
    rd_gvl_wait_semaphore(&waiter->changed, most_ms);
    rd_lock(binding);
    rd_request_end_wait(request, &waiter->wait.waiter);
    rd_unlock(binding);
    return rd_gvl_protected_interrupts();
}

static void hold(rd_binding *binding, rd_request *request) {
    rd_binding_ref(binding);
    rd_lock(binding);
    rd_request_ref(request);
    rd_unlock(binding);
}

static bool let_go(rd_binding *binding, rd_request *request) {
    rd_lock(binding);
    const bool is_there = !request->gone;
    rd_request_unref(request);
    rd_unlock(binding);
    rd_binding_unref(binding);
    return is_there;
}

/* Another thread may end the call meanwhile, so what is waited with is held. */
bool rd_wait_until(rd_binding *binding, rd_request *request, rd_satisfied satisfied) {
    rd_thread_waiter waiter = {.wait = {.request = request, .waiter.wake = wake}};
    rd_runner *runner = rd_pool_current(binding);
    int state = 0;
    rd_list_init(&waiter.wait.node);
    rd_list_init(&waiter.wait.waiter.node);
    rd_semaphore_init(&waiter.changed);
    hold(binding, request);
    while (state == 0 && begin_waiting(binding, request, satisfied, &waiter)) {
        const int64_t most_ms = runner != NULL ? rd_pool_wait_for_client(runner, &waiter.wait) : -1;
        state = wait_once(binding, request, &waiter, most_ms);
    }
    if (runner != NULL) {
        int raised = rd_pool_client_came(runner, &waiter.wait, state != 0);
        if (state == 0) state = raised;
    }
    const bool is_there = let_go(binding, request);
    if (state != 0) rb_jump_tag(state);
    return is_there;
}

/* Whether something waits for the application; under the lock. */
static bool has_crowd(const rd_binding *binding) {
    return binding->server->queue_len > 0 || !rd_list_is_empty(&binding->server->events);
}

/* Whoever leads does not know who waits, because nobody has looked since. */
static void take_turns(rd_call *call, bool is_crowded) {
    const uint64_t since = rd_clock_ns() - call->turn_ns;
    if (since < TURN_NS || rd_is_forked(call->binding)) return;
    rd_pool *pool = &call->binding->pool;
    rd_runner *runner = call->runner;
    if (runner == NULL || runner->thread != rb_thread_current()) return;
    if (runner->needed && since < NEEDED_NS) return;
    int state = 0;
    if (is_crowded || pool->leader == runner || !rd_list_is_empty(&pool->resuming) ||
        !rd_list_is_empty(&pool->aside)) {
        state = rd_pool_step_aside(runner);
    }
    call->turn_ns = rd_clock_ns();
    if (state != 0) rb_jump_tag(state);
}

bool rd_call_has_client(const rd_call *call) {
    rd_lock(call->binding);
    const bool there = call->request->conn != NULL;
    rd_unlock(call->binding);
    return there;
}

int rd_send_part(rd_call *call, VALUE part, uint64_t *waited_ns) {
    rd_binding *binding = call->binding;
    rd_request *request = call->request;
    int code = rd_write_part(call, part);
    rd_lock(binding);
    if (code >= 0) code = request->responder->flush(request);
    const bool drained = rd_has_drained(request), is_crowded = has_crowd(binding);
    rd_unlock(binding);
    *waited_ns = 0;
    if (code < 0 || drained) {
        take_turns(call, is_crowded);
        return code;
    }
    const rd_runner *runner = call->runner;
    const bool is_own = runner != NULL && runner->thread == rb_thread_current();
    const uint64_t before = rd_clock_ns();
    const bool is_there = rd_wait_until(binding, request, rd_has_drained);
    if (is_own) *waited_ns = rd_clock_ns() - before;
    return is_there ? 0 : RD_ERR_CLOSED;
}
