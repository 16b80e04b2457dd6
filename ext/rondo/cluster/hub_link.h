/* SPDX-License-Identifier: MIT
 *
 * The links of the hub's thread: what they send and read, what is queued for them, how they end.
 * hub_thread.c runs them, hub_saved.c saves them. Under the lock of the thread's loop.
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

/* The hub and its connections, none yet. The loop is there already. */
void rd_hub_links_init(rd_hub_thread *thread, rd_history_limits limits, size_t queue_bytes);

/* Closes all links and forgets what the hub knows. rd_conn_set_clear() follows, after the loop's.
 */
void rd_hub_links_clear(rd_hub_thread *thread);

/* Tells the hub what time it is. */
void rd_hub_links_take_time(rd_hub_thread *thread);

/* Opens a link on this descriptor and takes the descriptor over. NULL with errno. */
rd_conn *rd_hub_link_open(rd_hub_thread *thread, int fd, rd_hub_kind kind);

/* The process behind the link has ended: reads what it has left, then closes the link; an engine's
 * link closes when all is sent. */
void rd_hub_link_end(rd_hub_thread *thread, rd_conn *conn);

/* What each turn does before it polls: sends, answers replays, closes links that have too much
 * queued, writes scores. Returns whether there is more to do at once. */
bool rd_hub_links_serve(rd_hub_thread *thread);

/* Visits the links one after the other. The body must not close any. */
#define RD_EACH_HUB_CONN(thread, conn, node)                                                       \
    for (rd_list *node = (thread)->conns.conns.next; node != &(thread)->conns.conns;               \
         node = node->next)                                                                        \
        for (rd_conn *conn = RD_CONTAINER(node, rd_conn, in_set); conn != NULL; conn = NULL)

#endif
