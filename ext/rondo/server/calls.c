/* SPDX-License-Identifier: MIT
 *
 * Calls of the application, from begin to end, and those that take too long; see calls.h.
 */
#include "server/calls.h"

#include <string.h>

#include "base/error.h"
#include "server/server.h"

#define SMOOTHED_OVER 16 /* calls */
#define UNHEARD_NS    1000000000
#define LOOKED_AT     16 /* calls per turn; many may have begun to answer */

/* With fibers there may be ten thousand calls. So a look at all of them is followed by a rest: a
 * call that takes too long is found a little later, and the looks take a twentieth of the time. */
#define REST_NS 2000 /* for each call */

/* ---- calls that take too long ---- */

static uint64_t after_ms(uint64_t ns, int64_t ms) {
    return ns + (uint64_t)ms * 1000000;
}

void rd_calls_answer_unavailable(rd_request *request, const char *text) {
    static const rd_field fields[] = {
        {RD_SLICE_INIT("content-type"), RD_SLICE_INIT("text/plain; charset=utf-8")},
        {RD_SLICE_INIT("retry-after"), RD_SLICE_INIT("1")},
    };
    size_t len = strlen(text);
    const rd_response_head head = {
        .status = 503, .fields = fields, .count = 2, .length = (int64_t)len};
    request->responder->start(request, &head);
    request->responder->write(request, text, len);
    request->responder->finish(request);
}

/* Whether the application has not begun to answer. A 503 from the server does not count. */
static bool is_unanswered(const rd_request *request) {
    return request->status == 0 || request->timed_out;
}

/* When the application has used `ms` of its own time. Time spent waiting for its client does not
 * count. */
static uint64_t own_after_ms(const rd_server *server, const rd_request *request, int64_t ms) {
    return after_ms(rd_request_begun_ns(request, server->loop.now_ns), ms);
}

static uint64_t hangs_at(const rd_server *server, const rd_request *request) {
    const int64_t most = server->settings.hard_request_timeout_ms;
    if (most == 0 || request->hung || request->detached || !is_unanswered(request))
        return UINT64_MAX;
    return own_after_ms(server, request, most);
}

/* When the call must be checked next. UINT64_MAX: never again. */
static uint64_t next_due(const rd_server *server, const rd_request *request) {
    const rd_settings *settings = &server->settings;
    uint64_t due = hangs_at(server, request);
    if (request->conn == NULL || request->status != 0) return due; /* no client waits */
    if (settings->request_timeout_ms > 0) {
        uint64_t late = own_after_ms(server, request, settings->request_timeout_ms);
        if (late < due) due = late;
    }
    if (settings->slow_request_ms > 0 && !request->reported) {
        uint64_t slow = after_ms(request->times.taken_ns, settings->slow_request_ms);
        if (slow < due) due = slow;
    }
    return due;
}

/* Answers 503 in place of the application. What the application answers later is discarded. The
 * call keeps its seat to its end. */
static void answer_for_it(rd_server *server, rd_request *request) {
    server->counts.timed_out++;
    rd_request_set_gone(request);
    rd_calls_answer_unavailable(request, "the application took too long\n");
    rd_request_wake(request);
}

static bool waits_for_answer(const rd_request *request) {
    return request->conn != NULL && request->status == 0;
}

/* The call hangs: its process is to be replaced, and its client is not kept waiting. */
static void hang(rd_server *server, rd_request *request) {
    rd_request_set_hung(request);
    if (waits_for_answer(request)) answer_for_it(server, request);
}

static void check_call(rd_server *server, rd_request *request) {
    const rd_settings *settings = &server->settings;
    uint64_t now = server->loop.now_ns;
    if (settings->slow_request_ms > 0 &&
        now >= after_ms(request->times.taken_ns, settings->slow_request_ms)) {
        request->reported = true;
    }
    if (settings->request_timeout_ms > 0 && waits_for_answer(request) &&
        now >= own_after_ms(server, request, settings->request_timeout_ms)) {
        answer_for_it(server, request);
        request->timed_out = true;
    }
    if (now >= hangs_at(server, request)) hang(server, request);
    if (server->hooks.need_attention == NULL) return;
    server->hooks.need_attention(server);
    if (server->calls.attention_ns == 0) server->calls.attention_ns = now;
}

