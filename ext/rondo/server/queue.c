/* SPDX-License-Identifier: MIT
 *
 * Requests on their way to the application; see queue.h.
 */
#include "server/queue.h"

#include "base/apart.h"
#include "system/clock.h"
#include "server/server.h"

#define BUSY_NS 2000000 /* after a request was taken: the next one is expected soon */

static rd_request *of_node(rd_list *node) {
    return RD_CONTAINER(node, rd_request, in_queue);
}

/* ---- lines ---- */

/* The list in which a line waits for its turn. The owner of the present round is a line, or a
 * connection that carries no others; it continues its round until the clock is read next. */
static rd_list *fifo_for(rd_queue *queue, const void *owner) {
    bool goes_on = owner == queue->current && rd_list_is_empty(&queue->next);
    return goes_on ? &queue->next : &queue->lines;
}

RD_APART static void join_line(rd_queue *queue, rd_request *request, rd_line *line) {
    request->queued.line = line;
    rd_list_append(&line->waiting, &request->in_queue);
    queue->behind += line->len++ >= line->seats;
    rd_line_stand(fifo_for(queue, line), line);
}

/* A request of a carried connection waits in its carrier's line. */
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

RD_APART static void leave_shared_line(rd_queue *queue, rd_request *request, rd_line *line) {
    rd_list_unlink(&request->in_queue);
    queue->behind -= --line->len >= line->seats;
    rd_line_settle(line);
}

static inline void leave_queue(rd_queue *queue, rd_request *request) {
    if (rd_list_is_linked(&request->queued.by_age)) rd_list_unlink(&request->queued.by_age);
    request->queued.place = RD_PLACE_NONE;
    queue->len--;
}

static inline void leave_line(rd_queue *queue, rd_request *request) {
    rd_line *line = request->queued.line;
    if (line == NULL) {
        rd_list_unlink(&request->queued.standing.node);
    } else {
        leave_shared_line(queue, request, line);
    }
    leave_queue(queue, request);
}

/* ---- seats ---- */

