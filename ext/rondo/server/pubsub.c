/* SPDX-License-Identifier: MIT
 *
 * From publish and subscribe to channels, history and the watcher; see pubsub.h.
 */
#include "server/pubsub.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "transport/conn.h"

#define WAITING_BYTES (1 << 20) /* published and not delivered; above it the publisher helps */
#define EXPIRY_MS     10000

/* ---- the application's own subscribers ---- */

static void own_publish(rd_push *push, rd_message *message, rd_receive_as as) {
    (void)push, (void)message, (void)as;
}

static void own_overflow(rd_push *push) {
    push->shared->messages_dropped++;
}

static void own_told(rd_push *push) {
    (void)push;
}

static void own_free(rd_push *push) {
    rd_free(push);
}

static const rd_push_ops own_ops = {
    .name = "application",
    .publish = own_publish,
    .overflow = own_overflow,
    .told = own_told,
    .free = own_free,
};

rd_push *rd_pubsub_subscriber(rd_pubsub *pubsub) {
    rd_push *push = rd_alloc_zero(sizeof(*push));
    rd_push_init(push, &own_ops, pubsub->shared, NULL);
    push->subscriber.limit = UINT32_MAX;
    return push;
}

void rd_pubsub_release(rd_pubsub *pubsub, rd_push *push) {
    push->closing = true;
    rd_subscriber_clear(&pubsub->channels, &push->subscriber);
    if (pubsub->watcher == push) pubsub->watcher = NULL;
    rd_push_unref(push);
}

/* ---- whoever carries messages further ---- */

static void tell_watcher(rd_engine *engine, rd_slice name, bool is_pattern, bool subscribed) {
    static const char *const commands[] = RD_PUBSUB_COMMANDS;
    rd_pubsub *pubsub = RD_CONTAINER(engine, rd_pubsub, engine);
    if (pubsub->watcher == NULL) return;
    const char *command = commands[(is_pattern ? 2 : 0) + (subscribed ? 1 : 0)];
    rd_message *message = rd_message_new(name, rd_slice_of(command, strlen(command)), true, 0);
    rd_push_publish(pubsub->watcher, message, RD_AS_SENT, 1);
    rd_message_unref(message);
}

static void on_first(rd_engine *engine, rd_slice name, bool is_pattern) {
    tell_watcher(engine, name, is_pattern, true);
}

static void on_last(rd_engine *engine, rd_slice name, bool is_pattern) {
    tell_watcher(engine, name, is_pattern, false);
}

/* ---- history ---- */

static void expect_expiry(rd_pubsub *pubsub) {
    if (pubsub->history.count == 0 || rd_timer_is_armed(&pubsub->expiry)) return;
    rd_timer_set(&pubsub->conns->loop->timers, &pubsub->expiry,
                 pubsub->conns->loop->now_ms + EXPIRY_MS);
}

static void on_expiry(rd_timer *timer) {
    rd_pubsub *pubsub = RD_CONTAINER(timer, rd_pubsub, expiry);
    rd_history_expire(&pubsub->history, rd_clock_ms());
    expect_expiry(pubsub);
}

/* ---- the whole ---- */

void rd_pubsub_init(rd_pubsub *pubsub, rd_conn_set *conns, rd_http_shared *shared) {
    const rd_settings *settings = shared->settings;
    const rd_history_limits limits = {(uint32_t)settings->history_messages,
                                      (size_t)settings->history_bytes};
    pubsub->conns = conns;
    rd_timer_init(&pubsub->expiry, on_expiry);
    pubsub->shared = shared;
    pubsub->engine = (rd_engine){on_first, on_last};
    rd_channels_init(&pubsub->channels, &pubsub->engine);
    rd_history_init(&pubsub->history, limits, (uint64_t)rd_clock_wall_us());
    shared->channels = &pubsub->channels;
}

void rd_pubsub_clear(rd_pubsub *pubsub) {
    pubsub->watcher = NULL;
    if (rd_timer_is_armed(&pubsub->expiry)) rd_timer_cancel(&pubsub->expiry);
    rd_channels_clear(&pubsub->channels);
    rd_history_clear(&pubsub->history);
}

/* ---- publishing ---- */

/* Whoever publishes much faster than the loop turns does the loop's work. */
static void keep_up(rd_pubsub *pubsub) {
    const rd_fanout *fanout = &pubsub->channels.fanout;
    while (fanout->waiting_bytes > WAITING_BYTES && !fanout->is_running) {
        rd_channels_run(&pubsub->channels);
        rd_conn_set_flush(pubsub->conns);
    }
}

/* An id for what the history may keep, and none where nobody has asked for one. */
static uint64_t next_id(rd_pubsub *pubsub) {
    if (rd_list_is_empty(&pubsub->history.rules)) return 0;
    return rd_history_next_id(&pubsub->history, (uint64_t)rd_clock_wall_us());
}

int rd_pubsub_publish(rd_pubsub *pubsub, rd_slice channel, rd_slice payload, bool is_text,
                      rd_reach reach) {
    (void)reach;
    if (channel.len == 0 || channel.len > RD_CHANNEL_NAME_MAX) return RD_ERR_CHANNEL_NAME;
    rd_message *message = rd_message_new(channel, payload, is_text, next_id(pubsub));
    if (message->id != 0 && rd_history_add(&pubsub->history, message, rd_clock_ms())) {
        expect_expiry(pubsub);
    }
    rd_channels_publish(&pubsub->channels, message);
    rd_message_unref(message);
    pubsub->published++;
    keep_up(pubsub);
    return 1;
}

/* ---- subscribing ---- */

typedef struct rd_replaying {
    rd_push *push;
    const rd_pubsub_terms *terms;
} rd_replaying;

static void replay(void *with, rd_message *message) {
    const rd_replaying *replaying = with;
    rd_push_publish(replaying->push, message, replaying->terms->as, replaying->terms->block);
}

int rd_pubsub_subscribe(rd_pubsub *pubsub, rd_push *push, rd_slice name, bool is_pattern,
                        const rd_pubsub_terms *terms) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a number of the application's, never followed
    const rd_subscribe_terms how = {terms->as, (void *)terms->block, terms->replays};
    int result =
        rd_channels_subscribe(&pubsub->channels, &push->subscriber, name, is_pattern, &how);
    if (result < 0 || !terms->replays) return result;
    rd_replaying replaying = {push, terms};
    rd_history_replay(&pubsub->history, name, is_pattern, terms->since, rd_clock_ms(), replay,
                      &replaying);
    return result;
}

bool rd_pubsub_unsubscribe(rd_pubsub *pubsub, rd_push *push, rd_slice name, bool is_pattern) {
    return rd_channels_unsubscribe(&pubsub->channels, &push->subscriber, name, is_pattern);
}

int rd_pubsub_keep(rd_pubsub *pubsub, rd_slice name, bool is_pattern, uint32_t size,
                   uint64_t ttl_ms) {
    return rd_history_keep(&pubsub->history, name, is_pattern, size, ttl_ms);
}
