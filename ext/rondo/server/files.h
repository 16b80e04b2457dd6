/* SPDX-License-Identifier: MIT
 *
 * Requests for the static folder. The thread that runs the turn answers them, the leader or the
 * watch thread, so they do not wait for Ruby. Each connection gets one answer a round. Under the
 * loop lock.
 *
 *   read ─┬─ known, or surely nowhere ─────────────────────────────┬─▶ found ──▶ answered
 *         ├─ waiting for an opening ──▶ opened ───────────────────┤
 *         └─ later: too many openings are in flight ─ again  └─▶ the application
 *
 * A request that waits longer than queue_timeout_ms is answered 503.
 */
#ifndef RD_SERVER_FILES_H
#define RD_SERVER_FILES_H

#include "files/static_file.h"
#include "request/request.h"

struct rd_server;

typedef struct rd_files_queue {
    rd_static *folder; /* or NULL */
    rd_list found;     /* requests that the folder answers */
    rd_list opened;    /* openings that have finished */
    rd_list later;     /* requests that wait until another opening may begin */
    rd_timer timer;    /* runs while requests wait, with a deadline */
} rd_files_queue;

void rd_files_init(struct rd_server *server);

/* Serves a folder from now on. `alone`: there is no application. Returns 0, or -1 with errno.
 * Before the server runs. */
int rd_files_open(struct rd_server *server, const char *folder, bool alone);

/* Takes the request if it is for the folder. False: it is for the application. */
bool rd_files_take(struct rd_server *server, rd_request *request);

/* The client is gone while its request waits for an answer. */
void rd_files_leave(struct rd_server *server, rd_request *request);

/* Answers requests that are ready. Part of every turn. */
void rd_files_answer(struct rd_server *server);

/* Whether rd_files_answer() has something to do. */
bool rd_files_wait(const struct rd_server *server);

/* Call it when the connections are closed and no opening is in flight. */
void rd_files_clear(struct rd_server *server);

#endif
