/* SPDX-License-Identifier: MIT
 *
 * What becomes of a server in a forked child; see fork.h.
 */
#include "server/fork.h"

void rd_server_hold(rd_server *server) {
    rd_loop_lock(&server->loop);
}

void rd_server_release(rd_server *server) {
    rd_loop_unlock(&server->loop);
}

void rd_server_abandon(rd_server *server) {
    RD_EACH_LISTENER(server, listener, node) rd_listener_abandon(listener);
    rd_conn_set_abandon(&server->conns);
    if (server->pubsub.link != NULL) rd_conn_set_abandon(&server->pubsub.link->conns);
    rd_server_release(server);
}
