/* SPDX-License-Identifier: MIT
 *
 * The pub/sub of one process: its channels, the history of its messages, and what carries them
 * to other processes. Messages that are published during a turn reach their subscribers before the
 * next turn sleeps, a part of them at a time. Under the loop lock.
 *
 * A worker of a cluster has a link to the hub, which has the history of all workers and gives the
 * ids. A message that is published here goes to the subscribers here at once, and to the hub. If a
 * rule of the history matches, it is delivered only when it comes back from the hub with its id.
 */
#ifndef RD_MESSAGING_PUBSUB_H
#define RD_MESSAGING_PUBSUB_H

#include "endpoint/endpoint.h"
#include "request/handler.h"
#include "transport/conn.h"
#include "pubsub/changes.h"
#include "pubsub/channel.h"
#include "pubsub/history.h"
#include "cluster/link.h"
#include "messaging/hold.h"

typedef enum rd_reach {
    RD_REACH_PROCESS,
    RD_REACH_CLUSTER,
    RD_REACH_ENGINE,   /* the engine of the cluster, in the master; it sends the message back */
    RD_REACH_CONFIRM,  /* that engine, which says when it has the message; a note comes first */
    RD_REACH_SIBLINGS, /* the other processes of the cluster, the master included */
    RD_REACH_ROOT,     /* the master; without a cluster this process */
} rd_reach;

typedef struct rd_pubsub {
    rd_channels channels;
    rd_engine engine;   /* notified of the first and last subscriber of a channel */
    rd_history history; /* with an open link, rules only */
    rd_link *link;      /* NULL: no cluster */
    rd_holds holds;
    bool has_streams; /* an engine keeps messages for all servers: clients learn of gaps */
    rd_conn_set *conns;
    rd_timer expiry; /* runs while the history has messages */
    rd_http_shared *shared;
    rd_endpoint *observer; /* the application's, notified like the engine; NULL: none */
    rd_changes changes;    /* of which the observer is still to be notified */
    uint64_t published;
    uint64_t replay_timeouts;
    uint64_t replay_gaps; /* that the hub has not counted, and that are not in the row yet */
} rd_pubsub;

/* Of a channel: it has its first subscriber here now, or lost its last one. */
typedef struct rd_pubsub_change {
    bool is_pattern, is_wanted;
    size_t len;
    char name[RD_CHANNEL_NAME_MAX];
} rd_pubsub_change;

void rd_pubsub_init(rd_pubsub *pubsub, rd_conn_set *conns, rd_http_shared *shared);
void rd_pubsub_clear(rd_pubsub *pubsub);

/* Takes over a socket to the hub, see rd_link_open(), and sends the hub the present subscriptions
 * and rules. Returns 0, or -1 with errno. */
int rd_pubsub_link(rd_pubsub *pubsub, int fd);

/* 1: the message is on its way; 0: there is no room for it; RD_ERR_CHANNEL_NAME;
 * RD_ERR_RELAY_PAYLOAD: above max_publish_bytes. */
int rd_pubsub_publish(rd_pubsub *pubsub, rd_slice channel, rd_slice payload, bool is_text,
                      rd_reach reach);

/* How to subscribe; see rd_subscribe_terms. */
typedef struct rd_pubsub_terms {
    rd_receive_as as;
    uintptr_t block; /* 0: messages go to the client of the endpoint */
    bool replays;    /* what came after `since`, from the history */
    uint64_t since;
} rd_pubsub_terms;

/* 1: subscribed; 0: was subscribed before; < 0: see rd_channels_subscribe(). A replay from the hub
 * arrives later, and new messages after it. */
int rd_pubsub_subscribe(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                        const rd_pubsub_terms *terms);
bool rd_pubsub_unsubscribe(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name,
                           bool is_pattern);

/* See rd_history_keep(). */
int rd_pubsub_keep(rd_pubsub *pubsub, rd_slice name, bool is_pattern, rd_relay_terms terms);

/* A subscriber of the application itself, without a connection. The caller has the reference, until
 * rd_pubsub_release(). */
rd_endpoint *rd_pubsub_subscriber(rd_pubsub *pubsub);
void rd_pubsub_release(rd_pubsub *pubsub, rd_endpoint *endpoint);

/* A subscriber that keeps its messages until they are taken: it makes no events. It subscribes with
 * block 0. A byte is written to `fd`, which does not block and is the caller's until
 * rd_pubsub_release(), when the first message comes. Above RD_MAILBOX_BYTES messages are dropped,
 * and counted in messages_dropped. */
#define RD_MAILBOX_BYTES ((size_t)16 << 20)
rd_endpoint *rd_pubsub_mailbox(rd_pubsub *pubsub, int fd);

/* The oldest message; the caller gets the reference. NULL: there is none. */
rd_message *rd_mailbox_take(rd_endpoint *endpoint);

/* Notifies such a subscriber that channels have subscribers here: the present ones first, then
 * every change. One event, which says nothing else, waits for it as long as there are changes to
 * take. */
void rd_pubsub_observe(rd_pubsub *pubsub, rd_endpoint *endpoint);

/* The next one that the observer is to know of. False: there is none. */
bool rd_pubsub_take_change(rd_pubsub *pubsub, rd_pubsub_change *change);

/* Delivers a part of the published messages, here and to the hub. */
static inline void rd_pubsub_run(rd_pubsub *pubsub) {
    /* rd_channels_run() sends messages to a crowd at once; what is ready is sent before them. */
    if (rd_fanout_is_crowd(&pubsub->channels.fanout)) rd_conn_set_flush(pubsub->conns);
    if (!rd_list_is_empty(&pubsub->channels.fanout.ready)) rd_channels_run(&pubsub->channels);
    if (!rd_list_is_empty(&pubsub->holds.due)) rd_holds_run(&pubsub->holds);
    if (pubsub->link != NULL) rd_link_flush(pubsub->link);
}

/* Whether there is more to deliver. */
static inline bool rd_pubsub_waits(const rd_pubsub *pubsub) {
    return !rd_list_is_empty(&pubsub->channels.fanout.ready) ||
           !rd_list_is_empty(&pubsub->holds.due) ||
           (pubsub->link != NULL && rd_link_is_behind(pubsub->link));
}

#endif
