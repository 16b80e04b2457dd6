/* SPDX-License-Identifier: MIT
 *
 * The table of channels; see channel.h. Patterns have a table of their own; patterns.h finds those
 * that a message is for.
 */
#include "pubsub/channel.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/ledger.h"

struct rd_channel {
    rd_map_node in_map;
    rd_list in_all;
    rd_fanout_line line;
    rd_pattern *pattern; /* NULL: a name */
    char name[];
};

/* What a channel that is a pattern needs in addition. */
typedef struct matched {
    rd_pattern pattern;
    rd_channel *channel;
} matched;

static rd_channel *channel_of(const rd_subscription *subscription) {
    return RD_CONTAINER(subscription->line, rd_channel, line);
}

/* --- the table --- */

void rd_channels_init(rd_channels *channels, rd_engine *engine) {
    *channels = (rd_channels){.engine = engine};
    rd_map_init(&channels->names);
    rd_map_init(&channels->patterns);
    rd_list_init(&channels->all_names);
    rd_list_init(&channels->all_patterns);
    rd_patterns_init(&channels->matcher);
    rd_fanout_init(&channels->fanout);
}

static rd_channel *find(const rd_channels *channels, rd_slice name, bool is_pattern) {
    rd_map_node *node = rd_map_find(is_pattern ? &channels->patterns : &channels->names, name);
    return node == NULL ? NULL : RD_CONTAINER(node, rd_channel, in_map);
}

static void add_pattern(rd_channels *channels, rd_channel *channel) {
    matched *added = rd_alloc(sizeof(*added));
    added->channel = channel;
    channel->pattern = &added->pattern;
    rd_patterns_add(&channels->matcher, &added->pattern, channel->in_map.name);
}

static void remove_pattern(rd_channels *channels, rd_channel *channel) {
    rd_patterns_remove(&channels->matcher, channel->pattern);
    rd_free(RD_CONTAINER(channel->pattern, matched, pattern));
    channel->pattern = NULL;
}

static rd_channel *add(rd_channels *channels, rd_slice name, bool is_pattern) {
    rd_channel *channel = rd_alloc(sizeof(*channel) + name.len);
    *channel = (rd_channel){.pattern = NULL};
    memcpy(channel->name, name.ptr, name.len);
    channel->in_map.name = rd_slice_of(channel->name, name.len);
    rd_fanout_line_init(&channel->line);
    rd_map_add(is_pattern ? &channels->patterns : &channels->names, &channel->in_map);
    rd_list_append(is_pattern ? &channels->all_patterns : &channels->all_names, &channel->in_all);
    if (is_pattern) add_pattern(channels, channel);
    return channel;
}

static void detach(rd_channels *channels, rd_channel *channel) {
    const bool is_pattern = channel->pattern != NULL;
    rd_map_remove(is_pattern ? &channels->patterns : &channels->names, &channel->in_map);
    rd_list_unlink(&channel->in_all);
    rd_fanout_line_clear(&channels->fanout, &channel->line);
    if (is_pattern) remove_pattern(channels, channel);
}

/* --- subscriptions --- */

void rd_subscriber_init(rd_subscriber *subscriber, const rd_subscriber_kind *kind) {
    *subscriber = (rd_subscriber){.kind = kind};
}

int rd_subscriber_reserve(rd_subscriber *subscriber, size_t name_len) {
    const rd_subscriber_kind *kind = subscriber->kind;
    if (kind->ledger == NULL) return 0;
    if (subscriber->name_bytes + name_len > kind->name_limit) return RD_ERR_CHANNEL_LIMIT;
    if (!rd_ledger_reserve(kind->ledger, RD_LEDGER_SUBSCRIPTIONS,
                           name_len + RD_SUBSCRIPTION_BYTES)) {
        return RD_ERR_SUBSCRIPTIONS_FULL;
    }
    subscriber->name_bytes += (uint32_t)name_len;
    return 0;
}

