/* SPDX-License-Identifier: MIT
 *
 * Requests that the application is answering, and which of them take too long.
 *
 *   begin ──▶ active ──▶ end
 *               ├── slow_request_ms: a line for the log
 *               ├── request_timeout_ms: 503
 *               └── hard_request_timeout_ms: its process is to be replaced
 *
 * A request is linked into `active` by its in_queue. Under the loop lock.
 */
#ifndef RD_SERVER_CALLS_H
#define RD_SERVER_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "request/request.h"

struct rd_server;

typedef struct rd_calls {
    rd_list active;        /* the oldest first */
    uint64_t due_ns;       /* when the next call takes too long, or they are looked at again */
    uint64_t rest_ns;      /* before that they are not looked at */
    uint64_t attention_ns; /* when attention was requested; 0: it is not needed */
    uint64_t usual_ns;     /* how long calls take lately */
} rd_calls;

void rd_calls_init(rd_calls *calls);

/* A thread has taken the request, at taken_ns, and calls the application. */
void rd_calls_begin(struct rd_server *server, rd_request *request);

/* The call is over. Gives back the reference. */
void rd_calls_end(struct rd_server *server, rd_request *request, uint64_t now_ns);

/* Answers calls that took too long, and notifies the binding of calls that belong in the log. */
void rd_calls_check(struct rd_server *server);

/* When the oldest call without an answer began, in monotonic milliseconds. 0: there is none. */
uint64_t rd_calls_oldest_ms(const struct rd_server *server);

/* Whether the call waits for its client, and the client has read and sent nothing for for_ms. */
bool rd_calls_is_silent(const struct rd_server *server, const rd_request *request, uint64_t for_ms);

/* Too many calls wait for their clients: gives up the client of this call. */
void rd_calls_give_up(struct rd_server *server, rd_request *request);

/* Answers 503 with Retry-After and this text. The connection stays open. */
void rd_calls_answer_unavailable(rd_request *request, const char *text);

#endif
