/* SPDX-License-Identifier: MIT
 *
 * Requests on their way to the application; see queue.h.
 */
#include "server/queue.h"

#include <string.h>

#include "base/apart.h"
#include "system/clock.h"
#include "server/server.h"

#define BUSY_NS       2000000 /* since the last request was taken on */
#define SMOOTHED_OVER 16      /* calls */
#define UNHEARD_NS    1000000000
#define LOOKED_AT     16 /* calls, each turn; those whose answers have begun may be many */

static rd_request *of_node(rd_list *node) {
    return RD_CONTAINER(node, rd_request, in_queue);
}

/* ---- lines ---- */

/* Whose round it can be: a line, or a connection that carries no others. Never followed. */
static const void *owner_of(const rd_request *request) {
    const rd_line *line = request->queued.line;
    return line != NULL ? (const void *)line : request->conn;
}

/* Where a line stands whose turn is to come: with that of the one whose round it is one waits until
 * the clock is read anyway. */
static rd_list *fifo_for(rd_queue *queue, const void *owner) {
    bool goes_on = owner == queue->current && rd_list_is_empty(&queue->next);
    return goes_on ? &queue->next : &queue->lines;
}

RD_APART static void join_line(rd_queue *queue, rd_request *request, rd_line *line) {
    request->queued.line = line;
    rd_list_append(&line->waiting, &request->in_queue);
    rd_line_stand(fifo_for(queue, line), line);
}

/* A connection that is carried waits with the others of its carrier. */
static void wait_in_line(rd_server *server, rd_request *request) {
    rd_queue *queue = &server->queue;
    rd_lines *lines = rd_conn_lines(request->conn);
    request->queued.place = RD_PLACE_WAITING;
    if (server->settings.queue_timeout_ms > 0) {
        rd_list_append(&queue->by_age, &request->queued.by_age);
    }
    if (lines != NULL) {
        join_line(queue, request, &lines->calls);
        return;
    }
    request->queued.line = NULL;
    rd_list_append(fifo_for(queue, request->conn), &request->queued.standing.node);
}

static void leave_line(rd_queue *queue, rd_request *request) {
    rd_line *line = request->queued.line;
    if (line == NULL) {
        rd_list_unlink(&request->queued.standing.node);
    } else {
        rd_list_unlink(&request->in_queue);
        rd_line_settle(line);
    }
    if (rd_list_is_linked(&request->queued.by_age)) rd_list_unlink(&request->queued.by_age);
    request->queued.place = RD_PLACE_NONE;
    queue->len--;
}

/* ---- seats ---- */

static void take_seat(rd_request *request, rd_line *line) {
    request->queued.place = RD_PLACE_SEATED;
    rd_lines_ref(RD_CONTAINER(line, rd_lines, calls));
    line->inside++;
    rd_line_settle(line);
}

RD_APART static void free_seat(rd_queue *queue, rd_request *request) {
    rd_line *line = request->queued.line;
    request->queued.place = RD_PLACE_NONE;
    line->inside--;
    rd_line_stand(fifo_for(queue, line), line);
    rd_lines_unref(RD_CONTAINER(line, rd_lines, calls));
}

void rd_queue_end_call(rd_server *server, rd_request *request) {
    if (request->queued.place == RD_PLACE_SEATED) free_seat(&server->queue, request);
}

/* ---- in ---- */

void rd_queue_add(rd_server *server, rd_request *request) {
    rd_queue *queue = &server->queue;
    int64_t most = server->settings.max_queue;
    rd_request_ref(request);
    request->ready_ns = server->loop.now_ns - queue->handed_wait_ns;
    if (most > 0 && queue->len >= most) {
        request->queued.place = RD_PLACE_EXCESS;
        rd_list_append(&queue->excess, &request->in_queue);
        return;
    }
    queue->len++;
    if (request->conn->guest && queue->handed_wait_ns == 0 && rd_handover_returns(server)) {
        request->queued.place = RD_PLACE_GUEST;
        rd_list_append(&queue->guests, &request->in_queue);
    } else {
        wait_in_line(server, request);
    }
}

void rd_queue_sort_guests(rd_server *server) {
    for (rd_list *node; (node = rd_list_shift(&server->queue.guests)) != NULL;) {
        rd_request *request = of_node(node);
        if (!rd_handover_move_guest(server, request)) wait_in_line(server, request);
    }
}

/* ---- clients that are gone ---- */

static void leave_list(rd_request *request) {
    rd_list_unlink(&request->in_queue);
    request->queued.place = RD_PLACE_NONE;
}

RD_APART void rd_queue_leave(rd_server *server, rd_request *request) {
    switch (request->queued.place) {
    case RD_PLACE_WAITING:
        leave_line(&server->queue, request);
        break;
    case RD_PLACE_GUEST:
        leave_list(request);
        server->queue.len--;
        break;
    case RD_PLACE_EXCESS:
        leave_list(request);
        break;
    case RD_PLACE_SEATED:
        if (!request->gone) free_seat(&server->queue, request);
        return;
    case RD_PLACE_FILES:
    case RD_PLACE_NONE:
        return;
    }
    rd_request_unref(request);
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
    answer_unavailable(request, "too many requests are waiting\n");
    rd_request_unref(request);
}

static uint64_t after_ms(uint64_t ns, int64_t ms) {
    return ns + (uint64_t)ms * 1000000;
}

static uint64_t late_ns(const rd_server *server, const rd_request *request) {
    return after_ms(request->ready_ns, server->settings.queue_timeout_ms);
}

/* NULL when none waits, or none can wait too long: then they are not sorted by age. */
static rd_request *oldest(const rd_server *server) {
    const rd_queue *queue = &server->queue;
    if (rd_list_is_empty(&queue->by_age)) return NULL;
    return RD_CONTAINER(queue->by_age.next, rd_request, queued.by_age);
}

