/* SPDX-License-Identifier: MIT
 *
 * Waiting inside an application call for the client: until it has read enough of the response, sent
 * its body, or left. Other requests must not wait for that: the application thread gives its place
 * away meanwhile (rb_pool.h). So slow clients cost threads that sleep, but never delay requests.
 */
#include "binding/rb_wait.h"

#include "base/error.h"
#include "system/clock.h"
#include "ruby/rb_gvl.h"
#include "binding/rb_binding.h"
#include "binding/rb_pool.h"
#include "binding/rb_strand.h"

bool rd_has_drained(const rd_request *request) {
    return request->conn == NULL || !request->conn->above_high || !rd_conn_is_open(request->conn);
}

bool rd_has_body(const rd_request *request) {
    return request->body_complete || request->body_error != 0 || request->conn == NULL;
}

bool rd_has_sent_all(const rd_request *request) {
    return request->conn == NULL || request->conn->out.bytes == 0;
}

/* A call that sleeps until the core wakes it. */
typedef struct rd_sleeper {
    rd_client_wait wait;
    rd_sleep sleep;
} rd_sleeper;

static void wake(rd_waiter *waiter) {
    rd_sleep *sleep = &RD_CONTAINER(waiter, rd_sleeper, wait.waiter)->sleep;
    sleep->ops->wake(sleep);
}

/* Adds the waiter to the request's list. False: there is nothing to wait for any more. */
static bool begin_waiting(rd_binding *binding, rd_request *request, rd_satisfied satisfied,
                          rd_sleeper *sleeper) {
    rd_lock(binding);
    bool waits = !satisfied(request);
    if (waits) rd_request_begin_wait(request, &sleeper->wait.waiter);
    rd_unlock(binding);
    return waits;
}

/* Returns the state of what was raised meanwhile, or 0. */
static int wait_once(rd_binding *binding, rd_request *request, rd_sleeper *sleeper,
                     int64_t most_ms) {
    sleeper->sleep.ops->sleep(&sleeper->sleep, most_ms);
    rd_lock(binding);
    rd_request_end_wait(request, &sleeper->wait.waiter);
    rd_unlock(binding);
    return sleeper->sleep.ops->raised(&sleeper->sleep);
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

/* Another thread may end the call meanwhile, so this holds references to what it uses. */
bool rd_wait_until(rd_binding *binding, rd_request *request, rd_satisfied satisfied) {
    rd_sleeper sleeper = {.wait = {.request = request, .waiter.wake = wake}};
    rd_visit *visit = rd_visit_current(binding);
    int state = 0;
    rd_list_init(&sleeper.wait.node);
    rd_list_init(&sleeper.wait.waiter.node);
    rd_sleep_begin(&sleeper.sleep, binding);
    hold(binding, request);
    while (state == 0 && begin_waiting(binding, request, satisfied, &sleeper)) {
        const int64_t most_ms = visit != NULL ? rd_pool_wait_for_client(visit, &sleeper.wait) : -1;
        state = wait_once(binding, request, &sleeper, most_ms);
    }
    if (visit != NULL) {
        int raised = rd_pool_client_came(visit, &sleeper.wait, state != 0);
        if (state == 0) state = raised;
    }
    const bool is_there = let_go(binding, request);
    if (state != 0) rb_jump_tag(state);
    return is_there;
}
