/* SPDX-License-Identifier: MIT
 *
 * How an endpoint subscribes: at once, or at the end of a replay, from the hub or from the history
 * of this process; see pubsub.h.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "system/clock.h"
#include "messaging/pubsub_parts.h"

/* A subscription that waits for a replay of the hub. It begins at the end of the replay. */
typedef struct rd_replaying {
    rd_hold_wait wait;
    rd_pubsub *pubsub;
    rd_endpoint *endpoint; /* a reference */
    rd_pubsub_terms terms;
    bool is_pattern;
    bool is_counted; /* already counts as a subscription */
    size_t name_len;
    char name[];
} rd_replaying;

static rd_replaying *replaying_of(rd_link_replay *replay) {
    return RD_CONTAINER(replay, rd_replaying, wait.replay);
}

static int subscribe_now(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                         const rd_pubsub_terms *terms, bool is_afresh) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a number of the application's, never followed
    const rd_subscribe_terms how = {terms->as, (void *)terms->block, is_afresh};
    rd_subscriber *subscriber = &endpoint->subscriber;
    const int code = rd_channels_subscribe(&pubsub->channels, subscriber, name, is_pattern, &how);
    if (subscriber->count > 1 && rd_endpoint_ops_of(endpoint)->has_ids) {
        rd_hold_order(&pubsub->holds, endpoint);
    }
    return code;
}

static rd_hold *begin_hold(rd_pubsub *pubsub, rd_endpoint *endpoint) {
    const rd_link *link = pubsub->link;
    const uint64_t wait_ms = link != NULL ? link->wait_ms : RD_REPLAY_WAIT_MS;
    return rd_hold_begin(&pubsub->holds, endpoint, wait_ms);
}

static void settle(rd_endpoint *endpoint) {
    if (endpoint->hold != NULL) rd_hold_settle(rd_hold_of(endpoint));
}

/* Looks at all that is held, so it is for who was subscribed: of others nothing is. */
static void forget_held(const rd_pubsub *pubsub, const rd_endpoint *endpoint, rd_slice name,
                        bool is_pattern) {
    if (endpoint->hold == NULL) return;
    rd_hold_forget(rd_hold_of(endpoint), rd_channels_hash(&pubsub->channels, name, is_pattern));
}

static void give_room(rd_replaying *replaying) {
    if (!replaying->is_counted) return;
    rd_subscriber_release(&replaying->endpoint->subscriber, replaying->name_len);
    replaying->is_counted = false;
}

static void end_replaying(rd_replaying *replaying) {
    give_room(replaying);
    rd_hold_leave(rd_hold_of(replaying->endpoint), &replaying->wait);
    rd_endpoint_unref(replaying->endpoint);
    rd_free(replaying);
}

static void on_replayed(rd_link_replay *replay, const rd_relay_frame *frame) {
    rd_replaying *replaying = replaying_of(replay);
    if (replaying->endpoint->is_closing) return;
    rd_message *message = rd_pubsub_message_of(frame);
    rd_hold_add(rd_hold_of(replaying->endpoint), &replaying->wait.part, message);
    rd_message_unref(message);
}

static void report(const rd_replaying *replaying, int code) {
    rd_handler *handler = replaying->pubsub->shared->handler;
    rd_conn *conn = replaying->endpoint->conn;
    if (conn != NULL) handler->on_refused(handler, conn, code);
}

static void note_late(const rd_replaying *replaying) {
    replaying->pubsub->replay_timeouts++;
    report(replaying, RD_ERR_REPLAY_LATE);
}

/* The hub counts what it lacks, but not an id that it never had. */
static void note_unknown(const rd_replaying *replaying) {
    replaying->pubsub->replay_gaps++;
    report(replaying, RD_ERR_REPLAY_UNKNOWN);
}

/* Of a replay that the hub has not counted. */
static void note_kind(rd_pubsub *pubsub, rd_replay kind) {
    pubsub->replay_gaps += kind == RD_REPLAY_GAP;
}

