/* SPDX-License-Identifier: MIT
 *
 * Requests on their way through the application; see queue.h.
 */
#include "server/queue.h"

#include <string.h>

#include "system/clock.h"
#include "server/server.h"

#define BUSY_NS       2000000 /* since the last request was taken on */
#define SMOOTHED_OVER 16      /* calls */
#define UNHEARD_NS    1000000000
#define LOOKED_AT     16 /* calls, each turn; those whose answers have begun may be many */

/* ---- in ---- */

/* Every connection gets one request a round, or a quantum of application time if that is longer:
 * cheap pipelined requests leave together, an expensive one sends its connection to the end. The
 * next request of the connection whose turn it is stands aside until the clock is read anyway. */
void rd_queue_add(rd_server *server, rd_request *request) {
    int64_t most = server->settings.max_queue;
    rd_request_ref(request);
    request->ready_ns = server->loop.now_ns - server->handed_wait_ns;
    if (most > 0 && server->queue_len >= most) {
        rd_list_append(&server->excess, &request->in_queue);
        return;
    }
    server->queue_len++;
    if (request->conn->guest && server->handed_wait_ns == 0 && rd_handover_returns(server)) {
        rd_list_append(&server->guests, &request->in_queue);
    } else if (request->conn == server->current && rd_list_is_empty(&server->next)) {
        rd_list_append(&server->next, &request->in_queue);
    } else {
        rd_list_append(&server->queue, &request->in_queue);
    }
}

/* ---- requests that wait too long ---- */