void rd_subscriber_release(rd_subscriber *subscriber, size_t name_len) {
    rd_ledger *ledger = subscriber->kind->ledger;
    if (ledger == NULL) return;
    rd_ledger_release(ledger, RD_LEDGER_SUBSCRIPTIONS, name_len + RD_SUBSCRIPTION_BYTES);
    subscriber->name_bytes -= (uint32_t)name_len;
}

/* Searches the shorter of the two lists that would hold the subscription. */
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
    const rd_list *ring = subscriber->subscriptions;
    for (rd_list *node = subscriber->subscriptions; node != NULL; node = rd_ring_next(ring, node)) {
        rd_subscription *found = RD_CONTAINER(node, rd_subscription, in_subscriber);
        if (found->line == &channel->line) return found;
    }
    return NULL;
}

static void notify_end(rd_subscriber *subscriber, void *with) {
    if (subscriber->kind->on_end != NULL) subscriber->kind->on_end(subscriber, with);
}

static int replace(rd_channels *channels, rd_subscription *subscription,
                   const rd_subscribe_terms *terms) {
    void *with = subscription->with;
    subscription->as = terms->as;
    subscription->with = terms->with;
    if (terms->is_afresh) rd_fanout_rejoin(&channels->fanout, subscription);
    notify_end(subscription->subscriber, with);
    return 0;
}

int rd_channels_subscribe(rd_channels *channels, rd_subscriber *subscriber, rd_slice name,
                          bool is_pattern, const rd_subscribe_terms *terms) {
    if (!rd_channel_is_name(name, is_pattern)) return RD_ERR_CHANNEL_NAME;
    rd_channel *channel = find(channels, name, is_pattern);
    rd_subscription *subscription = channel ? find_subscription(channel, subscriber) : NULL;
    if (subscription != NULL) return replace(channels, subscription, terms);
    if (subscriber->count >= subscriber->kind->limit) return RD_ERR_CHANNEL_LIMIT;
    const int room = rd_subscriber_reserve(subscriber, name.len);
    if (room < 0) return room;
    const bool is_first = channel == NULL;
    if (is_first) channel = add(channels, name, is_pattern);
    subscription = rd_alloc(sizeof(*subscription));
    *subscription = (rd_subscription){.subscriber = subscriber, .as = terms->as};
    subscription->with = terms->with;
    rd_fanout_join(&channels->fanout, &channel->line, subscription);
    rd_ring_append(&subscriber->subscriptions, &subscription->in_subscriber);
    subscriber->count++;
    channels->subscription_count++;
    if (is_first && channels->engine != NULL) {
        channels->engine->subscribe(channels->engine, name, is_pattern);
    }
    return 1;
}

bool rd_channels_is_subscribed(const rd_channels *channels, const rd_subscriber *subscriber,
                               rd_slice name, bool is_pattern) {
    const rd_channel *channel = find(channels, name, is_pattern);
    return channel != NULL && find_subscription(channel, subscriber) != NULL;
}

static void end(rd_channels *channels, rd_subscription *subscription) {
    rd_channel *channel = channel_of(subscription);
    rd_subscriber *subscriber = subscription->subscriber;
    rd_fanout_leave(&channels->fanout, subscription);
    rd_ring_remove(&subscriber->subscriptions, &subscription->in_subscriber);
    subscriber->count--;
    channels->subscription_count--;
    rd_subscriber_release(subscriber, channel->in_map.name.len);
    notify_end(subscriber, subscription->with);
    rd_free(subscription);
    if (channel->line.count > 0) return;
    const bool is_pattern = channel->pattern != NULL;
    detach(channels, channel);
    if (channels->engine != NULL) {
        channels->engine->unsubscribe(channels->engine, channel->in_map.name, is_pattern);
    }
    rd_free(channel);
}