static bool is_kept_by_engine(const rd_pubsub *pubsub, rd_slice name, bool is_pattern) {
    return pubsub->has_streams && !is_pattern && rd_history_wants(&pubsub->history, name);
}

/* The client is told before it gets what there is: if it breaks off, it knows, or it comes back
 * with its old id and is told again. */
static void tell_of_gap(rd_replaying *replaying, rd_replay kind) {
    const bool is_gap = kind == RD_REPLAY_GAP || kind == RD_REPLAY_UNKNOWN;
    const rd_slice name = rd_slice_of(replaying->name, replaying->name_len);
    if (!is_gap || !is_kept_by_engine(replaying->pubsub, name, replaying->is_pattern)) return;
    if (kind == RD_REPLAY_UNKNOWN) note_unknown(replaying);
    rd_message *message = rd_message_new(name, RD_SLICE(""), true, 0);
    message->is_gap = true;
    rd_hold_tell(rd_hold_of(replaying->endpoint), &replaying->wait.part, message);
    rd_message_unref(message);
}

/* What the hub calls whole may have found no room here. Returns how the replay ended. */
static rd_replay note_end(const rd_replaying *replaying, rd_replay kind) {
    rd_pubsub *pubsub = replaying->pubsub;
    const rd_hold *hold = rd_hold_of(replaying->endpoint);
    const bool is_cut = replaying->wait.part.is_cut && kind != RD_REPLAY_GAP;
    if (replaying->wait.replay.is_late) {
        note_late(replaying);
    } else if (!rd_link_is_open(pubsub->link) || rd_hold_is_full(hold)) {
        note_kind(pubsub, kind); /* the hub has gone before it could */
    } else if (is_cut) {
        note_kind(pubsub, RD_REPLAY_GAP);
    }
    return is_cut ? RD_REPLAY_GAP : kind;
}

/* The master of this server has gone, so this process ends soon. What an engine keeps is not lost:
 * the client gets it elsewhere. The application's own subscribers have no connection. */
static bool is_elsewhere(const rd_pubsub *pubsub, const rd_endpoint *endpoint, rd_slice name,
                         bool is_pattern) {
    return !rd_link_is_open(pubsub->link) && endpoint->conn != NULL && !endpoint->is_closing &&
           is_kept_by_engine(pubsub, name, is_pattern);
}

/* It comes back with the id that it has, so it gets nothing more that has one. */
static void send_elsewhere(rd_endpoint *endpoint) {
    if (endpoint->hold != NULL) endpoint->hold->end(endpoint->hold);
    rd_endpoint_ops_of(endpoint)->close(endpoint, 1012, RD_SLICE("service restart"));
}

static void begin_subscription(rd_replaying *replaying, rd_replay kind) {
    const rd_slice name = rd_slice_of(replaying->name, replaying->name_len);
    const rd_replay how = note_end(replaying, kind);
    give_room(replaying);
    if (replaying->endpoint->is_closing) return;
    const int code = subscribe_now(replaying->pubsub, replaying->endpoint, name,
                                   replaying->is_pattern, &replaying->terms, false);
    if (code < 0) report(replaying, code);
    tell_of_gap(replaying, how);
}

static void on_replay_end(rd_link_replay *replay, rd_replay kind) {
    rd_replaying *replaying = replaying_of(replay);
    rd_endpoint *endpoint = replaying->endpoint;
    const rd_slice name = rd_slice_of(replaying->name, replaying->name_len);
    const bool has_to_go =
        !replay->is_late && is_elsewhere(replaying->pubsub, endpoint, name, replaying->is_pattern);
    if (!has_to_go) begin_subscription(replaying, kind);
    rd_endpoint_ref(endpoint);
    end_replaying(replaying);
    if (has_to_go)
        send_elsewhere(endpoint);
    else
        settle(endpoint);
    rd_endpoint_unref(endpoint);
}

