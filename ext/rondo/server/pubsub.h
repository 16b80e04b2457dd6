/* SPDX-License-Identifier: MIT
 *
 * The pub/sub of one process: its channels, the history of its messages, and whoever carries them
 * further. Messages that were published during a turn reach their subscribers before the next one
 * sleeps, a slice of them at a time. Under the loop lock.
 *
 * A worker of a cluster has a link to the hub, which has the history of all workers and gives the
 * ids. What is published here goes to the subscribers here at once, and to the hub; where a rule of
 * the history matches, it comes back from the hub first, with its id.
 */
#ifndef RD_SERVER_PUBSUB_H
#define RD_SERVER_PUBSUB_H

#include "http/handler.h"
#include "transport/conn.h"
#include "pubsub/changes.h"
#include "pubsub/channel.h"
#include "pubsub/history.h"
#include "cluster/link.h"

typedef enum rd_reach {
    RD_REACH_PROCESS,
    RD_REACH_CLUSTER,
    RD_REACH_ENGINE, /* that of the cluster, in the master; it brings the message back */
} rd_reach;

typedef struct rd_pubsub {
    rd_channels channels;
    rd_engine engine;   /* hears of the first and the last subscriber of a channel */
    rd_history history; /* with an open link only its rules */
    rd_link *link;      /* NULL: no cluster */
    rd_conn_set *conns;
    rd_timer expiry; /* runs while the history has something */
    rd_http_shared *shared;
    rd_push *watcher;   /* the application's, told of that too; NULL: it does not want to know */
    rd_changes changes; /* that the watcher has not been told of yet */
    uint64_t published;
    uint64_t replay_timeouts;
} rd_pubsub;

/* What the watcher is told as a message's payload; the message's channel is the one it is about. */
#define RD_PUBSUB_COMMANDS                                                                         \
    { "unsubscribe", "subscribe", "punsubscribe", "psubscribe" }

void rd_pubsub_init(rd_pubsub *pubsub, rd_conn_set *conns, rd_http_shared *shared);
void rd_pubsub_clear(rd_pubsub *pubsub);

/* Takes over a socket to the hub, see rd_link_open(); what there is here already is told. 0, or -1
 * with errno. */
int rd_pubsub_link(rd_pubsub *pubsub, int fd);

/* 1: on its way; 0: there is no room for it; RD_ERR_CHANNEL_NAME, RD_ERR_RELAY_PAYLOAD above
 * max_publish_bytes. */
int rd_pubsub_publish(rd_pubsub *pubsub, rd_slice channel, rd_slice payload, bool is_text,
                      rd_reach reach);

/* How to subscribe; see rd_subscribe_terms. */
typedef struct rd_pubsub_terms {
    rd_receive_as as;
    uintptr_t block; /* 0: messages go to the client of the push */
    bool replays;    /* from the history, what came after `since` */
    uint64_t since;
} rd_pubsub_terms;

/* 1: subscribed; 0: had done so before; < 0: see rd_channels_subscribe(). A replay of the hub's
 * comes later, and messages after it. */
int rd_pubsub_subscribe(rd_pubsub *pubsub, rd_push *push, rd_slice name, bool is_pattern,
                        const rd_pubsub_terms *terms);
bool rd_pubsub_unsubscribe(rd_pubsub *pubsub, rd_push *push, rd_slice name, bool is_pattern);

/* See rd_history_keep(). */
int rd_pubsub_keep(rd_pubsub *pubsub, rd_slice name, bool is_pattern, uint32_t size,
                   uint64_t ttl_ms);

/* A subscriber of the application itself; the reference is the caller's. It has no connection, and
 * lasts until rd_pubsub_release(). */
rd_push *rd_pubsub_subscriber(rd_pubsub *pubsub);
void rd_pubsub_release(rd_pubsub *pubsub, rd_push *push);

/* Tells such a subscriber of every channel that has subscribers here: those there are, then every
 * change. One event at a time waits in it; what happens meanwhile is kept as state. */
void rd_pubsub_watch(rd_pubsub *pubsub, rd_push *push);

/* Delivers a slice of what was published, here and to the hub. */
static inline void rd_pubsub_run(rd_pubsub *pubsub) {
    /* A crowd's messages leave in there; what stands ready goes before them. */
    if (rd_fanout_is_crowd(&pubsub->channels.fanout)) rd_conn_set_flush(pubsub->conns);
    if (!rd_list_is_empty(&pubsub->channels.fanout.ready)) rd_channels_run(&pubsub->channels);
    if (pubsub->link != NULL) rd_link_flush(pubsub->link);
}

/* Whether there is more. */
static inline bool rd_pubsub_waits(const rd_pubsub *pubsub) {
    return !rd_list_is_empty(&pubsub->channels.fanout.ready) ||
           (pubsub->link != NULL && rd_link_is_behind(pubsub->link));
}

#endif
