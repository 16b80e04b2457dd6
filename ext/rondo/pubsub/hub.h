/* SPDX-License-Identifier: MIT
 *
 * The centre of the star: which process of a server wants which channel, and what to send to each.
 * A link is a worker process, a subscription of the process that has the hub (the root), or the
 * engine (Redis, for example), which carries messages to other servers and brings them back. The
 * hub alone has the history and gives ids.
 *
 *   worker ──SUBSCRIBE, PUBLISH, REPLAY, KEEP──▶ hub ──PUBLISH, REPLAY_BEGIN/_END, KEEP──▶ worker
 *   engine ──PUBLISH──▶ hub ──SUBSCRIBE, UNSUBSCRIBE, PUBLISH──▶ engine
 *
 * - A worker subscribes once for all its clients. A link that leaves takes its interests with it.
 * - A message reaches each link once, however many of its channels and patterns match. The origin
 *   has delivered the message already and gets it only if it asks for it (ECHO): it does where a
 *   rule matches, because its clients should see the id. With ENGINE the message goes to the engine
 *   alone, with ROOT to subscriptions of the root alone and not into the history, with WORKERS to
 *   workers alone.
 * - The answer to a REPLAY goes into the same stream as messages, in one piece, and subscribes: so
 *   nothing is missed or duplicated at its end. It has the newest messages that its client can
 *   take. Messages go first: replays wait for rd_hub_answer(), and while a part of the link's queue
 *   is full.
 * - Rules of the history are sent to all workers, and not to the root.
 *
 * An engine with streams keeps the messages of channels with a rule, for all servers, and gives the
 * ids (decision 66). The history is a copy then of what clients here read:
 *
 *   hub ──SUBSCRIBE (id), PUBLISH (id), KEEP, REPLAY──▶ engine
 *   engine ──PUBLISH (id), PUBLISH with GAP, REPLAY_BEGIN, REPLAY_END, SAVED_ENGINE──▶ hub
 *
 * - KEEP has the number of a rule as id; PUBLISH to the engine has the number of the rule that
 *   applies, 0 without one.
 * - SUBSCRIBE has as id: 0 where no rule applies, 1 for messages from now on, else the last one
 *   that was delivered here.
 * - REPLAY asks for the copy of a channel, behind its SUBSCRIBE, and has the number of the topic as
 *   id. Replays of clients wait for the copy, and others overtake them where the worker knows
 *   REPLAY_WAITS. Between REPLAY_BEGIN (id: floor; note: what time it is there, in microseconds,
 * the last id that it gave, and the number of the last REPLAY) and REPLAY_END come messages for the
 *   history alone. All others are for subscribers, too, and each comes once. A copy for an earlier
 *   topic is not used: what was published between the two topics did not come here.
 * - SAVED_ENGINE (id) says where the first channels begin, before any message came.
 *
 * Every link gets its messages in the order in which they came to the hub.
 *
 * Knows no sockets. No lock of its own: the caller holds the loop lock.
 */
#ifndef RD_PUBSUB_HUB_H
#define RD_PUBSUB_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "pubsub/changes.h"
#include "pubsub/history.h"
#include "pubsub/message.h"
#include "pubsub/patterns.h"
#include "pubsub/relay.h"

enum {
    RD_HUB_COPY_MAX = 2048,        /* payloads up to this are copied for each link */
    RD_HUB_REPLAYS_MAX = 65536,    /* waiting on one link; a worker asks for fewer */
    RD_HUB_INTERESTS_MAX = 1 << 22 /* of a link */
};

typedef enum rd_hub_kind {
    RD_HUB_WORKER,
    RD_HUB_ENGINE,
    RD_HUB_ROOT,
    RD_HUB_STREAMS /* an engine that keeps messages and gives ids */
} rd_hub_kind;

static inline bool rd_hub_is_engine(rd_hub_kind kind) {
    return kind == RD_HUB_ENGINE || kind == RD_HUB_STREAMS;
}

/* Embedded in each sender. */
typedef struct rd_hub_link {
    rd_list in_hub;
    rd_list in_asking; /* while replays wait in line */
    rd_list interests;
    rd_list replays; /* that wait in line, in the order of their requests */
    rd_list aside;   /* that wait for a copy of the engine */
    uint32_t interest_count, replay_count;
    rd_hub_kind kind;
    bool is_losing;   /* an outage lasts; the sender says when it is over */
    uint64_t mark;    /* of the last message that it was offered */
    uint64_t sent;    /* messages */
    uint64_t dropped; /* messages that it was too slow for */
    uint64_t outages;
    uint64_t replay_gaps; /* replays that were incomplete */
} rd_hub_link;

/* Queues a frame. Returns false when there is no room: PUBLISH is dropped then; SUBSCRIBE and
 * UNSUBSCRIBE are state that the hub keeps for rd_hub_catch_up(); any other type must be taken, or
 * the link closed. `message`, if not NULL, owns the bytes of channel and payload. Must not call the
 * hub. */
