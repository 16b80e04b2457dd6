/* SPDX-License-Identifier: MIT
 *
 * Requests, events and tasks, one after the other; see rb_serve.h.
 */
#include "threads/rb_serve.h"

#include "base/apart.h"
#include "binding/rb_fork.h"
#include "binding/rb_pool.h"
#include "app/rb_dispatch.h"
#include "app/rb_events.h"
#include "app/rb_task.h"

#define EVENTS_PER_TURN 32

void rd_serve_hand_over(rd_binding *binding, rd_request *before) {
    rd_lock(binding);
    if (before != NULL) rd_server_let_go(binding->server, before);
    rd_conn_set_flush(&binding->server->conns);
    rd_unlock(binding);
}

static bool may_run(const rd_visit *visit) {
    const rd_runner *runner = visit->runner;
    return runner->binding->pool.leader == runner && rd_pool_has_place(runner->binding);
}

/* Whether the visit runs more, after it has run something. */
static bool goes_on(const rd_visit *visit, int killed) {
    if (killed != 0 || !may_run(visit)) return false;
    return visit->fiber == Qfalse || visit->strand->goes_on(visit);
}

static bool serve_requests(rd_visit *visit, int *killed) {
    rd_binding *binding = visit->runner->binding;
    rd_request *before = NULL;
    rd_call call;
    bool runs = may_run(visit);
    while (runs) {
        const bool more = rd_call_begin(&call, visit, before);
        before = NULL;
        if (!more) return true;
        rd_pool_enter(visit, call.request);
        before = rd_call_run(&call);
        if (rd_is_forked(binding)) return false;
        rd_pool_leave(visit);
        *killed = call.killed;
        runs = goes_on(visit, call.killed);
    }
    rd_serve_hand_over(binding, before);
    return false;
}

static bool next_event(rd_binding *binding, rd_event *event, bool takes_one) {
    rd_lock(binding);
    const bool more = rd_server_next_event(binding->server, event, takes_one);
    rd_unlock(binding);
    return more;
}

/* Of upgraded connections. */
static bool serve_events(rd_visit *visit, int *killed) {
    rd_binding *binding = visit->runner->binding;
    rd_event event = {.source = NULL};
    bool runs = may_run(visit);
    for (int left = EVENTS_PER_TURN; next_event(binding, &event, runs && left > 0); left--) {
        rd_pool_enter(visit, NULL);
        *killed = rd_event_dispatch(binding, &event);
        if (rd_is_forked(binding)) return false;
        rd_pool_leave(visit);
        runs = goes_on(visit, *killed);
    }
    return runs;
}

/* For as long as a batch of requests may take. */
RD_APART static bool serve_tasks(rd_visit *visit, int *killed) {
    rd_binding *binding = visit->runner->binding;
    rd_task *task = NULL;
    volatile VALUE object = Qnil; /* until the next one is taken, which gives this one back */
    bool runs = may_run(visit);
    while ((task = rd_task_next(binding, task, runs)) != NULL) {
        object = rd_task_object(binding, task);
        rd_pool_enter(visit, NULL);
        *killed = rd_task_run(binding, task);
        if (rd_is_forked(binding)) return false;
        rd_pool_leave(visit);
        runs = goes_on(visit, *killed);
    }
    (void)object;
    return runs;
}

bool rd_serve_others(rd_visit *visit, int *killed) {
    return serve_events(visit, killed) && serve_tasks(visit, killed);
}

bool rd_serve(rd_visit *visit, bool others, int *killed) {
    const bool is_done = serve_requests(visit, killed);
    return is_done && others ? rd_serve_others(visit, killed) : is_done;
}

bool rd_serve_waits(rd_binding *binding, bool *others) {
    rd_server *server = binding->server;
    rd_lock(binding);
    *others = server->events.ready_count > 0;
    const bool waits = *others || rd_queue_has_requests(server);
    rd_unlock(binding);
    return waits;
}
