/* SPDX-License-Identifier: MIT
 *
 * Requests for the static folder: known when they are read, answered by whoever runs the turn,
 * the leader or the watch thread, so they do not wait for Ruby. Each connection gets one answer a
 * round. Under the loop lock.
 */
#ifndef RD_SERVER_FILES_H
#define RD_SERVER_FILES_H

#include "server/server.h"

/* Serves a folder from now on. `alone`: there is no application. 0, or -1 with errno. Before the
 * server runs. */
int rd_files_open(rd_server *server, const char *folder, bool alone);

/* False: the request is for the application. */
bool rd_files_take(rd_server *server, rd_request *request);

/* Part of every turn. */
void rd_files_answer(rd_server *server);

#endif
