/* SPDX-License-Identifier: MIT
 *
 * From publish and subscribe to channels, history and the observer; see pubsub.h.
 */
#include "server/pubsub.h"

#include <string.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "base/error.h"
#include "transport/conn.h"

#define WAITING_BYTES (1 << 20) /* not delivered yet; above it the publisher helps to deliver */
#define EXPIRY_MS     10000

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
    .deliver = own_deliver,
    .overflow = own_overflow,
    .handled = own_handled,
    .free = own_free,
};

rd_endpoint *rd_pubsub_subscriber(rd_pubsub *pubsub) {
    rd_own *own = rd_alloc_zero(sizeof(*own));
    own->pubsub = pubsub;
    rd_endpoint_init(&own->endpoint, &own_ops, pubsub->shared, NULL);
    own->endpoint.subscriber.limit = UINT32_MAX;
    return &own->endpoint;
}

static void end_observer(rd_pubsub *pubsub) {
    pubsub->observer = NULL;
    rd_changes_reset(&pubsub->changes);
}

void rd_pubsub_release(rd_pubsub *pubsub, rd_endpoint *endpoint) {
    endpoint->is_closing = true;
    rd_subscriber_clear(&pubsub->channels, &endpoint->subscriber);
    if (pubsub->observer == endpoint) end_observer(pubsub);
    rd_endpoint_unref(endpoint);
}

/* ---- first and last subscribers ---- */

/* The next change becomes an event when the application has been told the one before. */
static void feed_observer(rd_pubsub *pubsub) {
    static const char *const commands[] = RD_PUBSUB_COMMANDS;
    rd_change *change = rd_changes_first(&pubsub->changes);
    if (change == NULL || !rd_list_is_empty(&pubsub->observer->messages)) return;
    const char *command = commands[(change->is_pattern ? 2 : 0) + (change->is_wanted ? 1 : 0)];
    rd_message *message =
        rd_message_new(rd_change_name(change), rd_slice_of(command, strlen(command)), true, 0);
    rd_changes_remove(&pubsub->changes, change);
    rd_endpoint_deliver(pubsub->observer, message, RD_AS_SENT, 1);
    rd_message_unref(message);
}

static void notify_observer(rd_engine *engine, rd_slice name, bool is_pattern, bool is_wanted) {
    rd_pubsub *pubsub = RD_CONTAINER(engine, rd_pubsub, engine);
    if (pubsub->observer == NULL) return;
    rd_changes_note(&pubsub->changes, name, is_pattern, is_wanted);
    feed_observer(pubsub);
}

static void note_channel(void *with, rd_slice name, bool is_pattern) {
    rd_changes_note(with, name, is_pattern, true);
}

void rd_pubsub_observe(rd_pubsub *pubsub, rd_endpoint *endpoint) {
    end_observer(pubsub);
    pubsub->observer = endpoint;
    rd_channels_each(&pubsub->channels, note_channel, &pubsub->changes);
    feed_observer(pubsub);
}

static void on_first(rd_engine *engine, rd_slice name, bool is_pattern) {
    rd_pubsub *pubsub = RD_CONTAINER(engine, rd_pubsub, engine);
    if (pubsub->link != NULL) rd_link_subscribe(pubsub->link, name, is_pattern);
    notify_observer(engine, name, is_pattern, true);
}

