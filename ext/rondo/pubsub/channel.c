/* SPDX-License-Identifier: MIT
 *
 * The table of channels; see channel.h. Chains in a power of two of buckets, as many as there are
 * channels, under a keyed hash. Patterns stand in it like channels, and in a list besides, for a
 * publish tries all of them.
 */
#include "pubsub/channel.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "pubsub/glob.h"

#define BUCKETS_MIN 16

struct rd_channel {
    rd_channel *next; /* in its bucket */
    rd_list in_patterns;
    rd_fanout_line line;
    uint64_t hash;
    bool is_pattern;
    uint32_t name_len;
    char name[];
};

static rd_channel *channel_of(const rd_subscription *subscription) {
    return RD_CONTAINER(subscription->line, rd_channel, line);
}

static rd_slice name_of(const rd_channel *channel) {
    return rd_slice_of(channel->name, channel->name_len);
}

/* --- the table --- */

void rd_channels_init(rd_channels *channels, rd_engine *engine) {
    *channels = (rd_channels){.bucket_count = BUCKETS_MIN, .engine = engine};
    channels->buckets = rd_alloc_zero(BUCKETS_MIN * sizeof(rd_channel *));
    channels->key = rd_hash_key_random();
    rd_list_init(&channels->patterns);
    rd_fanout_init(&channels->fanout);
}

static rd_channel **bucket_of(const rd_channels *channels, uint64_t hash) {
    return &channels->buckets[hash & (channels->bucket_count - 1)];
}

static void resize(rd_channels *channels, uint32_t bucket_count) {
    rd_channel **old = channels->buckets;
    const uint32_t old_count = channels->bucket_count;
    channels->buckets = rd_alloc_zero(bucket_count * sizeof(rd_channel *));
    channels->bucket_count = bucket_count;
    for (uint32_t i = 0; i < old_count; i++) {
        while (old[i] != NULL) {
            rd_channel *channel = old[i];
            rd_channel **bucket = bucket_of(channels, channel->hash);
            old[i] = channel->next;
            channel->next = *bucket;
            *bucket = channel;
        }
    }
    rd_free(old);
}

static uint64_t hash_of(const rd_channels *channels, rd_slice name, bool is_pattern) {
    return rd_hash(channels->key, name) ^ (is_pattern ? 1 : 0);
}

static rd_channel *find(const rd_channels *channels, uint64_t hash, rd_slice name,
                        bool is_pattern) {
    rd_channel *channel = *bucket_of(channels, hash);
    while (channel != NULL && (channel->hash != hash || channel->is_pattern != is_pattern ||
                               !rd_slice_equal(name_of(channel), name))) {
        channel = channel->next;
    }
    return channel;
}

static rd_channel *find_by_name(const rd_channels *channels, rd_slice name, bool is_pattern) {
    return find(channels, hash_of(channels, name, is_pattern), name, is_pattern);
}

static rd_channel *add(rd_channels *channels, uint64_t hash, rd_slice name, bool is_pattern) {
    rd_channel *channel = rd_alloc(sizeof(*channel) + name.len);
    *channel = (rd_channel){.hash = hash, .is_pattern = is_pattern};
    channel->name_len = (uint32_t)name.len;
    memcpy(channel->name, name.ptr, name.len);
    rd_list_init(&channel->in_patterns);
    rd_fanout_line_init(&channel->line);
    if (is_pattern) rd_list_append(&channels->patterns, &channel->in_patterns);
    if (channels->count == channels->bucket_count) resize(channels, channels->bucket_count * 2);
    rd_channel **bucket = bucket_of(channels, hash);
    channel->next = *bucket;
    *bucket = channel;
    channels->count++;
    return channel;
}

static void detach(rd_channels *channels, rd_channel *channel) {
    rd_channel **at = bucket_of(channels, channel->hash);
    while (*at != channel) at = &(*at)->next;
    *at = channel->next;
    rd_list_unlink(&channel->in_patterns);
    rd_fanout_line_clear(&channels->fanout, &channel->line);
    channels->count--;
    if (channels->bucket_count > BUCKETS_MIN && channels->count < channels->bucket_count / 8) {
        resize(channels, channels->bucket_count / 2);
    }
}

/* --- subscriptions --- */

void rd_subscriber_init(rd_subscriber *subscriber, const rd_subscriber_ops *ops, uint32_t limit) {
    *subscriber = (rd_subscriber){.ops = ops, .limit = limit};
    rd_list_init(&subscriber->subscriptions);
}

/* Goes along the shorter of the two lists the subscription would stand in. */
static rd_subscription *find_subscription(const rd_channel *channel,
                                          const rd_subscriber *subscriber) {
    if (channel->line.count < subscriber->count) {
        const rd_list *list = &channel->line.subscriptions;
        for (rd_list *node = list->next; node != list; node = node->next) {
            rd_subscription *found = RD_CONTAINER(node, rd_subscription, in_line);
            if (found->subscriber == subscriber) return found;
        }
        return NULL;
    }
    const rd_list *list = &subscriber->subscriptions;
    for (rd_list *node = list->next; node != list; node = node->next) {
        rd_subscription *found = RD_CONTAINER(node, rd_subscription, in_subscriber);
        if (found->line == &channel->line) return found;
    }
    return NULL;
}

static void tell_end(rd_subscriber *subscriber, void *with) {
    if (subscriber->ops->on_end != NULL) subscriber->ops->on_end(subscriber, with);
}

