/* SPDX-License-Identifier: MIT
 *
 * What an endpoint holds back while it waits for replays. A client that comes back sends one id for
 * all its channels, so what it gets must ascend over all of them: the answers of all its replays,
 * and what is published meanwhile, are given together, by ascending id. What a replay could not
 * give is told before them. So whoever breaks off has all up to its last id, or has an older id.
 *
 * Where clients have ids, a hold also lasts until the callback that subscribes has returned: the
 * answer for its first channel may be here before it subscribes to the second one. It ends in any
 * case after the time that an answer may take, and waits for the callback for at most
 * RD_REPLAY_WAIT_MS. What is held counts as pending output of the client,
 * and in the sum of all. An answer that finds too little room has its newest messages, and is a
 * gap. Where a live message finds no room, the answers that are due are given up, as gaps.
 *
 * What is published in one moment for several channels waits in their queues, and these are emptied
 * one after the other. So an endpoint with ids and several channels also holds what it gets while
 * more than one queue has messages, until it has got all that was published before.
 *
 * An endpoint without a hold does not know of this: a hold takes the place of `on_message` of its
 * subscriber. Under the loop lock.
 */
#ifndef RD_MESSAGING_HOLD_H
#define RD_MESSAGING_HOLD_H

#include "cluster/link.h"
#include "endpoint/endpoint.h"
#include "loop/loop.h"
#include "pubsub/channel.h"

/* Of a process. */
typedef struct rd_holds {
    rd_channels *channels;
    rd_loop *loop;
    rd_list due; /* those that are complete, while what was published before is still delivered */
    uint64_t more_ms; /* that replays have got since the beginning; see rd_link_set_wait() */
    rd_subscriber_kind ordered; /* of endpoints that get what is live by ascending id */
} rd_holds;

typedef struct rd_hold rd_hold;

/* The subscription that an answer is for. */
typedef struct rd_hold_part {
    uint64_t owner; /* rd_channels_hash() of its name */
    rd_receive_as as;
    uintptr_t block;
    size_t first; /* no message of the answer is held before this index */
    bool is_cut;  /* there was no room for all of it */
} rd_hold_part;

/* An answer that is due. Embedded in the part that requested it. */
typedef struct rd_hold_wait {
    rd_list in_hold;
    rd_link_replay replay;
    rd_hold_part part;
    void (*cancel)(struct rd_hold_wait *wait); /* calls rd_hold_leave(); then nothing uses it */
} rd_hold_wait;

void rd_holds_init(rd_holds *holds, rd_channels *channels, rd_loop *loop);

static inline rd_hold *rd_hold_of(const rd_endpoint *endpoint) {
    return (rd_hold *)endpoint->hold;
}

/* Begins a hold, unless there is one. It ends after `wait_ms`, or by rd_hold_settle(). From
 * RD_REPLAY_WAIT_MS on it does not wait for the callback. */
rd_hold *rd_hold_begin(rd_holds *holds, rd_endpoint *endpoint, uint64_t wait_ms);

/* From now on the endpoint gets live messages by ascending id over all its channels. */
void rd_hold_order(rd_holds *holds, rd_endpoint *endpoint);

/* The hold waits for an answer; it does not any more. */
void rd_hold_join(rd_hold *hold, rd_hold_wait *wait);
void rd_hold_leave(rd_hold *hold, rd_hold_wait *wait);

/* A ring of those that are due. */
rd_list *rd_hold_waits(const rd_hold *hold);

/* Holds a message of an answer. */
void rd_hold_add(rd_hold *hold, rd_hold_part *part, rd_message *message);

/* Holds a message that says what is missing: it goes before all others. */
void rd_hold_tell(rd_hold *hold, rd_hold_part *part, rd_message *message);

/* Drops what is held for this subscription. */
void rd_hold_forget(rd_hold *hold, uint64_t owner);

/* Whether it was given up because there was no room. */
bool rd_hold_is_full(const rd_hold *hold);

/* Gives all that is held, if nothing is due any more. The hold may be gone then. */
void rd_hold_settle(rd_hold *hold);

/* Gives a part of what became ready meanwhile. */
void rd_holds_run(rd_holds *holds);

#endif