void rd_queue_turn_away(rd_server *server) {
    rd_queue *queue = &server->queue;
    for (rd_list *node; (node = rd_list_shift(&queue->excess)) != NULL;) {
        rd_request *request = of_node(node);
        request->queued.place = RD_PLACE_NONE;
        turn_away(server, request);
    }
    for (rd_request *first; (first = oldest(server)) != NULL;) {
        if (server->loop.now_ns <= late_ns(server, first)) return;
        leave_line(queue, first);
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
    const rd_request *first = oldest(server);
    if (first != NULL && late_ns(server, first) < due) due = late_ns(server, first);
    if (due == UINT64_MAX) return -1;
    return due > now ? (int64_t)((due - now) / 1000) + 1 : 0;
}

/* ---- out ---- */

void rd_queue_end_quantum(rd_server *server) {
    rd_queue *queue = &server->queue;
    if (queue->round_left > 0 && !rd_list_is_empty(&queue->next)) return;
    rd_list *node = rd_list_shift(&queue->next);
    if (node != NULL) rd_list_append(&queue->lines, node);
    queue->current = NULL;
    queue->round_left = 0;
}

static bool batch_is_over(rd_server *server, uint64_t now) {
    rd_queue *queue = &server->queue;
    if (queue->batch_count == 0) {
        queue->batch_since_ns = now;
        return false;
    }
    if (queue->batch_count >= (uint32_t)server->settings.batch_requests) return true;
    return now - queue->batch_since_ns > (uint64_t)server->settings.batch_us * 1000;
}

static void let_go(rd_server *server, rd_request *request, uint64_t now) {
    uint64_t took_ns = now - request->taken_ns;
    rd_histogram_add(&server->score->duration, took_ns / 1000);
    server->call_ns += took_ns / SMOOTHED_OVER;
    server->call_ns -= server->call_ns / SMOOTHED_OVER;
    rd_queue_end_call(server, request);
    rd_list_unlink(&request->in_queue);
    rd_request_unref(request);
}

void rd_server_let_go(rd_server *server, rd_request *request) {
    let_go(server, request, rd_clock_ns());
}

/* The first request of the line whose turn it is. */
static rd_request *take_first(rd_queue *queue) {
    rd_list *lines = rd_list_is_empty(&queue->next) ? &queue->lines : &queue->next;
    rd_request *request = rd_standing_first(lines->next);
    leave_line(queue, request);
    if (request->queued.line != NULL) take_seat(request, request->queued.line);
    return request;
}

/* More of its requests wait: they go on from there. */
RD_APART static void go_on_with(rd_queue *queue, rd_line *line) {
    queue->round_left = line->seats - 1;
    if (!rd_list_is_linked(&line->standing.node)) return;
    rd_list_unlink(&line->standing.node);
    rd_list_append(&queue->next, &line->standing.node);
}

static void begin_round(rd_server *server, const rd_request *request, uint64_t now) {
    rd_queue *queue = &server->queue;
    queue->current = owner_of(request);
    queue->round_left = 0;
    queue->quantum_end_ns = now + (uint64_t)server->settings.quantum_us * 1000;
    server->busy_until_ns = now + BUSY_NS;
    if (request->queued.line != NULL) go_on_with(queue, request->queued.line);
}

static void begin_call(rd_server *server, rd_request *request, uint64_t now) {
    uint64_t waited = now > request->ready_ns ? now - request->ready_ns : 0;
    request->taken_ns = now;
    rd_histogram_add(&server->score->wait, waited / 1000);
    server->requests++;
    server->queue.batch_count++;
    rd_list_append(&server->calls, &request->in_queue);
    expect_call(server, request);
}

rd_request *rd_server_next_request(rd_server *server, rd_request *before) {
    rd_queue *queue = &server->queue;
    if (before == NULL && !rd_queue_is_ready(queue)) return NULL;
    uint64_t now = rd_clock_ns();
    server->leader_seen_ns = now;
    if (before != NULL) let_go(server, before, now);
    if (!rd_queue_is_ready(queue)) return NULL;
    if (now >= queue->quantum_end_ns) rd_queue_end_quantum(server);
    if (batch_is_over(server, now)) return NULL;
    const bool goes_on = !rd_list_is_empty(&queue->next);
    rd_request *request = take_first(queue);
    if (!goes_on) {
        begin_round(server, request, now);
    } else if (queue->round_left > 0) {
        queue->round_left--;
    }
    begin_call(server, request, now);
    return request;
}

/* ---- the queue itself ---- */

void rd_queue_init(rd_queue *queue) {
    rd_list_init(&queue->lines);
    rd_list_init(&queue->next);
    rd_list_init(&queue->by_age);
    rd_list_init(&queue->guests);
    rd_list_init(&queue->excess);
}

static void unref_all(rd_list *requests) {
    for (rd_list *node; (node = rd_list_shift(requests)) != NULL;) {
        rd_request *request = of_node(node);
        request->queued.place = RD_PLACE_NONE;
        rd_request_unref(request);
    }
}

static void empty(rd_queue *queue, rd_list *fifo) {
    while (!rd_list_is_empty(fifo)) {
        rd_request *first = rd_standing_first(fifo->next);
        leave_line(queue, first);
        rd_request_unref(first);
    }
}

/* What is still there had no chance to leave: its connection is the parent's, who has forked. */
void rd_queue_clear(rd_queue *queue) {
    empty(queue, &queue->next);
    empty(queue, &queue->lines);
    unref_all(&queue->excess);
    unref_all(&queue->guests);
}