RD_APART static void take_seat(rd_request *request, rd_line *line) {
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

static inline void end_call(rd_queue *queue, rd_request *request) {
    if (request->queued.place == RD_PLACE_SEATED) free_seat(queue, request);
}

/* ---- in ---- */

/* max_queue also limits each shared line: most of its requests do not count in the queue. */
RD_APART static bool is_beyond(const rd_server *server, const rd_request *request) {
    const rd_queue *queue = &server->queue;
    const int64_t most = server->settings.max_queue;
    const rd_lines *lines = rd_conn_lines(request->conn);
    return queue->len - queue->behind >= most || (lines != NULL && lines->calls.len >= most);
}

void rd_queue_add(rd_server *server, rd_request *request) {
    rd_queue *queue = &server->queue;
    rd_request_ref(request);
    request->times.ready_ns = server->loop.now_ns - queue->handed_wait_ns;
    if (server->settings.max_queue > 0 && is_beyond(server, request)) {
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

/* Where the message cannot be sent, the connection may close: then it has left already. */
static void sort_guest(rd_server *server, rd_request *request) {
    rd_request_ref(request);
    if (!rd_handover_move_guest(server, request) && request->conn != NULL) {
        wait_in_line(server, request);
    }
    rd_request_unref(request);
}

void rd_queue_sort_guests(rd_server *server) {
    for (rd_list *node; (node = rd_list_shift(&server->queue.guests)) != NULL;) {
        sort_guest(server, of_node(node));
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
    case RD_PLACE_FORWARDED:
    case RD_PLACE_NONE:
        return;
    }
    rd_request_unref(request);
}

/* ---- requests that wait too long ---- */

/* Answers 503 with Retry-After. The connection stays open. */
static void shed(rd_server *server, rd_request *request) {
    server->counts.dropped++;
    rd_calls_answer_unavailable(request, "too many requests are waiting\n");
    rd_request_unref(request);
}

static uint64_t late_ns(const rd_server *server, const rd_request *request) {
    return request->times.ready_ns + (uint64_t)server->settings.queue_timeout_ms * 1000000;
}

/* NULL: no request waits, or there is no queue_timeout_ms; then requests are not sorted by age. */
static rd_request *oldest(const rd_server *server) {
    const rd_queue *queue = &server->queue;
    if (rd_list_is_empty(&queue->by_age)) return NULL;
    return RD_CONTAINER(queue->by_age.next, rd_request, queued.by_age);
}

void rd_queue_shed(rd_server *server) {
    rd_queue *queue = &server->queue;
    for (rd_list *node; (node = rd_list_shift(&queue->excess)) != NULL;) {
        rd_request *request = of_node(node);
        request->queued.place = RD_PLACE_NONE;
        shed(server, request);
    }
    for (rd_request *first; (first = oldest(server)) != NULL;) {
        if (server->loop.now_ns <= late_ns(server, first)) return;
        leave_line(queue, first);
        shed(server, first);
    }
}

uint64_t rd_queue_due_ns(const rd_server *server) {
    const rd_request *first = oldest(server);
    const uint64_t due = server->calls.due_ns;
    return first != NULL && late_ns(server, first) < due ? late_ns(server, first) : due;
}

/* ---- out ---- */

/* Of the line that stands in `next`. */
RD_APART static void end_round(rd_queue *queue) {
    if (queue->round_left > 0) return;
    rd_list_append(&queue->lines, rd_list_shift(&queue->next));
    queue->current = NULL;
}

static inline void end_quantum(rd_queue *queue) {
    if (!rd_list_is_empty(&queue->next)) {
        end_round(queue);
        return;
    }
    queue->current = NULL;
    queue->round_left = 0;
}

void rd_queue_end_quantum(rd_server *server) {
    end_quantum(&server->queue);
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

static inline void let_go(rd_server *server, rd_request *request, uint64_t now) {
    end_call(&server->queue, request);
    rd_calls_end(server, request, now);
}

void rd_server_let_go(rd_server *server, rd_request *request) {
    let_go(server, request, rd_clock_ns());
}

/* Its round lasts a quantum from now on. */
static inline void begin_round(rd_server *server, const void *owner, uint64_t now) {
    rd_queue *queue = &server->queue;
    queue->current = owner;
    queue->round_left = 0;
    queue->quantum_end_ns = now + (uint64_t)server->settings.quantum_us * 1000;
    server->lead.busy_until_ns = now + BUSY_NS;
}

/* If more requests of the line wait, its round continues with them. */
RD_APART static void go_on_with(rd_queue *queue, rd_line *line) {
    queue->round_left = line->seats - 1;
    if (!rd_list_is_linked(&line->standing.node)) return;
    rd_list_unlink(&line->standing.node);
    rd_list_append(&queue->next, &line->standing.node);
}

/* The first request of a line that connections share. */
RD_APART static rd_request *take_of_line(rd_server *server, rd_line *line, bool goes_on,
                                         uint64_t now) {
    rd_queue *queue = &server->queue;
    rd_request *request = of_node(line->waiting.next);
    leave_line(queue, request);
    take_seat(request, line);
    if (!goes_on) {
        begin_round(server, line, now);
        go_on_with(queue, line);
    } else if (queue->round_left > 0) {
        queue->round_left--;
    }
    return request;
}

/* The first request of the line whose turn it is. Most requests are a line by themselves. */
static rd_request *take_first(rd_server *server, uint64_t now) {
    rd_queue *queue = &server->queue;
    const bool goes_on = !rd_list_is_empty(&queue->next);
    rd_standing *standing =
        RD_CONTAINER(goes_on ? queue->next.next : queue->lines.next, rd_standing, node);
    if (standing->is_line) {
        return take_of_line(server, RD_CONTAINER(standing, rd_line, standing), goes_on, now);
    }
    rd_request *request = RD_CONTAINER(standing, rd_request, queued.standing);
    rd_list_unlink(&standing->node);
    leave_queue(queue, request);
    if (!goes_on) begin_round(server, request->conn, now);
    return request;
}

static void begin_call(rd_server *server, rd_request *request, uint64_t now) {
    uint64_t waited = now > request->times.ready_ns ? now - request->times.ready_ns : 0;
    request->times.taken_ns = now;
    rd_histogram_add(&server->score->wait, waited / 1000);
    server->counts.requests++;
    server->queue.batch_count++;
    rd_calls_begin(server, request);
}

rd_request *rd_server_next_request(rd_server *server, rd_request *before) {
    rd_queue *queue = &server->queue;
    if (before == NULL && !rd_queue_is_ready(queue)) return NULL;
    uint64_t now = rd_clock_ns();
    server->lead.seen_ns = now;
    if (before != NULL) let_go(server, before, now);
    if (!rd_queue_is_ready(queue)) return NULL;
    if (now >= queue->quantum_end_ns) end_quantum(queue);
    if (batch_is_over(server, now)) return NULL;
    rd_request *request = take_first(server, now);
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

/* Requests remain only in a child of a fork: their connections belong to the parent. */
void rd_queue_clear(rd_queue *queue) {
    empty(queue, &queue->next);
    empty(queue, &queue->lines);
    unref_all(&queue->excess);
    unref_all(&queue->guests);
}
