/* SPDX-License-Identifier: MIT
 *
 * Requests on their way through the application: which one is next, which wait too long for it, and
 * which calls take too long.
 *
 *   ready ──▶ queue ──(next_request)──▶ calls ──(let_go)──▶
 *               │                         ├── request_timeout_ms: 503
 *               │                         └── slow_request_ms: a line for the log
 *               ├── max_queue, queue_timeout_ms: 503
 *               └── on to another worker: handover.h
 *
 * A request is in one list at a time, by its in_queue: beside these two next, guests and excess,
 * see rd_server. Under the loop lock.
 */
#ifndef RD_SERVER_QUEUE_H
#define RD_SERVER_QUEUE_H

#include <stdint.h>

#include "http/request.h"

struct rd_server;

/* A request is ready for the application. */
void rd_queue_add(struct rd_server *server, rd_request *request);

/* The next request of a connection whose quantum is over goes to the end. */
void rd_queue_end_quantum(struct rd_server *server);

/* Answers what waited too long, and what is beyond max_queue. */
void rd_queue_turn_away(struct rd_server *server);

/* Answers calls that took too long, and tells the binding of those it should speak of. */
void rd_queue_check_calls(struct rd_server *server);

/* When the next of these is due, in microseconds from now; -1 for never. */
int64_t rd_queue_timeout(const struct rd_server *server);

/* When the oldest call without an answer began, in monotonic milliseconds; 0 without one. */
uint64_t rd_queue_oldest_call_ms(const struct rd_server *server);

#endif
