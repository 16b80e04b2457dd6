/* SPDX-License-Identifier: MIT
 *
 * Requests for the static folder, answered by whoever runs the turn, the leader or the watch
 * thread, so they do not wait for Ruby. Each connection gets one answer a round. Under the loop
 * lock.
 *
 *   read ─┬─ known, or surely nowhere ─────────────────────────────┬─▶ for_files ──▶ answered
 *         ├─ waiting for an opening ──▶ files_opened ──────────────┤
 *         └─ files_later: too many openings are in flight ─ again  └─▶ the application
 *
 * Whoever waits longer than queue_timeout_ms is answered 503.
 */
#ifndef RD_SERVER_FILES_H
#define RD_SERVER_FILES_H

#include "server/server.h"

/* Serves a folder from now on. `alone`: there is no application. 0, or -1 with errno. Before the
 * server runs. */
int rd_files_open(rd_server *server, const char *folder, bool alone);

/* False: the request is for the application. */
bool rd_files_take(rd_server *server, rd_request *request);

/* Its client is gone while it waits to be answered. */
void rd_files_leave(rd_request *request);

/* Part of every turn. */
void rd_files_answer(rd_server *server);

/* Whether that has something to do. */
bool rd_files_wait(const rd_server *server);

/* Of server->files_timer. */
void rd_files_on_late(rd_timer *timer);

/* The connections are closed, and no opening is in flight. */
void rd_files_clear(rd_server *server);

#endif
