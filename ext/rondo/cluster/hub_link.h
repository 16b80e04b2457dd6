/* SPDX-License-Identifier: MIT
 *
 * A link of the hub's thread: the state behind its connection. Shared by hub_thread.c, which runs
 * it, and hub_saved.c, which saves it.
 */
#ifndef RD_CLUSTER_HUB_LINK_H
#define RD_CLUSTER_HUB_LINK_H

#include <pthread.h>
#include <stdatomic.h>

#include "pubsub/hub.h"
#include "cluster/hub_thread.h"
#include "transport/conn.h"

typedef struct rd_hub_conn {
    rd_hub_link link;
    rd_relay_reader reader;
    int64_t number;
    rd_score_row *score;
    uint64_t named_outages;
    bool is_overrun; /* too much queued that cannot be dropped: must be closed */
} rd_hub_conn;

struct rd_hub_thread {
    rd_loop loop;
    rd_settings settings;
    rd_transport transport;
    rd_conn_set conns;
    rd_ready_set found;
    rd_timer expire_timer;
    rd_hub hub;
    size_t queue_bytes;
    int64_t last_number;
    uint64_t sent, dropped; /* of links that have gone */
    pthread_t thread;
    bool is_running;
    bool has_overrun; /* whether some link has */
    atomic_bool over;
};

static inline rd_hub_conn *rd_hub_conn_of(rd_conn *conn) {
    return rd_conn_state_of(conn);
}

/* Opens a link on this descriptor and takes the descriptor over. NULL with errno. Locked. */
rd_conn *rd_hub_thread_open(rd_hub_thread *thread, int fd, rd_hub_kind kind);

/* Visits the links one after the other. The body must not close any. */
#define RD_EACH_HUB_CONN(thread, conn, node)                                                       \
    for (rd_list *node = (thread)->conns.conns.next; node != &(thread)->conns.conns;               \
         node = node->next)                                                                        \
        for (rd_conn *conn = RD_CONTAINER(node, rd_conn, in_set); conn != NULL; conn = NULL)

#endif