bool rd_channels_unsubscribe(rd_channels *channels, rd_subscriber *subscriber, rd_slice name,
                             bool is_pattern) {
    const rd_channel *channel = find(channels, name, is_pattern);
    rd_subscription *subscription = channel ? find_subscription(channel, subscriber) : NULL;
    if (subscription == NULL) return false;
    end(channels, subscription);
    return true;
}

void rd_subscriber_clear(rd_channels *channels, rd_subscriber *subscriber) {
    while (subscriber->subscriptions != NULL) {
        rd_list *node = subscriber->subscriptions;
        end(channels, RD_CONTAINER(node, rd_subscription, in_subscriber));
    }
}

static void end_all(rd_channels *channels, const rd_list *list) {
    while (!rd_list_is_empty(list)) {
        const rd_channel *channel = RD_CONTAINER(list->next, rd_channel, in_all);
        rd_list *node = channel->line.subscriptions.next;
        end(channels, RD_CONTAINER(node, rd_subscription, in_line));
    }
}

void rd_channels_clear(rd_channels *channels) {
    assert(!channels->fanout.is_running);
    channels->engine = NULL;
    end_all(channels, &channels->all_names);
    end_all(channels, &channels->all_patterns);
    rd_map_clear(&channels->names);
    rd_map_clear(&channels->patterns);
    rd_patterns_clear(&channels->matcher);
}

/* --- publishing --- */

typedef struct publishing {
    rd_fanout *fanout;
    rd_message *message;
    int taken;
} publishing;

static void add_to_pattern(void *with, rd_pattern *pattern) {
    publishing *self = with;
    rd_channel *channel = RD_CONTAINER(pattern, matched, pattern)->channel;
    rd_fanout_add(self->fanout, &channel->line, self->message);
    self->taken++;
}

int rd_channels_enqueue(rd_channels *channels, rd_message *message) {
    const rd_slice name = rd_message_channel(message);
    if (name.len == 0 || name.len > RD_CHANNEL_NAME_MAX) return RD_ERR_CHANNEL_NAME;
    publishing self = {.fanout = &channels->fanout, .message = message};
    rd_channel *channel = find(channels, name, false);
    if (channel != NULL) {
        rd_fanout_add(&channels->fanout, &channel->line, message);
        self.taken++;
    }
    rd_patterns_match(&channels->matcher, name, add_to_pattern, &self);
    return self.taken;
}

uint64_t rd_channels_hash(const rd_channels *channels, rd_slice name, bool is_pattern) {
    return rd_hash(is_pattern ? channels->patterns.key : channels->names.key, name);
}

uint64_t rd_subscription_hash(const rd_subscription *subscription) {
    return channel_of(subscription)->in_map.hash;
}

uint32_t rd_channels_subscribers(const rd_channels *channels, rd_slice name, bool is_pattern) {
    const rd_channel *channel = find(channels, name, is_pattern);
    return channel == NULL ? 0 : channel->line.count;
}

static void name_all(const rd_list *list, rd_channel_visit *run, void *with) {
    for (rd_list *node = list->next; node != list; node = node->next) {
        const rd_channel *channel = RD_CONTAINER(node, rd_channel, in_all);
        const rd_slice name = channel->in_map.name;
        if (!rd_channel_is_private(name)) run(with, name, channel->pattern != NULL);
    }
}

void rd_channels_each(const rd_channels *channels, rd_channel_visit *run, void *with) {
    name_all(&channels->all_names, run, with);
    name_all(&channels->all_patterns, run, with);
}

static void look_at(const rd_list *list, uint32_t most, rd_channel_look *run, void *with) {
    for (rd_list *node = list->next; node != list && most > 0; node = node->next, most--) {
        const rd_channel *channel = RD_CONTAINER(node, rd_channel, in_all);
        run(with, channel->in_map.name, channel->pattern != NULL, channel->line.count);
    }
}

void rd_channels_look(const rd_channels *channels, uint32_t most, rd_channel_look *run,
                      void *with) {
    look_at(&channels->all_names, most, run, with);
    look_at(&channels->all_patterns, most, run, with);
}
