/* SPDX-License-Identifier: MIT
 *
 * How messages get from a channel to its subscribers. What is published waits in the channel's
 * queue; between turns of the loop rd_fanout_run() goes round the channels that have something and
 * hands each subscriber all that was gathered, so that it can leave with one write. It stops after
 * a slice of subscribers and goes on at that place next time: a message for ten thousand does not
 * hold up the requests.
 *
 *   queue   m1 m2 m3 | m4            a pass delivers the messages before the |; later ones wait
 *   line    a b c d e f              for the next pass
 *               ^ cursor             subscribers stand in the order in which they came
 *
 * Whoever stands in line when a message is published gets it once, if it does not leave before its
 * place is reached; whoever comes later does not get it: each message and each subscription has a
 * number from the same sequence. Every subscriber sees a channel's messages in the order in which
 * they were published.
 *
 * on_message and on_served may end any subscription or subscriber, its own too, subscribe, and
 * publish.
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
    RD_FANOUT_SLICE = 256,    /* subscribers a call of rd_fanout_run() */
    RD_FANOUT_CROWD = 64,     /* subscribers of a line that are told when they have been served */
    RD_FANOUT_GATHER_MAX = 64 /* messages a pass, so that a slice has an end in time too */
};

typedef struct rd_fanout_entry rd_fanout_entry;
typedef struct rd_subscriber rd_subscriber;
typedef struct rd_subscription rd_subscription;

/* What somebody receives with; lies inside of it. */
typedef struct rd_subscriber_ops {
    /* Called by rd_fanout_run(); the message is the caller's, keep a reference for longer. */
    void (*on_message)(rd_subscriber *subscriber, rd_subscription *subscription,
                       rd_message *message);

    /* A member of a crowd has got all that this call has for it, so that it can be sent while
     * everything of it is in the processor's cache. May do what on_message may. May be NULL. */
    void (*on_served)(rd_subscriber *subscriber);

    /* It will be served after the one who is told on_served next: time to fetch its memory. Changes
     * nothing. May be NULL. */
    void (*on_near)(const rd_subscriber *subscriber);

    /* `with` of a subscription is not used any more, because it ended or was replaced. Only takes
     * note: calls nothing of pubsub/. May be NULL. */
    void (*on_end)(rd_subscriber *subscriber, void *with);
} rd_subscriber_ops;

struct rd_subscriber {
    const rd_subscriber_ops *ops;
    rd_list subscriptions;
    uint32_t count;
    uint32_t limit;    /* so many subscriptions at once */
    size_t name_bytes; /* of its channels */
    size_t name_limit;
    struct rd_ledger *ledger; /* counts its subscriptions; NULL: there is no other limit for it */
};

typedef enum rd_receive_as { RD_AS_SENT, RD_AS_TEXT, RD_AS_BINARY } rd_receive_as;

/* One subscriber in one channel; valid until it ends, see channel.h. */
struct rd_subscription {
    rd_list in_line;
    rd_list in_subscriber;
    rd_subscriber *subscriber;
    struct rd_fanout_line *line;
    uint64_t since; /* gets what was published with a higher number */
    rd_receive_as as;
    void *with; /* the subscriber's own */
};

/* What a channel has of all this. */
typedef struct rd_fanout_line {
    rd_list subscriptions; /* ascending by `since` */
    uint32_t count;
    rd_list in_ready;              /* in rd_fanout.ready while it has messages */
    rd_fanout_entry *first, *last; /* messages, oldest first */
    rd_fanout_entry *pass_last;    /* the last one of the pass that is going on; NULL: none is */
    rd_list *cursor;               /* the next subscription of the pass */
} rd_fanout_line;

typedef struct rd_fanout {
    rd_list ready;
    uint64_t sequence;
    uint64_t waiting;        /* messages in all queues */
    size_t waiting_bytes;    /* and their memory: whoever publishes much faster than the loop turns
                              * looks here, and runs slices */
    rd_fanout_line *visited; /* while a callback runs; NULL once that line is empty */
    rd_subscription *served; /* likewise */
    bool is_running;
} rd_fanout;

void rd_fanout_init(rd_fanout *fanout);
void rd_fanout_line_init(rd_fanout_line *line);

/* Drops the messages. The subscriptions must be gone. */
void rd_fanout_line_clear(rd_fanout *fanout, rd_fanout_line *line);

/* Puts a subscription at the end; takes one out; does both, so that it gets nothing of what is
 * queued now. */
void rd_fanout_join(rd_fanout *fanout, rd_fanout_line *line, rd_subscription *subscription);
void rd_fanout_leave(rd_fanout *fanout, rd_subscription *subscription);
void rd_fanout_rejoin(rd_fanout *fanout, rd_subscription *subscription);

/* Queues a message for those that stand in line now; takes a reference of its own. */
void rd_fanout_add(rd_fanout *fanout, rd_fanout_line *line, rd_message *message);

/* Whether on_served will be called: the only line that waits is a crowd. Where another one waits,
 * its messages may be for the same subscribers, and leave with these. */
static inline bool rd_fanout_is_crowd(const rd_fanout *fanout) {
    const rd_list *first = fanout->ready.next;
    if (first == &fanout->ready || first->next != &fanout->ready) return false;
    return RD_CONTAINER(first, rd_fanout_line, in_ready)->count >= RD_FANOUT_CROWD;
}

/* Serves up to so many subscribers; true when there is more to do. Called from inside of
 * on_message it does nothing. */
bool rd_fanout_run(rd_fanout *fanout, uint32_t subscribers);

#endif
