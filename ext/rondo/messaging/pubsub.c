/* SPDX-License-Identifier: MIT
 *
 * From publish to channels and history, and what the hub sends; see pubsub.h.
 */
#include "messaging/pubsub.h"

#include "base/error.h"
#include "system/clock.h"
#include "messaging/pubsub_parts.h"
#include "transport/conn.h"

#define WAITING_BYTES (1 << 20) /* not delivered yet; above it the publisher helps to deliver */
#define EXPIRY_MS     10000

/* ---- first and last subscribers ---- */

static void on_first(rd_engine *engine, rd_slice name, bool is_pattern) {
    if (rd_channel_is_private(name)) return; /* no hub and no engine learns of them */
    rd_pubsub *pubsub = RD_CONTAINER(engine, rd_pubsub, engine);
    if (pubsub->link != NULL) rd_link_subscribe(pubsub->link, name, is_pattern);
    rd_pubsub_notify_observer(pubsub, name, is_pattern, true);
}

static void on_last(rd_engine *engine, rd_slice name, bool is_pattern) {
    if (rd_channel_is_private(name)) return; /* no hub and no engine learns of them */
    rd_pubsub *pubsub = RD_CONTAINER(engine, rd_pubsub, engine);
    if (pubsub->link != NULL) rd_link_unsubscribe(pubsub->link, name, is_pattern);
    rd_pubsub_notify_observer(pubsub, name, is_pattern, false);
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

static void on_relayed(rd_link *link, const rd_relay_frame *frame) {
    rd_pubsub *pubsub = link->owner;
    rd_message *message = rd_pubsub_message_of(frame);
    rd_channels_enqueue(&pubsub->channels, message);
    rd_message_unref(message);
    keep_up(pubsub);
}

static void on_rule(rd_link *link, const rd_relay_frame *frame) {
    rd_pubsub *pubsub = link->owner;
    const bool had_streams = pubsub->has_streams;
    pubsub->has_streams = frame->id != 0;
    if (pubsub->has_streams && !had_streams) {
        const uint64_t wait_ms = (uint64_t)link->settings.replay_timeout_ms;
        pubsub->holds.more_ms += rd_link_set_wait(link, wait_ms);
    }
    rd_history_keep(&pubsub->history, frame->channel, (frame->flags & RD_RELAY_PATTERN) != 0,
                    rd_relay_get_terms(frame));
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
    const rd_relay_terms terms = rd_relay_get_terms(rule);
    rd_link_keep(with, rule->channel, (rule->flags & RD_RELAY_PATTERN) != 0, &terms);
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
    rd_holds_init(&pubsub->holds, &pubsub->channels, conns->loop);
    rd_changes_init(&pubsub->changes);
    rd_history_init(&pubsub->history, limits, (uint64_t)rd_clock_wall_us());
    shared->channels = &pubsub->channels;
}

void rd_pubsub_clear(rd_pubsub *pubsub) {
    rd_pubsub_end_observer(pubsub);
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

/* Without a cluster there are no siblings, and this process is the root. */
static int publish_elsewhere(rd_pubsub *pubsub, rd_slice channel, rd_slice payload, bool is_text,
                             bool for_root) {
    const unsigned flags = (is_text ? RD_RELAY_TEXT : 0) | (for_root ? RD_RELAY_ROOT : 0);
    if (pubsub->link != NULL) return rd_link_publish(pubsub->link, channel, payload, flags);
    if (for_root) deliver_here(pubsub, channel, payload, is_text, 0);
    return 1;
}

/* Without the hub nobody would answer. */
static int publish_for_answer(rd_pubsub *pubsub, rd_slice channel, rd_slice payload, bool is_text) {
    if (!rd_link_is_open(pubsub->link)) return 0;
    const unsigned flags = RD_RELAY_ENGINE | RD_RELAY_CONFIRM | (is_text ? RD_RELAY_TEXT : 0);
    return rd_link_publish(pubsub->link, channel, payload, flags);
}

int rd_pubsub_publish(rd_pubsub *pubsub, rd_slice channel, rd_slice payload, bool is_text,
                      rd_reach reach) {
    int code = 1;
    if (channel.len == 0 || channel.len > RD_CHANNEL_NAME_MAX) return RD_ERR_CHANNEL_NAME;
    const size_t note = reach == RD_REACH_CONFIRM ? RD_RELAY_CONFIRM_NOTE : 0;
    if (payload.len > note + (size_t)pubsub->shared->settings->max_publish_bytes) {
        return RD_ERR_RELAY_PAYLOAD;
    }
    if (reach == RD_REACH_CONFIRM) {
        code = publish_for_answer(pubsub, channel, payload, is_text);
    } else if (reach == RD_REACH_SIBLINGS || reach == RD_REACH_ROOT) {
        code = publish_elsewhere(pubsub, channel, payload, is_text, reach == RD_REACH_ROOT);
    } else if (!rd_link_is_open(pubsub->link)) {
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

int rd_pubsub_keep(rd_pubsub *pubsub, rd_slice name, bool is_pattern, rd_relay_terms terms) {
    const int kept = rd_history_keep(&pubsub->history, name, is_pattern, terms);
    if (kept == 0 && pubsub->link != NULL) {
        rd_link_keep(pubsub->link, name, is_pattern, &terms);
    }
    return kept;
}
