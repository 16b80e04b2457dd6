/* SPDX-License-Identifier: MIT
 *
 * The channels of a process: who has subscribed to which name or pattern here. A channel exists
 * while it has a subscriber. A pattern and a channel of the same name have nothing to do with each
 * other; somebody who has subscribed to both gets a message twice, as with Redis.
 *
 * The engine carries messages between processes; it hears of the first and the last subscriber a
 * channel has in this process.
 *
 * No lock of its own: the caller holds the loop lock. Includes no socket; a subscriber is whatever
 * embeds rd_subscriber.
 */
#ifndef RD_PUBSUB_CHANNEL_H
#define RD_PUBSUB_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "pubsub/fanout.h"
#include "pubsub/message.h"
#include "pubsub/patterns.h"

#define RD_CHANNEL_NAME_MAX 1024

typedef struct rd_channel rd_channel;

/* Called when the table has already changed, so it may use the table; `name` is valid only during
 * the call. */
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
    rd_engine *engine; /* NULL: nobody needs to know */
} rd_channels;

/* How to subscribe; all zero is the usual. */
typedef struct rd_subscribe_terms {
    rd_receive_as as;
    void *with; /* handed back in rd_subscription.with, and to on_end */

    /* Only matters to who had subscribed already: what was published before now, but not delivered
     * yet, is not delivered any more, because a replay of the history takes its place. */
    bool is_afresh;
} rd_subscribe_terms;

/* Whether a channel, or a pattern, may have this name. */
static inline bool rd_channel_is_name(rd_slice name, bool is_pattern) {
    return name.len > 0 && name.len <= (is_pattern ? RD_GLOB_MAX : RD_CHANNEL_NAME_MAX);
}

void rd_channels_init(rd_channels *channels, rd_engine *engine);

/* Ends all subscriptions, telling the subscribers but not the engine. Not from a callback. */
void rd_channels_clear(rd_channels *channels);

void rd_subscriber_init(rd_subscriber *subscriber, const rd_subscriber_ops *ops, uint32_t limit);

/* Memory of a subscription besides its name. */
#define RD_SUBSCRIPTION_BYTES 256

/* Room for one more name, which a subscription takes for itself. 0, RD_ERR_CHANNEL_LIMIT when names
 * of this subscriber become too long together, RD_ERR_SUBSCRIPTIONS_FULL when those of all do. */
int rd_subscriber_take(rd_subscriber *subscriber, size_t name_len);
void rd_subscriber_give(rd_subscriber *subscriber, size_t name_len);

/* Ends all its subscriptions, in time proportional to their number. */
void rd_subscriber_clear(rd_channels *channels, rd_subscriber *subscriber);

/* 1: subscribed; 0: had done so before, and the terms are replaced; RD_ERR_CHANNEL_NAME when the
 * name is empty or longer than RD_CHANNEL_NAME_MAX, a pattern than RD_GLOB_MAX;
 * RD_ERR_CHANNEL_LIMIT above the subscriber's limit, or what rd_subscriber_take() says. `with` is
 * kept only on success. */
int rd_channels_subscribe(rd_channels *channels, rd_subscriber *subscriber, rd_slice name,
                          bool is_pattern, const rd_subscribe_terms *terms);

/* Whether there was such a subscription. */
bool rd_channels_unsubscribe(rd_channels *channels, rd_subscriber *subscriber, rd_slice name,
                             bool is_pattern);

/* Queues the message for all that are subscribed to its channel now, here in this process; how many
 * channels and patterns took it, or RD_ERR_CHANNEL_NAME. Delivered by rd_channels_run(). */
int rd_channels_publish(rd_channels *channels, rd_message *message);

/* Delivers a slice of what is queued; true when there is more. */
static inline bool rd_channels_run(rd_channels *channels) {
    return rd_fanout_run(&channels->fanout, RD_FANOUT_SLICE);
}

/* How many subscribe to exactly this channel, or this pattern. */
uint32_t rd_channels_subscribers(const rd_channels *channels, rd_slice name, bool is_pattern);

/* Names every channel and pattern, for an engine that comes later or comes back. `run` changes
 * nothing here. */
typedef void rd_channel_visit(void *with, rd_slice name, bool is_pattern);
void rd_channels_each(const rd_channels *channels, rd_channel_visit *run, void *with);

#endif