static void on_last(rd_engine *engine, rd_slice name, bool is_pattern) {
    rd_pubsub *pubsub = RD_CONTAINER(engine, rd_pubsub, engine);
    if (pubsub->link != NULL) rd_link_unsubscribe(pubsub->link, name, is_pattern);
    notify_observer(engine, name, is_pattern, false);
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

/* ---- the hub ---- */

/* A thread that publishes much faster than the loop turns does a part of the delivery itself; the
 * more waits, the larger the part. This bounds what waits, and one large message for a crowd does
 * not hold the lock until all have it. */
static void keep_up(rd_pubsub *pubsub) {
    const rd_fanout *fanout = &pubsub->channels.fanout;
    size_t slices = fanout->is_running ? 0 : fanout->waiting_bytes / WAITING_BYTES;
    for (bool more = true; more && slices > 0; slices--) {
        more = rd_channels_run(&pubsub->channels);
        rd_conn_set_flush(pubsub->conns);
    }
    rd_link *link = pubsub->link;
    if (rd_link_is_open(link) && link->conn->out.bytes > WAITING_BYTES) rd_conn_flush(link->conn);
}

static rd_message *message_of(const rd_relay_frame *frame) {
    const bool is_text = (frame->flags & RD_RELAY_TEXT) != 0;
    return rd_message_new(frame->channel, frame->payload, is_text, frame->id);
}

static void on_relayed(rd_link *link, const rd_relay_frame *frame) {
    rd_pubsub *pubsub = link->owner;
    rd_message *message = message_of(frame);
    rd_channels_enqueue(&pubsub->channels, message);
    rd_message_unref(message);
    keep_up(pubsub);
}

static void on_rule(rd_link *link, const rd_relay_frame *frame) {
    rd_pubsub *pubsub = link->owner;
    uint32_t size;
    uint64_t ttl_ms;
    rd_relay_get_terms(frame, &size, &ttl_ms);
    rd_history_keep(&pubsub->history, frame->channel, (frame->flags & RD_RELAY_PATTERN) != 0, size,
                    ttl_ms);
}

static bool is_wanted(rd_link *link, rd_slice name, bool is_pattern) {
    const rd_pubsub *pubsub = link->owner;
    return rd_channels_subscribers(&pubsub->channels, name, is_pattern) > 0;
}

static const rd_link_ops link_ops = {on_relayed, on_rule, is_wanted};

static void send_interest(void *with, rd_slice name, bool is_pattern) {
    rd_link_subscribe(with, name, is_pattern);
}

static void send_rule(void *with, const rd_relay_frame *rule) {
    uint32_t size;
    uint64_t ttl_ms;
    rd_relay_get_terms(rule, &size, &ttl_ms);
    rd_link_keep(with, rule->channel, (rule->flags & RD_RELAY_PATTERN) != 0, size, ttl_ms);
}

int rd_pubsub_link(rd_pubsub *pubsub, int fd) {
    const rd_settings *settings = pubsub->shared->settings;
    pubsub->link = rd_link_open(pubsub->conns->loop, settings, fd, &link_ops, pubsub);
    if (pubsub->link == NULL) return -1;
    rd_channels_each(&pubsub->channels, send_interest, pubsub->link);
    rd_history_each_rule(&pubsub->history, send_rule, pubsub->link);
    return 0;
}

/* ---- beginning and end ---- */

void rd_pubsub_init(rd_pubsub *pubsub, rd_conn_set *conns, rd_http_shared *shared) {
    const rd_settings *settings = shared->settings;
    const rd_history_limits limits = {(uint32_t)settings->history_messages,
                                      (size_t)settings->history_bytes};
    pubsub->conns = conns;
    rd_timer_init(&pubsub->expiry, on_expiry);
    pubsub->shared = shared;
    pubsub->engine = (rd_engine){on_first, on_last};
    rd_channels_init(&pubsub->channels, &pubsub->engine);
    rd_changes_init(&pubsub->changes);
    rd_history_init(&pubsub->history, limits, (uint64_t)rd_clock_wall_us());
    shared->channels = &pubsub->channels;
}

void rd_pubsub_clear(rd_pubsub *pubsub) {
    end_observer(pubsub);
    if (pubsub->link != NULL) rd_link_free(pubsub->link);
    pubsub->link = NULL;
    if (rd_timer_is_armed(&pubsub->expiry)) rd_timer_cancel(&pubsub->expiry);
    rd_channels_clear(&pubsub->channels);
    rd_changes_clear(&pubsub->changes);
    rd_history_clear(&pubsub->history);
}

/* ---- publishing ---- */

/* An id for a message that the history may keep; 0 if there are no rules. */
static uint64_t next_id(rd_pubsub *pubsub) {
    if (rd_list_is_empty(&pubsub->history.rules)) return 0;
    return rd_history_next_id(&pubsub->history, (uint64_t)rd_clock_wall_us());
}

static void deliver_here(rd_pubsub *pubsub, rd_slice channel, rd_slice payload, bool is_text,
                         uint64_t id) {
    rd_message *message = rd_message_new(channel, payload, is_text, id);
    if (id != 0 && rd_history_add(&pubsub->history, message, rd_clock_ms())) {
        expect_expiry(pubsub);
    }
    rd_channels_enqueue(&pubsub->channels, message);
    rd_message_unref(message);
}

/* The hub gives the ids. A message that it keeps is delivered here when it comes back. */
static int publish_to_hub(rd_pubsub *pubsub, rd_slice channel, rd_slice payload, bool is_text) {
    const bool is_kept = rd_history_wants(&pubsub->history, channel);
    const unsigned flags = (is_text ? RD_RELAY_TEXT : 0) | (is_kept ? RD_RELAY_ECHO : 0);
    const int code = rd_link_publish(pubsub->link, channel, payload, flags);
    if (code > 0 && !is_kept) deliver_here(pubsub, channel, payload, is_text, 0);
    return code;
}

int rd_pubsub_publish(rd_pubsub *pubsub, rd_slice channel, rd_slice payload, bool is_text,
                      rd_reach reach) {
    int code = 1;
    if (channel.len == 0 || channel.len > RD_CHANNEL_NAME_MAX) return RD_ERR_CHANNEL_NAME;
    if (payload.len > (size_t)pubsub->shared->settings->max_publish_bytes) {
        return RD_ERR_RELAY_PAYLOAD;
    }
    if (!rd_link_is_open(pubsub->link)) {
        deliver_here(pubsub, channel, payload, is_text, next_id(pubsub));
    } else if (reach == RD_REACH_ENGINE) {
        const unsigned flags = RD_RELAY_ENGINE | (is_text ? RD_RELAY_TEXT : 0);
        code = rd_link_publish(pubsub->link, channel, payload, flags);
    } else if (reach == RD_REACH_PROCESS) {
        deliver_here(pubsub, channel, payload, is_text, 0);
    } else {
        code = publish_to_hub(pubsub, channel, payload, is_text);
    }
    pubsub->published += code > 0;
    keep_up(pubsub);
    return code;
}

/* ---- subscribing ---- */

/* A subscriber that waits for a replay of the hub. It is subscribed at the end of the replay. */
typedef struct rd_replaying {
    rd_link_replay replay;
    rd_endpoint_replay of_endpoint;
    rd_pubsub *pubsub;
    rd_endpoint *endpoint; /* a reference */
    rd_pubsub_terms terms;
    bool is_pattern;
    bool is_counted; /* already counts as a subscription */
    size_t name_len;
    char name[];
} rd_replaying;

static int subscribe_now(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                         const rd_pubsub_terms *terms, bool is_afresh) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a number of the application's, never followed
    const rd_subscribe_terms how = {terms->as, (void *)terms->block, is_afresh};
    return rd_channels_subscribe(&pubsub->channels, &endpoint->subscriber, name, is_pattern, &how);
}

