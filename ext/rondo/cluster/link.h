/* SPDX-License-Identifier: MIT
 *
 * A worker's side of the hub (cluster/hub_thread.h): one end of a pair of stream sockets. The
 * worker's own loop serves it, so that messages reach its clients even while Ruby is stuck.
 * Everything under the loop lock.
 *
 * Nothing blocks: what the hub does not take is queued up to hub_queue_bytes. Above that a publish
 * is refused, and subscriptions wait as state until there is room. When the hub has gone, the link
 * is closed and all functions here return "no", or do nothing. Pub/sub inside the process needs no
 * link.
 *
 * A replay has no gap and no duplicate at its end: the hub subscribes this process before it
 * answers, and the client subscribes in on_end, before the next message is read. As long as an
 * answer is outstanding, the process stays subscribed.
 *
 * Only a few replays are requested at once. The others wait here, where one whose client has gone
 * costs nothing. All replays together get a limited number of bytes a second, because their answers
 * share the stream with messages. Clients that have got little so far go first. A replay without an
 * answer after RD_REPLAY_WAIT_MS ends as a gap, so no client stays unsubscribed for longer. What an
 * engine keeps for all servers is still there when the engine comes back, so an answer may take
 * replay_timeout_ms then. Meanwhile answers of other channels overtake it.
 */
#ifndef RD_CLUSTER_LINK_H
#define RD_CLUSTER_LINK_H

#include <stdbool.h>

#include "pubsub/changes.h"
#include "pubsub/history.h"
#include "pubsub/relay.h"
#include "cluster/fair_lines.h"
#include "cluster/aside.h"
#include "transport/conn.h"

enum { RD_REPLAY_WAIT_MS = 10000 };

typedef struct rd_link rd_link;
typedef struct rd_link_replay rd_link_replay;

typedef struct rd_link_ops {
    /* A message of another process, of the engine, or one of this process with ECHO. Valid during
     * the call. */
    void (*on_message)(rd_link *link, const rd_relay_frame *frame);
    /* A rule for the whole cluster (KEEP). */
    void (*on_rule)(rd_link *link, const rd_relay_frame *frame);
    /* Whether a client of this process subscribes to exactly this name. */
    bool (*is_wanted)(rd_link *link, rd_slice name, bool is_pattern);
} rd_link_ops;

struct rd_link {
    rd_conn_set conns; /* has at most this one connection, apart from those of clients */
    rd_settings settings;
    rd_conn *conn; /* NULL: the hub has gone */
    rd_relay_reader reader;
    rd_changes changes;   /* of subscriptions, for which there was no room; none without a hub */
    rd_list tickets;      /* requested replays, in this order, but for those that are set aside */
    rd_fair_lines *lines; /* of replays that wait */
    uint32_t waiting;     /* in lines */
    rd_aside aside;       /* channels whose replays wait for the engine */
    rd_list deadlines;    /* of all tickets with a client, the oldest first */
    rd_timer deadline;
    uint64_t wait_ms; /* of those that begin now */
    uint32_t asked;   /* tickets in this order */
    int64_t credit;   /* bytes that answers may use before the next pause */
    uint64_t credited_ms;
    rd_timer pause;
    uint64_t last_number;
    struct rd_link_ticket *answering; /* between the begin and the end of its answer */
    bool is_answered; /* a replay was, so all rules of before the link are here: they come first */
    const rd_link_ops *ops;
    void *owner; /* for the ops */
    uint64_t published, refused;
};

/* Embedded in the client that asks. */
struct rd_link_replay {
    void (*on_message)(rd_link_replay *replay, const rd_relay_frame *frame);
    /* Called once; the replay is not used any more then. RD_REPLAY_GAP also when the hub has gone,
     * or when is_late is set. */
    void (*on_end)(rd_link_replay *replay, rd_replay kind);
    size_t bytes_max; /* of names and payloads, that the client can take */
    rd_address from;  /* replays of one address wait for each other; NONE: the application */
    bool is_late;     /* there was no answer in time */
    struct rd_link_ticket *ticket; /* NULL: no replay is outstanding */
};

/* Takes over the descriptor (a stream socket). NULL with errno; then the descriptor stays the
 * caller's. */
rd_link *rd_link_open(rd_loop *loop, const rd_settings *settings, int fd, const rd_link_ops *ops,
                      void *owner);
void rd_link_free(rd_link *link);

static inline bool rd_link_is_open(const rd_link *link) {
    return link != NULL && link->conn != NULL;
}

/* Whether changes of subscriptions wait although half of the queue is free again. */
static inline bool rd_link_is_behind(const rd_link *link) {
    return !rd_changes_is_empty(&link->changes) &&
           link->conn->out.bytes <= (size_t)link->settings.hub_queue_bytes / 2;
}

/* Sends a part of these changes to the hub. */
void rd_link_catch_up(rd_link *link);

/* Requests waiting replays from the hub, as many as allowed now, and sends the requests. */
void rd_link_ask(rd_link *link);

/* Sends what is queued, with one write. Every turn calls this. */
static inline void rd_link_flush(rd_link *link) {
    rd_conn_set_flush(&link->conns);
    if (rd_link_is_behind(link)) rd_link_catch_up(link);
    if (link->waiting > 0) rd_link_ask(link);
}

/* For the first subscriber of a name in this process, and after the last. */
void rd_link_subscribe(rd_link *link, rd_slice name, bool is_pattern);
void rd_link_unsubscribe(rd_link *link, rd_slice name, bool is_pattern);

/* Flags of the frame: TEXT, ECHO, ENGINE, ROOT. Returns 1 when queued, 0 when there is no room or
 * no hub, < 0 for RD_ERR_RELAY_*. */
int rd_link_publish(rd_link *link, rd_slice channel, rd_slice payload, unsigned flags);

/* Sends a rule for the whole cluster. on_rule follows when it is in force. */
void rd_link_keep(rd_link *link, rd_slice name, bool is_pattern, const rd_relay_terms *terms);

/* How long replays wait for an answer: those that begin now, and those that wait already if it is
 * longer than before. Returns how much longer. */
uint64_t rd_link_set_wait(rd_link *link, uint64_t wait_ms);

/* Requests the messages after `since` when it is this client's turn. Returns false when there is no
 * hub; no callback follows then. */
bool rd_link_replay_begin(rd_link *link, rd_link_replay *replay, rd_slice name, bool is_pattern,
                          uint64_t since);

/* The client goes away. No callback follows. */
void rd_link_replay_cancel(rd_link_replay *replay);

/* Ends a replay before its answer, as a gap: calls on_end. `is_late`: there was none in time. */
void rd_link_replay_give_up(rd_link_replay *replay, bool is_late);

/* For a process that ends: waits until everything is sent, at most `timeout_ms`. Without the lock,
 * when no thread runs the loop any more. */
void rd_link_finish(rd_link *link, int64_t timeout_ms);

#endif
