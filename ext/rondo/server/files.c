/* SPDX-License-Identifier: MIT
 *
 * Requests for the static folder; see files.h.
 */
#include "server/files.h"

#define ANSWERS_PER_TURN 256

/* Where connections have what the limit of descriptors leaves, they share it with files: some are
 * for those that are kept, and with the ones on their way to slow clients there are no more. */
static void share_descriptors(rd_server *server, rd_file_cache *cache) {
    if (server->settings.max_connections > 0) return;
    cache->most_descriptors = server->connection_limit;
    cache->other_descriptors = &server->conns.count;
    if (cache->most_open > server->connection_limit / 4)
        cache->most_open = server->connection_limit / 4;
    server->connection_limit -= cache->most_open;
}

int rd_files_open(rd_server *server, const char *folder, bool alone) {
    rd_static *files = rd_static_new(folder, &server->settings, alone);
    if (files == NULL) return -1;
    share_descriptors(server, &files->cache);
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