static void give_room(rd_replaying *replaying) {
    if (!replaying->is_counted) return;
    rd_subscriber_release(&replaying->endpoint->subscriber, replaying->name_len);
    replaying->is_counted = false;
}

static void end_replaying(rd_replaying *replaying) {
    give_room(replaying);
    rd_list_unlink(&replaying->of_endpoint.in_endpoint);
    rd_endpoint_unref(replaying->endpoint);
    rd_free(replaying);
}

static void on_replayed(rd_link_replay *replay, const rd_relay_frame *frame) {
    rd_replaying *replaying = RD_CONTAINER(replay, rd_replaying, replay);
    if (replaying->endpoint->is_closing) return;
    rd_message *message = message_of(frame);
    rd_endpoint_deliver(replaying->endpoint, message, replaying->terms.as, replaying->terms.block);
    rd_message_unref(message);
}

static void note_late(const rd_replaying *replaying) {
    rd_handler *handler = replaying->pubsub->shared->handler;
    const rd_conn *conn = replaying->endpoint->conn;
    replaying->pubsub->replay_timeouts++;
    if (conn != NULL) handler->on_refused(handler, conn, RD_ERR_REPLAY_LATE);
}

static void on_replay_end(rd_link_replay *replay, rd_replay kind) {
    rd_replaying *replaying = RD_CONTAINER(replay, rd_replaying, replay);
    const rd_slice name = rd_slice_of(replaying->name, replaying->name_len);
    (void)kind;
    if (replay->is_late) note_late(replaying);
    give_room(replaying);
    if (!replaying->endpoint->is_closing) {
        subscribe_now(replaying->pubsub, replaying->endpoint, name, replaying->is_pattern,
                      &replaying->terms, false);
    }
    end_replaying(replaying);
}

static void cancel(rd_endpoint_replay *of_endpoint) {
    rd_replaying *replaying = RD_CONTAINER(of_endpoint, rd_replaying, of_endpoint);
    rd_link_replay_cancel(&replaying->replay);
    end_replaying(replaying);
}

/* A later subscribe or unsubscribe replaces the replay. */
static bool cancel_replaying(rd_endpoint *endpoint, rd_slice name, bool is_pattern) {
    for (rd_list *node = endpoint->replays.next; node != &endpoint->replays; node = node->next) {
        rd_replaying *each = RD_CONTAINER(node, rd_replaying, of_endpoint.in_endpoint);
        if (each->is_pattern != is_pattern) continue;
        if (!rd_slice_equal(rd_slice_of(each->name, each->name_len), name)) continue;
        cancel(&each->of_endpoint);
        return true;
    }
    return false;
}

