/* SPDX-License-Identifier: MIT
 *
 * Requests for the static folder, answered by whoever runs the turn, the leader or the watch
 * thread, so they do not wait for Ruby. Each connection gets one answer a round. Under the loop
 * lock.
 *
 *   read ─┬─ known, or surely nowhere ─────────────────────────────┬─▶ found ──▶ answered
 *         ├─ waiting for an opening ──▶ opened ───────────────────┤
 *         └─ later: too many openings are in flight ─ again  └─▶ the application
 *
 * Whoever waits longer than queue_timeout_ms is answered 503.
 */
#ifndef RD_SERVER_FILES_H
#define RD_SERVER_FILES_H

#include "files/static_file.h"
#include "http/request.h"

struct rd_server;

typedef struct rd_files_queue {
    rd_static *folder; /* or NULL */
    rd_list found;     /* requests that the folder answers */
    rd_list opened;    /* openings that are over */
    rd_list later;     /* requests beyond those that may be in flight */
    rd_timer timer;    /* runs while requests wait, with a deadline */
} rd_files_queue;

void rd_files_init(struct rd_server *server);

/* Serves a folder from now on. `alone`: there is no application. 0, or -1 with errno. Before the
 * server runs. */
int rd_files_open(struct rd_server *server, const char *folder, bool alone);

/* False: the request is for the application. */
bool rd_files_take(struct rd_server *server, rd_request *request);

/* Its client is gone while it waits to be answered. */
void rd_files_leave(rd_request *request);

/* Part of every turn. */
void rd_files_answer(struct rd_server *server);

/* Whether that has something to do. */
bool rd_files_wait(const struct rd_server *server);

/* The connections are closed, and no opening is in flight. */
void rd_files_clear(struct rd_server *server);

#endif