static void cancel(rd_hold_wait *wait) {
    rd_replaying *replaying = RD_CONTAINER(wait, rd_replaying, wait);
    rd_link_replay_cancel(&wait->replay);
    end_replaying(replaying);
}

/* A later subscribe or unsubscribe replaces the replay, and what is here of it. */
static bool cancel_replaying(rd_endpoint *endpoint, rd_slice name, bool is_pattern) {
    rd_list *ring = endpoint->hold != NULL ? rd_hold_waits(rd_hold_of(endpoint)) : NULL;
    for (rd_list *node = ring; node != NULL; node = rd_ring_next(ring, node)) {
        rd_replaying *each = RD_CONTAINER(node, rd_replaying, wait.in_hold);
        if (each->is_pattern != is_pattern) continue;
        if (!rd_slice_equal(rd_slice_of(each->name, each->name_len), name)) continue;
        rd_hold_forget(rd_hold_of(endpoint), each->wait.part.owner);
        cancel(&each->wait);
        return true;
    }
    return false;
}

static rd_hold_part part_of(const rd_pubsub *pubsub, rd_slice name, bool is_pattern,
                            const rd_pubsub_terms *terms) {
    return (rd_hold_part){.owner = rd_channels_hash(&pubsub->channels, name, is_pattern),
                          .as = terms->as,
                          .block = terms->block};
}

static rd_replaying *new_replaying(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name,
                                   bool is_pattern, const rd_pubsub_terms *terms) {
    rd_replaying *replaying = rd_alloc(sizeof(*replaying) + name.len);
    *replaying =
        (rd_replaying){.wait = {.replay = {.on_message = on_replayed, .on_end = on_replay_end},
                                .part = part_of(pubsub, name, is_pattern, terms),
                                .cancel = cancel},
                       .pubsub = pubsub,
                       .endpoint = endpoint,
                       .terms = *terms,
                       .is_pattern = is_pattern,
                       .name_len = name.len};
    memcpy(replaying->name, name.ptr, name.len);
    rd_endpoint_ref(endpoint);
    replaying->wait.replay.bytes_max = rd_endpoint_room(endpoint, terms->block);
    if (endpoint->conn != NULL) replaying->wait.replay.from = endpoint->conn->peer;
    rd_hold_join(begin_hold(pubsub, endpoint), &replaying->wait);
    return replaying;
}

/* With those that wait for a replay. */
static uint32_t count_subscriptions(const rd_endpoint *endpoint) {
    uint32_t count = endpoint->subscriber.count;
    if (endpoint->hold == NULL) return count;
    const rd_list *ring = rd_hold_waits(rd_hold_of(endpoint));
    for (const rd_list *node = ring; node != NULL; node = rd_ring_next(ring, node)) count++;
    return count;
}

static bool is_beyond_limit(const rd_endpoint *endpoint) {
    return count_subscriptions(endpoint) > endpoint->subscriber.kind->limit;
}

/* A subscription that waits for a replay keeps its place. */
static bool has_place(const rd_pubsub *pubsub, const rd_endpoint *endpoint, rd_slice name,
                      bool is_pattern) {
    if (count_subscriptions(endpoint) < endpoint->subscriber.kind->limit) return true;
    return rd_channels_is_subscribed(&pubsub->channels, &endpoint->subscriber, name, is_pattern);
}