static rd_replaying *new_replaying(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name,
                                   bool is_pattern, const rd_pubsub_terms *terms) {
    rd_replaying *replaying = rd_alloc(sizeof(*replaying) + name.len);
    *replaying = (rd_replaying){.replay = {.on_message = on_replayed, .on_end = on_replay_end},
                                .of_endpoint = {.cancel = cancel},
                                .pubsub = pubsub,
                                .endpoint = endpoint,
                                .terms = *terms,
                                .is_pattern = is_pattern,
                                .name_len = name.len};
    memcpy(replaying->name, name.ptr, name.len);
    rd_endpoint_ref(endpoint);
    replaying->replay.bytes_max = rd_endpoint_room(endpoint, terms->block);
    if (endpoint->conn != NULL) replaying->replay.from = endpoint->conn->peer;
    rd_list_append(&endpoint->replays, &replaying->of_endpoint.in_endpoint);
    return replaying;
}

static bool is_beyond_limit(const rd_endpoint *endpoint) {
    uint32_t count = endpoint->subscriber.count;
    for (rd_list *node = endpoint->replays.next; node != &endpoint->replays; node = node->next)
        count++;
    return count > endpoint->subscriber.limit;
}

/* Ends the present subscription until the replay is over; else messages would arrive twice. */
static int ask_hub(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                   const rd_pubsub_terms *terms) {
    if (!rd_channel_is_name(name, is_pattern)) return RD_ERR_CHANNEL_NAME;
    rd_replaying *replaying = new_replaying(pubsub, endpoint, name, is_pattern, terms);
    if (!rd_link_replay_begin(pubsub->link, &replaying->replay, name, is_pattern, terms->since)) {
        end_replaying(replaying);
        return RD_ERR_CLOSED;
    }
    const bool was_subscribed =
        rd_channels_unsubscribe(&pubsub->channels, &endpoint->subscriber, name, is_pattern);
    const int code = is_beyond_limit(endpoint)
                         ? RD_ERR_CHANNEL_LIMIT
                         : rd_subscriber_reserve(&endpoint->subscriber, name.len);
    if (code < 0) {
        cancel_replaying(endpoint, name, is_pattern);
        return code;
    }
    replaying->is_counted = true;
    return was_subscribed ? 0 : 1;
}

typedef struct rd_local_replay {
    rd_endpoint *endpoint;
    const rd_pubsub_terms *terms;
} rd_local_replay;

static void replay(void *with, rd_message *message) {
    const rd_local_replay *replaying = with;
    rd_endpoint_deliver(replaying->endpoint, message, replaying->terms->as,
                        replaying->terms->block);
}

static int subscribe(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                     const rd_pubsub_terms *terms) {
    const bool was_due = cancel_replaying(endpoint, name, is_pattern);
    if (terms->replays && rd_link_is_open(pubsub->link)) {
        const int asked = ask_hub(pubsub, endpoint, name, is_pattern, terms);
        if (asked != RD_ERR_CLOSED) return asked == 1 && was_due ? 0 : asked;
    }
    const int result = subscribe_now(pubsub, endpoint, name, is_pattern, terms, terms->replays);
    if (result < 0 || !terms->replays) return result;
    rd_local_replay replaying = {endpoint, terms};
    const rd_history_wish wish = {.name = name,
                                  .is_pattern = is_pattern,
                                  .since = terms->since,
                                  .now_ms = rd_clock_ms(),
                                  .bytes_max = rd_endpoint_room(endpoint, terms->block)};
    rd_history_replay(&pubsub->history, &wish, replay, &replaying);
    return result;
}

int rd_pubsub_subscribe(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                        const rd_pubsub_terms *terms) {
    rd_handler *handler = pubsub->shared->handler;
    const int code = subscribe(pubsub, endpoint, name, is_pattern, terms);
    const bool is_refused = code == RD_ERR_CHANNEL_LIMIT || code == RD_ERR_SUBSCRIPTIONS_FULL;
    if (is_refused && endpoint->conn != NULL) handler->on_refused(handler, endpoint->conn, code);
    return code;
}

bool rd_pubsub_unsubscribe(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name,
                           bool is_pattern) {
    const bool was_due = cancel_replaying(endpoint, name, is_pattern);
    return rd_channels_unsubscribe(&pubsub->channels, &endpoint->subscriber, name, is_pattern) ||
           was_due;
}

int rd_pubsub_keep(rd_pubsub *pubsub, rd_slice name, bool is_pattern, uint32_t size,
                   uint64_t ttl_ms) {
    const int kept = rd_history_keep(&pubsub->history, name, is_pattern, size, ttl_ms);
    if (kept == 0 && pubsub->link != NULL) {
        rd_link_keep(pubsub->link, name, is_pattern, size, ttl_ms);
    }
    return kept;
}
