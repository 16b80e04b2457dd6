/* SPDX-License-Identifier: MIT
 *
 * Requests on their way to the application: which one is next, and which have waited too long.
 *
 *   ready ──▶ line ──▶ FIFO of lines ──(next_request)──▶ calls.h
 *               ├── max_queue, queue_timeout_ms: 503
 *               ├── its client is gone: it leaves at once
 *               └── to another worker: handover.h
 *
 * Requests wait in the line of their connection's descriptor (request/line.h), and lines have their
 * turns one after the other. In a round a line gets as many requests as it has seats, or a quantum
 * of application time if that is longer. A seat that becomes free puts its line at the end.
 *
 * `len` less `behind` is how many requests wait for a thread: max_queue limits that, and siblings
 * see it. Of a shared line at most as many count as it has seats: the others wait for these, and
 * more threads would not help them.
 *
 * A request is in one list at a time, linked by its in_queue. Under the loop lock.
 */
#ifndef RD_SERVER_QUEUE_H
#define RD_SERVER_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "request/request.h"

struct rd_server;

typedef struct rd_queue {
    rd_list lines;   /* rd_standing: in the order in which they get their turn */
    rd_list next;    /* rd_standing, at most one: the line whose round continues */
    rd_list full;    /* rd_standing: lines that wait for a seat */
    rd_list held;    /* rd_standing: lines that are held */
    rd_list by_age;  /* with queue_timeout_ms: requests in lines, the oldest first */
    rd_list guests;  /* requests of connections that may move to another worker; see handover.h */
    rd_list excess;  /* requests beyond max_queue, to be answered 503 */
    uint32_t len;    /* of requests in lines, with or without a free seat, and of guests */
    uint32_t behind; /* of these, the requests of lines beyond their seats, or that are held */
    uint32_t batch_count; /* of requests; UINT32_MAX: the batch is over */
    bool is_contested;    /* the round of a shared line: other clients ask, too */
    uint64_t batch_since_ns;
    uint64_t quantum_end_ns;
    uint64_t rivals_ns;      /* when others waited at the beginning of a round of a shared line */
    unsigned line_turn;      /* of that beginning, as lead.turns counts */
    uint64_t handed_wait_ns; /* how long the request being read waited in another worker */
    const void *current;     /* the owner of the round: a connection, or a shared line */
    uint32_t round_left;     /* requests of the round still to come, however long they take */
} rd_queue;

void rd_queue_init(rd_queue *queue);
void rd_queue_clear(rd_queue *queue);

/* Whether a line waits for its turn. */
static inline bool rd_queue_is_ready(const rd_queue *queue) {
    return !rd_list_is_empty(&queue->lines) || !rd_list_is_empty(&queue->next);
}

/* Whether lines that wait for a seat go on without one: enough threads are free. For a queue in
 * which nobody waits for its turn. */
bool rd_queue_goes_beyond(const struct rd_server *server);

/* Whether a request can be taken now. The queue may be long without that: its requests wait for
 * seats of their lines then. */
bool rd_queue_has_requests(const struct rd_server *server);

/* The same, or would be if no other worker took it. */
bool rd_queue_has_work(const struct rd_server *server);

/* Adds a request that is ready for the application. */
void rd_queue_add(struct rd_server *server, rd_request *request);

/* Moves guests to another worker, or lets them wait with the other requests. */
void rd_queue_sort_guests(struct rd_server *server);

/* The request leaves the queue, or gives back its seat. If its call continues without a client, the
 * end of the call gives the seat back. */
void rd_queue_leave(struct rd_server *server, rd_request *request);

/* The call of the request has left its place in the application, or has one again. */
void rd_queue_step_out(struct rd_server *server, rd_request *request);
void rd_queue_step_in(struct rd_server *server, rd_request *request);

/* No more requests are taken from the line, or they are again. */
void rd_queue_hold(struct rd_server *server, rd_line *line, bool is_held);

/* With fibers: calls that have had their seats for seat_patience_ms give them to requests that wait
 * for them. */
void rd_queue_lose_patience(struct rd_server *server);

/* A line whose quantum is over goes to the end, unless requests of its round are still to come. */
void rd_queue_end_quantum(struct rd_server *server);

/* Answers 503 to requests that have waited too long, and to those beyond max_queue. */
void rd_queue_shed(struct rd_server *server);

/* When the next request or call is late; UINT64_MAX: never. */
uint64_t rd_queue_due_ns(const struct rd_server *server);

#endif
