/* SPDX-License-Identifier: MIT
 *
 * Requests inside the application, and which of them take too long.
 *
 *   begin ──▶ active ──▶ end
 *               ├── slow_request_ms: a line for the log
 *               ├── request_timeout_ms: 503
 *               └── hard_request_timeout_ms: its process is to be replaced
 *
 * A request is in `active` by its in_queue. Under the loop lock.
 */
#ifndef RD_SERVER_CALLS_H
#define RD_SERVER_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/request.h"

struct rd_server;

typedef struct rd_calls {
    rd_list active;        /* the oldest first */
    uint64_t due_ns;       /* when one of them takes too long */
    uint64_t attention_ns; /* since when attention is needed; 0: it is not */
    uint64_t usual_ns;     /* how long calls take lately */
} rd_calls;

void rd_calls_init(rd_calls *calls);

/* A thread has taken the request and calls the application; taken_ns says when. */
void rd_calls_begin(struct rd_server *server, rd_request *request);

/* The call is over; the reference is given back. */
void rd_calls_end(struct rd_server *server, rd_request *request, uint64_t now_ns);

/* Answers calls that took too long, and tells the binding of those it should speak of. */
void rd_calls_check(struct rd_server *server);

/* When the oldest call without an answer began, in monotonic milliseconds; 0 without one. */
uint64_t rd_calls_oldest_ms(const struct rd_server *server);

/* Whether its client has taken and sent nothing for so long, as far as a call waits for that. */
bool rd_calls_is_silent(const struct rd_server *server, const rd_request *request, uint64_t for_ms);

/* Too many calls wait for their clients: that of this one is not waited for any longer. */
void rd_calls_give_up(struct rd_server *server, rd_request *request);

/* 503 with Retry-After, and this text; the connection lives on. */
void rd_calls_answer_unavailable(rd_request *request, const char *text);

#endif