/* Ends the present subscription until the replay is over; else messages would arrive twice. */
static int ask_hub(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                   const rd_pubsub_terms *terms) {
    if (!rd_channel_is_name(name, is_pattern)) return RD_ERR_CHANNEL_NAME;
    rd_replaying *replaying = new_replaying(pubsub, endpoint, name, is_pattern, terms);
    if (!rd_link_replay_begin(pubsub->link, &replaying->wait.replay, name, is_pattern,
                              terms->since)) {
        end_replaying(replaying);
        return RD_ERR_CLOSED;
    }
    const bool was_subscribed =
        rd_channels_unsubscribe(&pubsub->channels, &endpoint->subscriber, name, is_pattern);
    if (was_subscribed) forget_held(pubsub, endpoint, name, is_pattern);
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

/* From the history of this process, whose answers are here at once. */
typedef struct rd_local_replay {
    rd_endpoint *endpoint;
    rd_hold_part part;
} rd_local_replay;

static void replay(void *with, rd_message *message) {
    rd_local_replay *replaying = with;
    rd_endpoint *endpoint = replaying->endpoint;
    if (endpoint->hold != NULL) {
        rd_hold_add(rd_hold_of(endpoint), &replaying->part, message);
    } else {
        rd_endpoint_deliver(endpoint, message, replaying->part.as, replaying->part.block);
    }
}

static void replay_here(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                        const rd_pubsub_terms *terms) {
    rd_local_replay replaying = {endpoint, part_of(pubsub, name, is_pattern, terms)};
    const bool is_held = rd_endpoint_ops_of(endpoint)->has_ids || terms->block != 0;
    if (is_held) begin_hold(pubsub, endpoint);
    const rd_history_wish wish = {.name = name,
                                  .is_pattern = is_pattern,
                                  .since = terms->since,
                                  .now_ms = rd_clock_ms(),
                                  .bytes_max = rd_endpoint_room(endpoint, terms->block)};
    const rd_replay kind = rd_history_replay(&pubsub->history, &wish, replay, &replaying);
    note_kind(pubsub, replaying.part.is_cut ? RD_REPLAY_GAP : kind);
}

/* The hub keeps nothing of a channel without a rule, so nobody needs to wait for its answer. */
static bool may_have_history(const rd_pubsub *pubsub, rd_slice name, bool is_pattern) {
    const rd_link *link = pubsub->link;
    const bool knows_rules = rd_link_is_open(link) && link->is_answered;
    return is_pattern || !knows_rules || rd_history_wants(&pubsub->history, name);
}

static int subscribe(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                     const rd_pubsub_terms *terms) {
    const bool was_due = cancel_replaying(endpoint, name, is_pattern);
    if (terms->replays && rd_link_is_open(pubsub->link)) {
        const int asked = ask_hub(pubsub, endpoint, name, is_pattern, terms);
        if (asked != RD_ERR_CLOSED) return asked == 1 && was_due ? 0 : asked;
    }
    if (terms->replays && is_elsewhere(pubsub, endpoint, name, is_pattern)) {
        send_elsewhere(endpoint);
        return RD_ERR_CLOSED;
    }
    if (!has_place(pubsub, endpoint, name, is_pattern)) return RD_ERR_CHANNEL_LIMIT;
    const int result = subscribe_now(pubsub, endpoint, name, is_pattern, terms, terms->replays);
    if (result < 0 || !terms->replays) return result;
    if (result == 0) forget_held(pubsub, endpoint, name, is_pattern);
    replay_here(pubsub, endpoint, name, is_pattern, terms);
    return result;
}

int rd_pubsub_subscribe(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name, bool is_pattern,
                        const rd_pubsub_terms *terms) {
    rd_handler *handler = pubsub->shared->handler;
    rd_pubsub_terms how = *terms;
    how.replays = how.replays && may_have_history(pubsub, name, is_pattern);
    const int code = subscribe(pubsub, endpoint, name, is_pattern, &how);
    settle(endpoint);
    const bool is_refused = code == RD_ERR_CHANNEL_LIMIT || code == RD_ERR_SUBSCRIPTIONS_FULL;
    if (is_refused && endpoint->conn != NULL) handler->on_refused(handler, endpoint->conn, code);
    return code;
}

bool rd_pubsub_unsubscribe(rd_pubsub *pubsub, rd_endpoint *endpoint, rd_slice name,
                           bool is_pattern) {
    const bool was_due = cancel_replaying(endpoint, name, is_pattern);
    const bool was_subscribed =
        rd_channels_unsubscribe(&pubsub->channels, &endpoint->subscriber, name, is_pattern);
    forget_held(pubsub, endpoint, name, is_pattern);
    settle(endpoint);
    return was_subscribed || was_due;
}