/* No Ruby thread has reacted to need_attention(): Ruby as a whole is stuck. */
static void check_attention(rd_server *server) {
    uint64_t since_ns = server->calls.attention_ns;
    if (since_ns == 0 || server->loop.now_ns < since_ns + UNHEARD_NS) return;
    server->calls.attention_ns = 0;
    if (server->hooks.unheard != NULL) server->hooks.unheard(server);
}

static uint64_t after_rest(const rd_server *server, uint64_t due_ns) {
    return due_ns > server->calls.rest_ns ? due_ns : server->calls.rest_ns;
}

void rd_calls_check(rd_server *server) {
    check_attention(server);
    if (server->loop.now_ns < server->calls.due_ns) return;
    uint64_t next = UINT64_MAX, looked_at = 0;
    for (rd_list *node = server->calls.active.next; node != &server->calls.active;
         node = node->next, looked_at++) {
        rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
        if (next_due(server, request) <= server->loop.now_ns) check_call(server, request);
        uint64_t due = next_due(server, request);
        if (due < next) next = due;
    }
    server->calls.rest_ns = server->loop.now_ns + looked_at * REST_NS;
    server->calls.due_ns = after_rest(server, next);
}

uint64_t rd_calls_oldest_ms(const rd_server *server) {
    uint64_t oldest = UINT64_MAX;
    rd_list *node = server->calls.active.next;
    for (int left = LOOKED_AT; left > 0 && node != &server->calls.active;
         left--, node = node->next) {
        const rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
        if (request->times.taken_ns >= oldest) break;
        if (!is_unanswered(request) && !request->hung) continue;
        const uint64_t begun = rd_request_begun_ns(request, server->loop.now_ns);
        if (begun < oldest) oldest = begun;
    }
    return oldest == UINT64_MAX ? 0 : oldest / 1000000;
}

/* ---- begin and end ---- */

void rd_calls_init(rd_calls *calls) {
    rd_list_init(&calls->active);
    calls->due_ns = UINT64_MAX;
}

/* The new call is the youngest, so its deadline is rarely the next one. */
void rd_calls_begin(rd_server *server, rd_request *request) {
    rd_list_append(&server->calls.active, &request->in_queue);
    const uint64_t due = next_due(server, request);
    if (due < server->calls.due_ns) server->calls.due_ns = after_rest(server, due);
}

void rd_calls_end(rd_server *server, rd_request *request, uint64_t now_ns) {
    uint64_t took_ns = now_ns - request->times.taken_ns;
    rd_histogram_add(&server->score->duration, took_ns / 1000);
    server->calls.usual_ns += took_ns / SMOOTHED_OVER;
    server->calls.usual_ns -= server->calls.usual_ns / SMOOTHED_OVER;
    rd_list_unlink(&request->in_queue);
    rd_request_unref(request);
}

/* ---- calls that wait for their clients ---- */

/* Whatever the client does moves its deadline, so the deadline says when the client last acted. */
bool rd_calls_is_silent(const rd_server *server, const rd_request *request, uint64_t for_ms) {
    const rd_conn *conn = request->conn;
    if (conn == NULL) return true;
    const rd_settings *settings = &server->settings;
    const uint64_t write_deadline = rd_conn_write_deadline(conn);
    const bool reads = write_deadline != UINT64_MAX;
    const uint64_t deadline = reads ? write_deadline : conn->deadlines.protocol;
    const int64_t timeout_ms = reads ? settings->write_timeout_ms : settings->body_timeout_ms;
    if (deadline == UINT64_MAX) return false; /* the call does not wait for the client */
    return deadline - (uint64_t)timeout_ms + for_ms <= server->loop.now_ms;
}

void rd_calls_give_up(rd_server *server, rd_request *request) {
    if (request->conn == NULL) return;
    server->counts.given_up++;
    rd_incidents_add(server, &request->conn->peer, RD_ERR_GIVEN_UP);
    request->responder->give_up(request);
}
