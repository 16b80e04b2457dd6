/* SPDX-License-Identifier: MIT
 *
 * The channels of a process: who has subscribed to which name or pattern here. A channel exists
 * while it has a subscriber. A pattern and a channel of the same name are independent. A subscriber
 * of both gets a message twice, as with Redis.
 *
 * The engine carries messages between processes. It is notified of the first and the last
 * subscriber of a channel in this process.
 *
 * No lock of its own: the caller holds the loop lock. Includes no socket; anything that embeds
 * rd_subscriber can be a subscriber.
 */
#ifndef RD_PUBSUB_CHANNEL_H
#define RD_PUBSUB_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "pubsub/fanout.h"
#include "pubsub/message.h"
#include "pubsub/patterns.h"

#define RD_CHANNEL_NAME_MAX 1024

typedef struct rd_channel rd_channel;

/* Called after the table has changed, so it may use the table. `name` is valid only during the
 * call. */
typedef struct rd_engine {
    void (*subscribe)(struct rd_engine *engine, rd_slice name, bool is_pattern);
    void (*unsubscribe)(struct rd_engine *engine, rd_slice name, bool is_pattern);
} rd_engine;

typedef struct rd_channels {
    rd_map names, patterns;
    rd_list all_names, all_patterns;
    rd_patterns matcher;
    uint32_t subscription_count;
    rd_fanout fanout;
    rd_engine *engine; /* NULL: no engine is notified */
} rd_channels;

/* How to subscribe. All zero is the usual case. */
typedef struct rd_subscribe_terms {
    rd_receive_as as;
    void *with; /* returned in rd_subscription.with, and passed to on_end */

    /* Only matters if the subscriber has subscribed before. Messages that are published but not
     * delivered yet are not delivered any more: a replay of the history takes their place. */
    bool is_afresh;
} rd_subscribe_terms;

/* Whether a channel, or a pattern, may have this name. */
static inline bool rd_channel_is_name(rd_slice name, bool is_pattern) {
    return name.len > 0 && name.len <= (is_pattern ? RD_GLOB_MAX : RD_CHANNEL_NAME_MAX);
}

/* Of the server's own channels, those whose names begin so are of one process: no hub, no engine
 * and no history learns of them. See lib/rondo/rails/cable/cable.rb. */
#define RD_CHANNEL_PRIVATE RD_CHANNEL_OWN "/"

static inline bool rd_channel_is_private(rd_slice name) {
    return rd_slice_starts_with(name, RD_SLICE(RD_CHANNEL_PRIVATE));
}

void rd_channels_init(rd_channels *channels, rd_engine *engine);

/* Ends all subscriptions. Notifies the subscribers but not the engine. Not from a callback. */
void rd_channels_clear(rd_channels *channels);

void rd_subscriber_init(rd_subscriber *subscriber, const rd_subscriber_kind *kind);

/* Memory of a subscription, without its name. */
#define RD_SUBSCRIPTION_BYTES 256

/* Takes room for one more name of this subscriber. Returns 0, RD_ERR_CHANNEL_LIMIT when the
 * subscriber's names are too long together, or RD_ERR_SUBSCRIPTIONS_FULL when the names of all
 * subscribers are. */
int rd_subscriber_reserve(rd_subscriber *subscriber, size_t name_len);
void rd_subscriber_release(rd_subscriber *subscriber, size_t name_len);

/* Ends all subscriptions of the subscriber, in time proportional to their number. */
void rd_subscriber_clear(rd_channels *channels, rd_subscriber *subscriber);

/* Returns 1 for a new subscription, and 0 when there was one already, whose terms are replaced.
 * RD_ERR_CHANNEL_NAME: the name is empty, longer than RD_CHANNEL_NAME_MAX, or as a pattern longer
 * than RD_GLOB_MAX. RD_ERR_CHANNEL_LIMIT: above the limit of its kind. Or an error of
 * rd_subscriber_reserve(). `with` is kept only on success. */
int rd_channels_subscribe(rd_channels *channels, rd_subscriber *subscriber, rd_slice name,
                          bool is_pattern, const rd_subscribe_terms *terms);

bool rd_channels_is_subscribed(const rd_channels *channels, const rd_subscriber *subscriber,
                               rd_slice name, bool is_pattern);

/* Returns whether there was such a subscription. */
bool rd_channels_unsubscribe(rd_channels *channels, rd_subscriber *subscriber, rd_slice name,
                             bool is_pattern);

/* Queues the message for all current subscribers of its channel in this process. Returns how many
 * channels and patterns took it, or RD_ERR_CHANNEL_NAME. rd_channels_run() delivers it. */
int rd_channels_enqueue(rd_channels *channels, rd_message *message);

/* Delivers a part of what is queued. Returns true when there is more. */
static inline bool rd_channels_run(rd_channels *channels) {
    return rd_fanout_run(&channels->fanout, RD_FANOUT_SLICE);
}

/* A number for a name, or for a pattern. Nobody outside can choose two names with the same one. */
uint64_t rd_channels_hash(const rd_channels *channels, rd_slice name, bool is_pattern);

/* The same number of what the subscription is for. */
uint64_t rd_subscription_hash(const rd_subscription *subscription);

/* How many subscribers exactly this channel, or this pattern, has. */
uint32_t rd_channels_subscribers(const rd_channels *channels, rd_slice name, bool is_pattern);

/* Calls `run` for every pattern, and every channel that is not private, for an engine that connects
 * later or again. `run` must not change the table. */
typedef void rd_channel_visit(void *with, rd_slice name, bool is_pattern);
void rd_channels_each(const rd_channels *channels, rd_channel_visit *run, void *with);

/* Calls `run` for at most `most` channels and `most` patterns, those that are there longest. */
typedef void rd_channel_look(void *with, rd_slice name, bool is_pattern, uint32_t subscribers);
void rd_channels_look(const rd_channels *channels, uint32_t most, rd_channel_look *run, void *with);

#endif