static int replace(rd_channels *channels, rd_subscription *subscription,
                   const rd_subscribe_terms *terms) {
    void *with = subscription->with;
    subscription->as = terms->as;
    subscription->with = terms->with;
    if (terms->is_afresh) rd_fanout_rejoin(&channels->fanout, subscription);
    tell_end(subscription->subscriber, with);
    return 0;
}

int rd_channels_subscribe(rd_channels *channels, rd_subscriber *subscriber, rd_slice name,
                          bool is_pattern, const rd_subscribe_terms *terms) {
    if (name.len == 0 || name.len > RD_CHANNEL_NAME_MAX) return RD_ERR_CHANNEL_NAME;
    const uint64_t hash = hash_of(channels, name, is_pattern);
    rd_channel *channel = find(channels, hash, name, is_pattern);
    rd_subscription *subscription = channel ? find_subscription(channel, subscriber) : NULL;
    if (subscription != NULL) return replace(channels, subscription, terms);
    if (subscriber->count >= subscriber->limit) return RD_ERR_CHANNEL_LIMIT;
    const bool is_first = channel == NULL;
    if (is_first) channel = add(channels, hash, name, is_pattern);
    subscription = rd_alloc(sizeof(*subscription));
    *subscription = (rd_subscription){.subscriber = subscriber, .as = terms->as};
    subscription->with = terms->with;
    rd_fanout_join(&channels->fanout, &channel->line, subscription);
    rd_list_append(&subscriber->subscriptions, &subscription->in_subscriber);
    subscriber->count++;
    channels->subscription_count++;
    if (is_first && channels->engine != NULL) {
        channels->engine->subscribe(channels->engine, name, is_pattern);
    }
    return 1;
}

static void end(rd_channels *channels, rd_subscription *subscription) {
    rd_channel *channel = channel_of(subscription);
    rd_subscriber *subscriber = subscription->subscriber;
    rd_fanout_leave(&channels->fanout, subscription);
    rd_list_unlink(&subscription->in_subscriber);
    subscriber->count--;
    channels->subscription_count--;
    tell_end(subscriber, subscription->with);
    rd_free(subscription);
    if (channel->line.count > 0) return;
    detach(channels, channel);
    if (channels->engine != NULL) {
        channels->engine->unsubscribe(channels->engine, name_of(channel), channel->is_pattern);
    }
    rd_free(channel);
}

bool rd_channels_unsubscribe(rd_channels *channels, rd_subscriber *subscriber, rd_slice name,
                             bool is_pattern) {
    const rd_channel *channel = find_by_name(channels, name, is_pattern);
    rd_subscription *subscription = channel ? find_subscription(channel, subscriber) : NULL;
    if (subscription == NULL) return false;
    end(channels, subscription);
    return true;
}

void rd_subscriber_clear(rd_channels *channels, rd_subscriber *subscriber) {
    while (!rd_list_is_empty(&subscriber->subscriptions)) {
        rd_list *node = subscriber->subscriptions.next;
        end(channels, RD_CONTAINER(node, rd_subscription, in_subscriber));
    }
}

void rd_channels_clear(rd_channels *channels) {
    assert(!channels->fanout.is_running);
    channels->engine = NULL;
    /* The table shrinks meanwhile, so the place to look at wraps. */
    for (uint32_t i = 0; channels->count > 0; i++) {
        const rd_channel *channel = *bucket_of(channels, i);
        if (channel == NULL) continue;
        const rd_list *list = &channel->line.subscriptions;
        for (uint32_t left = channel->line.count; left > 0; left--) {
            end(channels, RD_CONTAINER(list->next, rd_subscription, in_line));
        }
    }
    rd_free(channels->buckets);
    channels->buckets = NULL;
}

/* --- publishing --- */

int rd_channels_publish(rd_channels *channels, rd_message *message) {
    const rd_slice name = rd_message_channel(message);
    if (name.len == 0 || name.len > RD_CHANNEL_NAME_MAX) return RD_ERR_CHANNEL_NAME;
    int taken = 0;
    rd_channel *channel = find_by_name(channels, name, false);
    if (channel != NULL) {
        rd_fanout_add(&channels->fanout, &channel->line, message);
        taken++;
    }
    const rd_list *patterns = &channels->patterns;
    for (rd_list *node = patterns->next; node != patterns; node = node->next) {
        rd_channel *pattern = RD_CONTAINER(node, rd_channel, in_patterns);
        if (!rd_glob_matches(name_of(pattern), name)) continue;
        rd_fanout_add(&channels->fanout, &pattern->line, message);
        taken++;
    }
    return taken;
}

uint32_t rd_channels_subscribers(const rd_channels *channels, rd_slice name, bool is_pattern) {
    const rd_channel *channel = find_by_name(channels, name, is_pattern);
    return channel == NULL ? 0 : channel->line.count;
}

void rd_channels_each(const rd_channels *channels,
                      void (*run)(void *with, rd_slice name, bool is_pattern), void *with) {
    for (uint32_t i = 0; i < channels->bucket_count; i++) {
        const rd_channel *channel = channels->buckets[i];
        for (; channel != NULL; channel = channel->next) {
            run(with, name_of(channel), channel->is_pattern);
        }
    }
}

rd_slice rd_subscription_name(const rd_subscription *subscription) {
    return name_of(channel_of(subscription));
}

bool rd_subscription_is_pattern(const rd_subscription *subscription) {
    return channel_of(subscription)->is_pattern;
}