static void answer_unavailable(rd_request *request, const char *text) {
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

/* 503 with Retry-After; the connection lives on. */
static void turn_away(rd_server *server, rd_request *request) {
    server->dropped++;
    if (request->conn != NULL) answer_unavailable(request, "too many requests are waiting\n");
    rd_request_unref(request);
}

static uint64_t after_ms(uint64_t ns, int64_t ms) {
    return ns + (uint64_t)ms * 1000000;
}

static bool waits_too_long(const rd_server *server, const rd_request *request) {
    int64_t most = server->settings.queue_timeout_ms;
    return most > 0 && server->loop.now_ns > after_ms(request->ready_ns, most);
}

void rd_queue_turn_away(rd_server *server) {
    for (rd_list *node; (node = rd_list_shift(&server->excess)) != NULL;) {
        turn_away(server, RD_CONTAINER(node, rd_request, in_queue));
    }
    while (!rd_list_is_empty(&server->queue)) {
        rd_request *first = RD_CONTAINER(server->queue.next, rd_request, in_queue);
        if (!waits_too_long(server, first)) return;
        rd_list_unlink(&first->in_queue);
        server->queue_len--;
        turn_away(server, first);
    }
}

/* ---- calls that take too long ---- */

/* The application itself has not begun to answer. */
static bool is_unanswered(const rd_request *request) {
    return request->status == 0 || request->timed_out;
}

/* After so many ms of the application's own time: its client's does not count. */
static uint64_t own_after_ms(const rd_server *server, const rd_request *request, int64_t ms) {
    return after_ms(rd_request_begun_ns(request, server->loop.now_ns), ms);
}

static uint64_t hangs_at(const rd_server *server, const rd_request *request) {
    const int64_t most = server->settings.hard_request_timeout_ms;
    if (most == 0 || request->hung || request->detached || !is_unanswered(request))
        return UINT64_MAX;
    return own_after_ms(server, request, most);
}

/* When a call is looked at next; UINT64_MAX for never again. */
static uint64_t next_due(const rd_server *server, const rd_request *request) {
    const rd_settings *settings = &server->settings;
    uint64_t due = hangs_at(server, request);
    if (request->conn == NULL || request->status != 0) return due; /* nobody waits for more */
    if (settings->request_timeout_ms > 0) {
        uint64_t late = own_after_ms(server, request, settings->request_timeout_ms);
        if (late < due) due = late;
    }
    if (settings->slow_request_ms > 0 && !request->reported) {
        uint64_t slow = after_ms(request->taken_ns, settings->slow_request_ms);
        if (slow < due) due = slow;
    }
    return due;
}

/* Whatever the application answers later, nobody hears it. */
static void answer_for_it(rd_server *server, rd_request *request) {
    server->timed_out++;
    answer_unavailable(request, "the application took too long\n");
    rd_request_set_gone(request);
    rd_request_wake(request);
}

static bool waits_for_answer(const rd_request *request) {
    return request->conn != NULL && request->status == 0;
}

/* Its process is to be replaced, and nobody waits for it meanwhile. */
static void hang(rd_server *server, rd_request *request) {
    rd_request_set_hung(request);
    if (waits_for_answer(request)) answer_for_it(server, request);
}

static void check_call(rd_server *server, rd_request *request) {
    const rd_settings *settings = &server->settings;
    uint64_t now = server->loop.now_ns;
    if (settings->slow_request_ms > 0 &&
        now >= after_ms(request->taken_ns, settings->slow_request_ms)) {
        request->reported = true;
    }
    if (settings->request_timeout_ms > 0 && waits_for_answer(request) &&
        now >= own_after_ms(server, request, settings->request_timeout_ms)) {
        answer_for_it(server, request);
        request->timed_out = true;
    }
    if (now >= hangs_at(server, request)) hang(server, request);
    if (server->need_attention == NULL) return;
    server->need_attention(server);
    if (server->attention_ns == 0) server->attention_ns = now;
}

/* Whoever should attend to it has not come: Ruby as a whole is stuck. */
static void check_attention(rd_server *server) {
    uint64_t since_ns = server->attention_ns;
    if (since_ns == 0 || server->loop.now_ns < since_ns + UNHEARD_NS) return;
    server->attention_ns = 0;
    if (server->unheard != NULL) server->unheard(server);
}

void rd_queue_check_calls(rd_server *server) {
    check_attention(server);
    if (server->loop.now_ns < server->next_call_due_ns) return;
    uint64_t next = UINT64_MAX;
    for (rd_list *node = server->calls.next; node != &server->calls; node = node->next) {
        rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
        if (next_due(server, request) <= server->loop.now_ns) check_call(server, request);
        uint64_t due = next_due(server, request);
        if (due < next) next = due;
    }
    server->next_call_due_ns = next;
}

/* A call began: it is the youngest, so only the first one changes what is due next. */
static void expect_call(rd_server *server, const rd_request *request) {
    uint64_t due = next_due(server, request);
    if (due < server->next_call_due_ns) server->next_call_due_ns = due;
}

uint64_t rd_queue_oldest_call_ms(const rd_server *server) {
    uint64_t oldest = UINT64_MAX;
    rd_list *node = server->calls.next;
    for (int left = LOOKED_AT; left > 0 && node != &server->calls; left--, node = node->next) {
        const rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
        if (request->taken_ns >= oldest) break;
        if (!is_unanswered(request) && !request->hung) continue;
        const uint64_t begun = rd_request_begun_ns(request, server->loop.now_ns);
        if (begun < oldest) oldest = begun;
    }
    return oldest == UINT64_MAX ? 0 : oldest / 1000000;
}

int64_t rd_queue_timeout(const rd_server *server) {
    uint64_t due = server->next_call_due_ns, now = rd_clock_ns();
    if (server->settings.queue_timeout_ms > 0 && !rd_list_is_empty(&server->queue)) {
        const rd_request *first = RD_CONTAINER(server->queue.next, rd_request, in_queue);
        uint64_t queued = after_ms(first->ready_ns, server->settings.queue_timeout_ms);
        if (queued < due) due = queued;
    }
    if (due == UINT64_MAX) return -1;
    return due > now ? (int64_t)((due - now) / 1000) + 1 : 0;
}

/* ---- out ---- */

void rd_queue_end_quantum(rd_server *server) {
    rd_list *node = rd_list_shift(&server->next);
    if (node != NULL) rd_list_append(&server->queue, node);
    server->current = NULL;
}

static bool batch_is_over(rd_server *server, uint64_t now) {
    if (server->batch_count == 0) {
        server->batch_since_ns = now;
        return false;
    }
    if (server->batch_count >= (uint32_t)server->settings.batch_requests) return true;
    return now - server->batch_since_ns > (uint64_t)server->settings.batch_us * 1000;
}

static void let_go(rd_server *server, rd_request *request, uint64_t now) {
    uint64_t took_ns = now - request->taken_ns;
    rd_histogram_add(&server->score->duration, took_ns / 1000);
    server->call_ns += took_ns / SMOOTHED_OVER;
    server->call_ns -= server->call_ns / SMOOTHED_OVER;
    rd_list_unlink(&request->in_queue);
    rd_request_unref(request);
}

void rd_server_let_go(rd_server *server, rd_request *request) {
    let_go(server, request, rd_clock_ns());
}

static rd_request *take(rd_server *server, bool goes_on, uint64_t now) {
    rd_list *node = rd_list_shift(goes_on ? &server->next : &server->queue);
    rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
    uint64_t waited = now > request->ready_ns ? now - request->ready_ns : 0;
    request->taken_ns = now;
    rd_histogram_add(&server->score->wait, waited / 1000);
    server->queue_len--;
    server->requests++;
    server->batch_count++;
    rd_list_append(&server->calls, &request->in_queue);
    expect_call(server, request);
    return request;
}

rd_request *rd_server_next_request(rd_server *server, rd_request *before) {
    bool goes_on = !rd_list_is_empty(&server->next);
    bool none = !goes_on && rd_list_is_empty(&server->queue);
    if (none && before == NULL) return NULL;
    uint64_t now = rd_clock_ns();
    server->leader_seen_ns = now;
    if (before != NULL) let_go(server, before, now);
    if (none) return NULL;
    if (goes_on && now >= server->quantum_end_ns) {
        rd_queue_end_quantum(server);
        goes_on = false;
    }
    if (batch_is_over(server, now)) return NULL;
    rd_request *request = take(server, goes_on, now);
    if (!goes_on) {
        server->current = request->conn;
        server->busy_until_ns = now + BUSY_NS;
        server->quantum_end_ns = now + (uint64_t)server->settings.quantum_us * 1000;
    }
    return request;
}
