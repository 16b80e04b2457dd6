/* SPDX-License-Identifier: MIT
 *
 * Subscribers of the application itself, and the one of them that observes which channels have
 * subscribers here; see pubsub.h.
 */
#include <string.h>

#include "base/alloc.h"
#include "messaging/pubsub_parts.h"

/* ---- the application's own subscribers ---- */

typedef struct rd_own {
    rd_endpoint endpoint;
    rd_pubsub *pubsub;
} rd_own;

static void feed_observer(rd_pubsub *pubsub);

static void own_deliver(rd_endpoint *endpoint, rd_message *message, rd_receive_as as) {
    (void)endpoint, (void)message, (void)as;
}

static void own_overflow(rd_endpoint *endpoint) {
    endpoint->shared->messages_dropped++;
}

static void own_handled(rd_endpoint *endpoint) {
    rd_pubsub *pubsub = RD_CONTAINER(endpoint, rd_own, endpoint)->pubsub;
    if (endpoint == pubsub->observer) feed_observer(pubsub);
}

static void own_free(rd_endpoint *endpoint) {
    rd_free(RD_CONTAINER(endpoint, rd_own, endpoint));
}

static const rd_endpoint_ops own_ops = {
    .events = RD_ENDPOINT_EVENTS(RD_EVENTS_OF_SUBSCRIBER),
    .deliver = own_deliver,
    .overflow = own_overflow,
    .handled = own_handled,
    .free = own_free,
};

rd_endpoint *rd_pubsub_subscriber(rd_pubsub *pubsub) {
    rd_own *own = rd_alloc_zero(sizeof(*own));
    own->pubsub = pubsub;
    rd_endpoint_init(&own->endpoint, &own_ops, pubsub->shared, NULL);
    return &own->endpoint;
}

void rd_pubsub_end_observer(rd_pubsub *pubsub) {
    pubsub->observer = NULL;
    rd_changes_reset(&pubsub->changes);
}

void rd_pubsub_release(rd_pubsub *pubsub, rd_endpoint *endpoint) {
    endpoint->is_closing = true;
    rd_endpoint_end_subscriptions(endpoint);
    if (pubsub->observer == endpoint) rd_pubsub_end_observer(pubsub);
    rd_endpoint_unref(endpoint);
}

/* ---- the observer ---- */

/* Who publishes takes the changes before that by itself, so the event only says that there are
 * some.
 */
static void feed_observer(rd_pubsub *pubsub) {
    rd_endpoint *observer = pubsub->observer;
    if (rd_changes_is_empty(&pubsub->changes) || observer->messages != NULL) return;
    rd_message *message = rd_message_new(RD_SLICE(""), RD_SLICE(""), true, 0);
    rd_endpoint_deliver(observer, message, RD_AS_SENT, 1);
    rd_message_unref(message);
}

bool rd_pubsub_take_change(rd_pubsub *pubsub, rd_pubsub_change *taken) {
    rd_change *change = rd_changes_first(&pubsub->changes);
    if (change == NULL) return false;
    const rd_slice name = rd_change_name(change);
    taken->is_pattern = change->is_pattern;
    taken->is_wanted = change->is_wanted;
    taken->len = name.len;
    memcpy(taken->name, name.ptr, name.len);
    rd_changes_remove(&pubsub->changes, change);
    return true;
}

void rd_pubsub_notify_observer(rd_pubsub *pubsub, rd_slice name, bool is_pattern, bool is_wanted) {
    if (pubsub->observer == NULL) return;
    rd_changes_note(&pubsub->changes, name, is_pattern, is_wanted);
    feed_observer(pubsub);
}

static void note_channel(void *with, rd_slice name, bool is_pattern) {
    rd_changes_note(with, name, is_pattern, true);
}

void rd_pubsub_observe(rd_pubsub *pubsub, rd_endpoint *endpoint) {
    rd_pubsub_end_observer(pubsub);
    pubsub->observer = endpoint;
    rd_channels_each(&pubsub->channels, note_channel, &pubsub->changes);
    feed_observer(pubsub);
}
