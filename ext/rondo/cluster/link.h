/* SPDX-License-Identifier: MIT
 *
 * A worker's side of the hub (cluster/hub_thread.h): one end of a pair of stream sockets, served by
 * the worker's own loop, so that messages go on to its clients while Ruby is stuck. Everything
 * under the loop lock.
 *
 * Nobody waits: what the hub does not take is queued up to hub_queue_bytes. Then publishing says
 * no, and subscriptions wait as state until there is room. When the hub has
 * gone the link is closed and everything here answers no, or does nothing; pub/sub inside of the
 * process needs no link.
 *
 * A replay has no gap and no double at its end: the hub subscribes this process when it answers,
 * and whoever asked subscribes in on_end, before the next message is looked at. As long as an
 * answer is due, the process stays subscribed.
 *
 * A few replays are asked for at once, the others wait here, where one whose client has gone costs
 * nothing; and all of them together get so many bytes a second, because their answers share the
 * stream with messages. Those of clients that got little so far go first. A replay that has no
 * answer after RD_REPLAY_WAIT_MS ends as a gap, so nobody stays unsubscribed for longer.
 */
#ifndef RD_CLUSTER_LINK_H
#define RD_CLUSTER_LINK_H

#include <stdbool.h>

#include "pubsub/changes.h"
#include "pubsub/history.h"
#include "pubsub/relay.h"
#include "cluster/fair_lines.h"
#include "transport/conn.h"

enum { RD_REPLAY_WAIT_MS = 10000 };

typedef struct rd_link rd_link;
typedef struct rd_link_replay rd_link_replay;

typedef struct rd_link_ops {
    /* A message of another process, of the engine, or one of ours that asked for its ECHO. Valid
     * during the call. */
    void (*on_message)(rd_link *link, const rd_relay_frame *frame);
    /* A rule that counts for the whole cluster (KEEP). */
    void (*on_rule)(rd_link *link, const rd_relay_frame *frame);
    /* Whether somebody here subscribes to exactly that. */
    bool (*is_wanted)(rd_link *link, rd_slice name, bool is_pattern);
} rd_link_ops;

struct rd_link {
    rd_conn_set conns; /* the one, or none: apart from those of clients */
    rd_settings settings;
    rd_conn *conn; /* NULL: the hub has gone */
    rd_relay_reader reader;
    rd_changes changes;   /* of subscriptions, for which there was no room; none without a hub */
    rd_list tickets;      /* replays that were asked for, in that order */
    rd_fair_lines *lines; /* of those that will be */
    uint32_t waiting;     /* in lines */
    rd_list deadlines;    /* of all whose client waits, the oldest first */
    rd_timer deadline;
    uint64_t wait_ms;
    uint32_t asked; /* tickets */
    int64_t credit; /* bytes that answers may have before the next pause */
    uint64_t credited_ms;
    rd_timer pause;
    uint64_t last_number;
    bool is_replaying; /* between the begin and the end of an answer */
    const rd_link_ops *ops;
    void *owner; /* of the ops */
    uint64_t published, refused;
};

/* Inside of whoever asks. */
struct rd_link_replay {
    void (*on_message)(rd_link_replay *replay, const rd_relay_frame *frame);
    /* Once; it is not used any more. RD_REPLAY_GAP also when the hub has gone, or is_late. */
    void (*on_end)(rd_link_replay *replay, rd_replay kind);
    size_t bytes_max; /* of names and payloads, that it can take */
    rd_address from;  /* those of one address wait for each other; NONE: the application */
    bool is_late;     /* it had no answer in time */
    struct rd_link_ticket *ticket; /* NULL: nothing is on its way */
};

/* Takes over the descriptor (a stream socket). NULL with errno; it stays the caller's then. */
rd_link *rd_link_open(rd_loop *loop, const rd_settings *settings, int fd, const rd_link_ops *ops,
                      void *owner);
void rd_link_free(rd_link *link);

static inline bool rd_link_is_open(const rd_link *link) {
    return link != NULL && link->conn != NULL;
}

/* Whether subscriptions had to wait, and half of the queue is free again. */
static inline bool rd_link_is_behind(const rd_link *link) {
    return !rd_changes_is_empty(&link->changes) &&
           link->conn->out.bytes <= (size_t)link->settings.hub_queue_bytes / 2;
}

/* Tells the hub of a part of these. */
void rd_link_catch_up(rd_link *link);

/* Asks for replays that wait, as many as may be asked for now, and sends that. */
void rd_link_ask(rd_link *link);

/* Sends what is queued, with one write; every turn does that. */
static inline void rd_link_flush(rd_link *link) {
    rd_conn_set_flush(&link->conns);
    if (rd_link_is_behind(link)) rd_link_catch_up(link);
    if (link->waiting > 0) rd_link_ask(link);
}

/* The first, and the last one here that subscribes. */
void rd_link_subscribe(rd_link *link, rd_slice name, bool is_pattern);
void rd_link_unsubscribe(rd_link *link, rd_slice name, bool is_pattern);

/* Flags of the frame: TEXT, ECHO, ENGINE. 1: queued; 0: no room, or no hub; < 0: RD_ERR_RELAY_*. */
int rd_link_publish(rd_link *link, rd_slice channel, rd_slice payload, unsigned flags);

/* A rule for the whole cluster; on_rule comes when it counts. */
void rd_link_keep(rd_link *link, rd_slice name, bool is_pattern, uint32_t size, uint64_t ttl_ms);

/* Asks for what came after `since`, when it is its turn. False: no hub, and nobody is told
 * anything. */
bool rd_link_replay_begin(rd_link *link, rd_link_replay *replay, rd_slice name, bool is_pattern,
                          uint64_t since);

/* Whoever asked goes; nobody is told anything. */
void rd_link_replay_cancel(rd_link_replay *replay);

/* For a process that ends: waits until everything is sent, for at most so long. Without the lock,
 * when nobody turns the loop any more. */
void rd_link_finish(rd_link *link, int64_t timeout_ms);

#endif
