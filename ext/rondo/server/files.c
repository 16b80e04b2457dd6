/* SPDX-License-Identifier: MIT
 *
 * Requests for the static folder; see files.h.
 */
#include "server/files.h"

#define ANSWERS_PER_TURN 256

/* How many it may keep open; where connections have what the limit of descriptors leaves, they get
 * so many fewer. */
static uint32_t take_descriptors(rd_server *server) {
    uint32_t most = (uint32_t)server->settings.static_cache_files;
    if (server->settings.max_connections > 0) return most;
    if (most > server->connection_limit / 4) most = server->connection_limit / 4;
    server->connection_limit -= most;
    return most;
}

int rd_files_open(rd_server *server, const char *folder, bool alone) {
    rd_static *files = rd_static_new(folder, &server->settings, alone);
    if (files == NULL) return -1;
    files->cache.most_open = take_descriptors(server);
    rd_static_free(server->files);
    server->files = files;
    return 0;
}

bool rd_files_take(rd_server *server, rd_request *request) {
    if (server->files == NULL) return false;
    if (!rd_static_takes(server->files, request, server->loop.now_ms)) return false;
    rd_request_ref(request);
    rd_list_append(&server->for_files, &request->in_queue);
    return true;
}

/* An answer lets the connection's next request in, which waits behind those of the others. */
void rd_files_answer(rd_server *server) {
    if (rd_list_is_empty(&server->for_files)) return;
    for (int left = ANSWERS_PER_TURN; left > 0; left--) {
        rd_list *node = rd_list_shift(&server->for_files);
        if (node == NULL) break;
        rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
        if (request->conn != NULL &&
            !rd_static_answer(server->files, request, server->loop.now_ms)) {
            rd_queue_add(server, request);
        }
        rd_request_unref(request);
    }
    rd_conn_set_flush(&server->conns);
}
