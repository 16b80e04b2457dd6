/* SPDX-License-Identifier: MIT
 *
 * How messages get from a channel to its subscribers. A published message waits in the queue of its
 * channel. Between turns of the loop, rd_fanout_run() visits the channels that have messages and
 * hands each subscriber all that are queued, so that they leave with one write. It stops after a
 * part of the subscribers and goes on there next time: a message for ten thousand subscribers does
 * not hold up the requests.
 *
 *   queue   m1 m2 m3 | m4            a pass delivers the messages before the |; later ones wait
 *   line    a b c d e f              for the next pass
 *               ^ cursor             subscribers stand in the order in which they came
 *
 * A subscriber gets a message once if it stands in line when the message is published and has not
 * left when its turn comes. A subscriber that comes later does not get it: messages and
 * subscriptions are numbered from the same sequence. Every subscriber gets the messages of a
 * channel in the order in which they were published.
 *
 * on_message and on_served may end any subscription or subscriber, including their own, subscribe,
 * and publish.
 *
 * No lock of its own: the caller holds the loop lock. Knows no names; channel.h has the table.
 */
#ifndef RD_PUBSUB_FANOUT_H
#define RD_PUBSUB_FANOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "pubsub/message.h"

enum {
    RD_FANOUT_SLICE = 256,    /* subscribers per call of rd_fanout_run() */
    RD_FANOUT_CROWD = 64,     /* a line of so many subscribers is a crowd: on_served is called */
    RD_FANOUT_GATHER_MAX = 64 /* messages per pass, so that a pass also ends in time */
};

typedef struct rd_fanout_entry rd_fanout_entry;
typedef struct rd_subscriber rd_subscriber;
typedef struct rd_subscription rd_subscription;

/* What subscribers of one kind have in common: callbacks and limits. */
typedef struct rd_subscriber_kind {
    /* Called by rd_fanout_run(). The message is the caller's: take a reference to keep it. */
    void (*on_message)(rd_subscriber *subscriber, rd_subscription *subscription,
                       rd_message *message);

    /* A subscriber of a crowd has got all messages that this call has for it. They can be sent now,
     * while everything about the subscriber is in the processor's cache. May do what on_message
     * may. May be NULL. */
    void (*on_served)(rd_subscriber *subscriber);

    /* This subscriber is the one after the next to be served: time to fetch its memory. Changes
     * nothing. May be NULL. */
    void (*on_near)(const rd_subscriber *subscriber);

    /* `with` of a subscription is not used any more, because the subscription has ended or was
     * replaced. Must not call anything of pubsub/. May be NULL. */
    void (*on_end)(rd_subscriber *subscriber, void *with);

    uint32_t limit;           /* subscriptions of each at once */
    uint32_t name_limit;      /* bytes of the names of its channels */
    struct rd_ledger *ledger; /* counts their subscriptions; NULL: no limit for names */
} rd_subscriber_kind;

struct rd_subscriber {
    const rd_subscriber_kind *kind;
    rd_list *subscriptions; /* a ring */
    uint32_t count;
    uint32_t name_bytes; /* of the names of its channels */
};

typedef enum rd_receive_as { RD_AS_SENT, RD_AS_TEXT, RD_AS_BINARY } rd_receive_as;

/* One subscriber in one channel, valid until the subscription ends; see channel.h. */
struct rd_subscription {
    rd_list in_line;
    rd_list in_subscriber;
    rd_subscriber *subscriber;
    struct rd_fanout_line *line;
    uint64_t since; /* gets messages with a higher number */
    rd_receive_as as;
    void *with; /* belongs to the subscriber */
};

/* The part of a channel that belongs to the fan-out. */
typedef struct rd_fanout_line {
    rd_list subscriptions; /* ascending by `since` */
    uint32_t count;
    rd_list in_ready;              /* in rd_fanout.ready while it has messages */
    rd_fanout_entry *first, *last; /* messages, oldest first */
    rd_fanout_entry *pass_last;    /* the last one of the current pass; NULL: no pass */
    rd_list *cursor;               /* the next subscription of the pass */
} rd_fanout_line;

typedef struct rd_fanout {
    rd_list ready;
    uint64_t sequence;
    uint64_t waiting;        /* messages in all queues */
    size_t waiting_bytes;    /* and their memory. A publisher that is much faster than the loop
                              * checks this, and runs parts */
    rd_fanout_line *visited; /* set while a callback runs; NULL once that line is empty */
    rd_subscription *served; /* likewise */
    bool is_running;
} rd_fanout;

void rd_fanout_init(rd_fanout *fanout);
void rd_fanout_line_init(rd_fanout_line *line);

/* Drops the messages. The subscriptions must have left. */
void rd_fanout_line_clear(rd_fanout *fanout, rd_fanout_line *line);

/* Adds a subscription at the end; removes one; does both, so that it gets no message that is queued
 * now. */
void rd_fanout_join(rd_fanout *fanout, rd_fanout_line *line, rd_subscription *subscription);
void rd_fanout_leave(rd_fanout *fanout, rd_subscription *subscription);
void rd_fanout_rejoin(rd_fanout *fanout, rd_subscription *subscription);

/* Queues a message for the subscriptions in line now. Takes a reference of its own. */
void rd_fanout_add(rd_fanout *fanout, rd_fanout_line *line, rd_message *message);

/* In on_message: the number of the last message of this pass, in the sequence of all messages. */
uint64_t rd_fanout_pass_number(const rd_fanout_line *line);

/* Whether a message up to this number of the sequence may still be on its way to the subscriber. */
bool rd_subscriber_is_behind(const rd_subscriber *subscriber, uint64_t number);

/* Whether on_served will be called: only one line waits, and it is a crowd. If another line waits,
 * its messages may be for the same subscribers and can leave with these. */
static inline bool rd_fanout_is_crowd(const rd_fanout *fanout) {
    const rd_list *first = fanout->ready.next;
    if (first == &fanout->ready || first->next != &fanout->ready) return false;
    return RD_CONTAINER(first, rd_fanout_line, in_ready)->count >= RD_FANOUT_CROWD;
}

/* Serves up to `subscribers` subscribers. Returns true when there is more to do. Does nothing when
 * called from on_message. */
bool rd_fanout_run(rd_fanout *fanout, uint32_t subscribers);

#endif
