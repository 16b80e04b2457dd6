/* SPDX-License-Identifier: MIT
 *
 * Requests on their way to the application; see queue.h.
 */
#include "server/queue.h"

#include "base/apart.h"
#include "system/clock.h"
#include "server/server.h"

#define BUSY_NS   2000000 /* after a request was taken: the next one is expected soon */
#define RIVALS_NS 1000000 /* clients that waited so lately will ask again */

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

static void place_line(rd_queue *queue, rd_line *line) {
    rd_line_place(line, fifo_for(queue, line), line->is_held ? &queue->held : &queue->full);
}

void rd_queue_hold(rd_server *server, rd_line *line, bool is_held) {
    rd_queue *queue = &server->queue;
    if (rd_list_is_linked(&line->standing.node)) rd_list_unlink(&line->standing.node);
    queue->behind -= rd_line_behind(line);
    line->is_held = is_held;
    queue->behind += rd_line_behind(line);
    place_line(queue, line);
}

RD_APART static void join_line(rd_queue *queue, rd_request *request, rd_line *line) {
    request->queued.line = line;
    rd_request_join_line(request, line);
    queue->behind -= rd_line_behind(line);
    line->len++;
    queue->behind += rd_line_behind(line);
    place_line(queue, line);
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
    queue->behind -= rd_line_behind(line);
    line->len--;
    queue->behind += rd_line_behind(line);
    place_line(queue, line);
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

static void sit_down(rd_queue *queue, rd_request *request) {
    rd_line *line = request->queued.line;
    request->queued.is_out = false;
    rd_list_append(&line->seated, &request->queued.standing.node);
    line->inside++;
    place_line(queue, line);
}

static void get_up(rd_queue *queue, rd_request *request) {
    rd_line *line = request->queued.line;
    request->queued.is_out = true;
    rd_list_unlink(&request->queued.standing.node);
    line->inside--;
    place_line(queue, line);
}

RD_APART static void take_seat(rd_queue *queue, rd_request *request, rd_line *line) {
    request->queued.place = RD_PLACE_SEATED;
    rd_lines_ref(RD_CONTAINER(line, rd_lines, calls));
    sit_down(queue, request);
}

RD_APART static void free_seat(rd_queue *queue, rd_request *request) {
    rd_line *line = request->queued.line;
    if (!request->queued.is_out) get_up(queue, request);
    request->queued.place = RD_PLACE_NONE;
    request->queued.is_out = false;
    rd_lines_unref(RD_CONTAINER(line, rd_lines, calls));
}

static bool is_seated(const rd_request *request) {
    return request->queued.place == RD_PLACE_SEATED && !request->queued.is_out;
}

void rd_queue_step_out(rd_server *server, rd_request *request) {
    if (is_seated(request)) get_up(&server->queue, request);
}

/* It does not wait for a seat: its call has begun. */
void rd_queue_step_in(rd_server *server, rd_request *request) {
    if (request->queued.place == RD_PLACE_SEATED && request->queued.is_out) {
        sit_down(&server->queue, request);
    }
}

/* When the request that has had its seat for longest gives it away. */
static uint64_t patient_until_ns(const rd_server *server, const rd_line *line) {
    if (server->settings.fibers == 0 || rd_list_is_empty(&line->seated)) return UINT64_MAX;
    const rd_request *first = RD_CONTAINER(line->seated.next, rd_request, queued.standing.node);
    return first->times.taken_ns + (uint64_t)server->settings.seat_patience_ms * 1000000;
}

static rd_line *line_at(rd_list *node) {
    return RD_CONTAINER(RD_CONTAINER(node, rd_standing, node), rd_line, standing);
}

/* The first line that waits for a seat is asked; the others are asked in later turns. */
void rd_queue_lose_patience(rd_server *server) {
    rd_queue *queue = &server->queue;
    rd_line *line = line_at(queue->full.next);
    if (server->settings.fibers == 0) return;
    if (patient_until_ns(server, line) > server->loop.now_ns) {
        rd_list_append(&queue->full, rd_list_shift(&queue->full));
        return;
    }
    rd_lines_ref(RD_CONTAINER(line, rd_lines, calls));
    while (patient_until_ns(server, line) <= server->loop.now_ns) {
        get_up(queue, RD_CONTAINER(line->seated.next, rd_request, queued.standing.node));
    }
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

/* Of the line that is asked next. */
RD_APART static uint64_t seat_due_ns(const rd_server *server) {
    return patient_until_ns(server, line_at(server->queue.full.next));
}

uint64_t rd_queue_due_ns(const rd_server *server) {
    const rd_request *first = oldest(server);
    uint64_t due = server->calls.due_ns;
    if (!rd_list_is_empty(&server->queue.full) && seat_due_ns(server) < due) {
        due = seat_due_ns(server);
    }
    return first != NULL && late_ns(server, first) < due ? late_ns(server, first) : due;
}

/* ---- out ---- */

/* A fourth of the places stays free, and one at least, so that who comes next need not wait for the
 * calls of a line that goes beyond its seats. */
bool rd_queue_goes_beyond(const rd_server *server) {
    const rd_score_row *row = server->score;
    const uint64_t places = atomic_load_explicit(&row->max_threads, memory_order_relaxed);
    const uint64_t busy = atomic_load_explicit(&row->busy, memory_order_relaxed);
    return busy + 1 + (places < 8 ? 1 : places / 4) <= places;
}

bool rd_queue_has_requests(const rd_server *server) {
    const rd_queue *queue = &server->queue;
    if (rd_queue_is_ready(queue)) return true;
    return !rd_list_is_empty(&queue->full) && rd_queue_goes_beyond(server);
}

bool rd_queue_has_work(const rd_server *server) {
    return rd_queue_has_requests(server) || !rd_list_is_empty(&server->queue.guests);
}

/* Of the line that stands in `next`. */
RD_APART static void end_round(rd_server *server) {
    rd_queue *queue = &server->queue;
    if (queue->round_left > 0) return;
    const bool is_alone = rd_list_is_empty(&queue->lines);
    rd_list_append(&queue->lines, rd_list_shift(&queue->next));
    queue->current = NULL;
    if (is_alone && queue->is_contested) queue->batch_count = UINT32_MAX;
}

static inline void end_quantum(rd_server *server) {
    rd_queue *queue = &server->queue;
    if (!rd_list_is_empty(&queue->next)) {
        end_round(server);
        return;
    }
    queue->current = NULL;
    queue->round_left = 0;
}

void rd_queue_end_quantum(rd_server *server) {
    end_quantum(server);
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
    if (line->is_full || !rd_list_is_linked(&line->standing.node)) return;
    rd_list_unlink(&line->standing.node);
    rd_list_append(&queue->next, &line->standing.node);
}

/* The round of a line begins, which is no longer in the queue. Clients with one request at a time
 * compete with it although none waits now: they have sent their next ones, which nobody has read.
 * Beside them a round is a request for each seat, however short these are, and there is one in a
 * batch. */
RD_APART static void compete(rd_server *server, uint64_t now) {
    rd_queue *queue = &server->queue;
    const unsigned turn = atomic_load_explicit(&server->lead.turns, memory_order_relaxed);
    const bool others_wait = !rd_list_is_empty(&queue->lines);
    const bool is_second = queue->line_turn == turn;
    queue->line_turn = turn;
    if (others_wait) queue->rivals_ns = now;
    queue->is_contested = now - queue->rivals_ns < RIVALS_NS;
    if (!queue->is_contested) return;
    queue->quantum_end_ns = now;
    if (!is_second || others_wait) return;
    queue->batch_count = UINT32_MAX - 1; /* this request ends the batch and the round */
    queue->round_left = 0;
}

/* The first request of a line that connections share. */
RD_APART static rd_request *take_of_line(rd_server *server, rd_line *line, bool goes_on,
                                         uint64_t now) {
    rd_queue *queue = &server->queue;
    rd_request *request = of_node(line->waiting.next);
    leave_line(queue, request);
    take_seat(queue, request, line);
    if (!goes_on) {
        begin_round(server, line, now);
        go_on_with(queue, line);
        compete(server, now);
    } else if (queue->round_left > 0) {
        queue->round_left--;
    }
    return request;
}

/* Nobody waits for a turn, and threads are free: the lines that wait for seats go on, one request
 * each. Their round is over at once. */
RD_APART static rd_request *take_beyond(rd_server *server, uint64_t now) {
    rd_queue *queue = &server->queue;
    rd_list *node = rd_list_shift(&queue->full);
    rd_line *line = line_at(node);
    rd_request *request = of_node(line->waiting.next);
    rd_list_append(&queue->full, node);
    leave_line(queue, request);
    take_seat(queue, request, line);
    begin_round(server, NULL, now);
    return request;
}

/* The first request of the line whose turn it is. Most requests are a line by themselves. */
static rd_request *take_first(rd_server *server, uint64_t now) {
    rd_queue *queue = &server->queue;
    const bool goes_on = !rd_list_is_empty(&queue->next);
    if (!goes_on && rd_list_is_empty(&queue->lines)) return take_beyond(server, now);
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
    if (server->onlook.busiest != NULL) rd_onlook_count(&server->onlook, request, waited / 1000);
    server->counts.requests++;
    server->queue.batch_count++;
    rd_calls_begin(server, request);
}

rd_request *rd_server_next_request(rd_server *server, rd_request *before) {
    rd_queue *queue = &server->queue;
    if (before == NULL && !rd_queue_has_requests(server)) return NULL;
    uint64_t now = rd_clock_ns();
    server->lead.seen_ns = now;
    if (before != NULL) let_go(server, before, now);
    if (!rd_queue_has_requests(server)) return NULL;
    if (now >= queue->quantum_end_ns) end_quantum(server);
    if (batch_is_over(server, now)) return NULL;
    rd_request *request = take_first(server, now);
    begin_call(server, request, now);
    return request;
}

/* ---- the queue itself ---- */

void rd_queue_init(rd_queue *queue) {
    rd_list_init(&queue->lines);
    rd_list_init(&queue->next);
    rd_list_init(&queue->full);
    rd_list_init(&queue->held);
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
    empty(queue, &queue->full);
    empty(queue, &queue->held);
    unref_all(&queue->excess);
    unref_all(&queue->guests);
}