typedef bool rd_hub_send(rd_hub_link *link, const rd_relay_frame *frame, rd_message *message);

/* How many bytes a replay may have on this link now; 0: the replay waits. */
typedef size_t rd_hub_room(const rd_hub_link *link);

typedef struct rd_hub {
    rd_map names, patterns;
    rd_list all_names, all_patterns;
    rd_patterns matcher;
    rd_list links;
    rd_list asking; /* links for which replays wait, in the order of their turns */
    rd_hub_link *engine;
    uint32_t engines;             /* so far */
    uint64_t topics;              /* so far */
    bool has_streams;             /* of the last engine, or the one that will come */
    bool is_alone;                /* no engine will come */
    bool is_loading;              /* between REPLAY_BEGIN and REPLAY_END of the engine */
    struct rd_hub_topic *loading; /* of that copy; NULL: nobody would go on with it */
    uint64_t loading_us;          /* what time it is there */
    uint64_t engine_id;           /* up to there all that is followed has come here; 0: unknown */
    rd_changes changes;           /* that the engine had no room for */
    rd_hub_send *send;
    rd_hub_room *room;
    rd_history history;
    uint64_t now_ms, wall_us; /* the caller keeps them up to date */
    uint64_t mark;
    uint64_t published;  /* messages that came */
    rd_buffer returned;  /* frames that an engine has given back, older than those that follow */
    rd_buffer unclaimed; /* frames for an engine that is not connected, or that has no room for what
                          * comes before them */
    size_t unclaimed_max;    /* bytes of both */
    uint64_t unclaimed_lost; /* messages that did not fit while there was no engine */
    uint64_t lost;           /* all messages that could not be queued for a link that wants them */
} rd_hub;

void rd_hub_init(rd_hub *hub, rd_hub_send *send, rd_hub_room *room, rd_history_limits limits,
                 uint64_t wall_us);

/* All links must have left. */
void rd_hub_clear(rd_hub *hub);

/* An engine that keeps messages will join. Until then replays of what it keeps wait for it. */
static inline void rd_hub_expect_streams(rd_hub *hub) {
    hub->has_streams = true;
}

/* No engine will come. What waits for one goes to the links, and so does what is published for it.
 */
void rd_hub_expect_no_engine(rd_hub *hub);

/* Adds a link and sends it what it must know. An engine also gets what has waited for it, as far as
 * it has room; rd_hub_claim() sends the rest. There is one engine at a time. */
void rd_hub_join(rd_hub *hub, rd_hub_link *link, rd_hub_kind kind);
void rd_hub_leave(rd_hub *hub, rd_hub_link *link);

/* From now on messages for the engine wait for the next one; the link stays until it leaves. */
void rd_hub_retire_engine(rd_hub *hub, const rd_hub_link *link);

/* Sends the engine up to `count` of the changes that it had no room for, while it takes them. */
void rd_hub_catch_up(rd_hub *hub, unsigned count);

/* Sends the engine up to `count` of the messages that wait, while it takes them, once it has had
 * all changes. Returns whether it would take more at once. */
bool rd_hub_claim(rd_hub *hub, unsigned count);

/* Takes a frame of a link. Returns 0, or < 0 when the link must be closed because no link may send
 * that. */
int rd_hub_receive(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *frame);

/* Answers replays that wait, one of each link after the other, while there is room for them, for
 * about a millisecond. Call it once in a hold of the lock. Returns whether the time was too short
 * for all. */
bool rd_hub_answer(rd_hub *hub);

/* Whether a link that asks has room for an answer. */
bool rd_hub_can_answer(rd_hub *hub);

/* Publishes a message of this process. The flags ENGINE and TEXT count. Returns whether it was
 * queued for all links that want it. */
bool rd_hub_publish(rd_hub *hub, const rd_relay_frame *frame);

/* Takes a message back from an engine that has left: the next one gets it before what waits. Of the
 * flags TEXT and CONFIRM count. Returns false when there is no room. */
bool rd_hub_give_back(rd_hub *hub, const rd_relay_frame *from);

/* Adds a rule of this process. Returns 0 or RD_ERR_CHANNEL_NAME. */
int rd_hub_keep(rd_hub *hub, rd_slice name, bool is_pattern, rd_relay_terms terms);

/* Calls `tell` with what waits for an engine, as frames for rd_hub_publish() of another hub. */
void rd_hub_each_unclaimed(const rd_hub *hub, rd_history_emit *emit, void *with);

/* Calls `tell` with the waiting replays, as REPLAY frames. */
void rd_hub_each_replay(const rd_hub_link *link, rd_history_emit *emit, void *with);

/* Calls `tell` with the interests of a link, as SUBSCRIBE frames. */
void rd_hub_each_interest(const rd_hub_link *link, rd_history_emit *emit, void *with);

#endif
