/* SPDX-License-Identifier: MIT
 *
 * What an engine with streams gives the hub, and what the hub asks it; see hub_streams.h.
 *
 * The engine gives each message to subscribers once, in the order of ids. So what is in the copy
 * has been delivered, and what is not in it yet will be.
 */
#include "pubsub/hub_streams.h"

#include "base/error.h"
#include "pubsub/hub_interests.h"
#include "pubsub/hub_offer.h"
#include "pubsub/hub_waiting.h"

enum {
    NOTE_BYTES = 24, /* what time it is there; the last id that was given; for which topic */
    LOADS = 2        /* copies after which an id that is still too high is of no message */
};

/* ---- rules ---- */

static void send_rule(void *with, const rd_relay_frame *frame) {
    rd_hub *hub = with;
    hub->send(hub->engine, frame, NULL);
}

void rd_hub_tell_rules(rd_hub *hub) {
    if (hub->engine == NULL || !hub->has_streams) return;
    rd_history_number_rules(&hub->history, send_rule, hub);
    rd_hub_tell_interests(hub);
}

/* ---- messages ---- */

/* What time it was here when the message was kept there. */
static uint64_t added_ms(const rd_hub *hub, uint64_t id) {
    const uint64_t age_us = hub->loading_us > id ? hub->loading_us - id : 0;
    const uint64_t age_ms = age_us / 1000;
    return age_ms < hub->now_ms ? hub->now_ms - age_ms : 0;
}

static void add(rd_hub *hub, rd_message *message) {
    const uint64_t now_ms = hub->is_loading ? added_ms(hub, message->id) : hub->now_ms;
    rd_history_add(&hub->history, message, now_ms);
}

static void take_gap(rd_hub *hub, const rd_relay_frame *from) {
    rd_history_lose(&hub->history, from->channel, from->id);
    const rd_relay_frame frame = {.type = RD_RELAY_PUBLISH,
                                  .flags = RD_RELAY_TEXT | RD_RELAY_GAP,
                                  .id = from->id,
                                  .channel = from->channel};
    rd_hub_offer(hub, &frame, NULL, RD_RELAY_WORKERS);
}

void rd_hub_take_kept(rd_hub *hub, const rd_relay_frame *from) {
    rd_hub_see_id(hub, from->id);
    if (from->flags & RD_RELAY_GAP) {
        take_gap(hub, from);
        return;
    }
    if (hub->is_loading && hub->loading == NULL) return;
    const unsigned text = from->flags & RD_RELAY_TEXT;
    rd_message *message = rd_message_new(from->channel, from->payload, text != 0, from->id);
    const rd_relay_frame frame = {.type = RD_RELAY_PUBLISH,
                                  .flags = (uint8_t)text,
                                  .id = from->id,
                                  .channel = rd_message_channel(message),
                                  .payload = rd_message_payload(message)};
    add(hub, message);
    if (!hub->is_loading) rd_hub_offer(hub, &frame, message, 0);
    rd_message_unref(message);
}

/* ---- copies ---- */

int rd_hub_load_begin(rd_hub *hub, const rd_relay_frame *frame) {
    if (hub->is_loading || frame->payload.len != NOTE_BYTES) return RD_ERR_RELAY_TYPE;
    hub->is_loading = true;
    hub->loading_us = rd_relay_get_number(frame->payload.ptr, 8);
    const uint64_t known = rd_relay_get_number(frame->payload.ptr + 8, 8);
    rd_hub_topic *topic = rd_hub_find_topic(hub, frame->channel, false);
    const uint64_t number = rd_relay_get_number(frame->payload.ptr + 16, 8);
    if (topic == NULL || topic->number != number) return 0; /* nobody would go on with it */
    hub->loading = topic;
    topic->known = known;
    if (hub->history.last_id < known) hub->history.last_id = known;
    rd_history_load(&hub->history, frame->channel, frame->id);
    return 0;
}

int rd_hub_load_end(rd_hub *hub) {
    if (!hub->is_loading) return RD_ERR_RELAY_TYPE;
    hub->is_loading = false;
    rd_hub_topic *loaded = hub->loading;
    hub->loading = NULL;
    if (loaded == NULL) return 0;
    rd_hub_see_id(hub, loaded->known);
    loaded->asked = 0;
    loaded->loads++;
    rd_hub_recall(hub, loaded);
    return 0;
}

void rd_hub_load_break(rd_hub *hub) {
    if (hub->loading != NULL) rd_history_forget(&hub->history, hub->loading->in_map.name);
    hub->loading = NULL;
    hub->is_loading = false;
}

/* A client may have seen more at another server than has come here yet. An id that is still too
 * high after a second copy is from elsewhere. */
bool rd_hub_has_copy(rd_hub *hub, const rd_relay_frame *wanted, uint64_t due) {
    if (!hub->has_streams || (wanted->flags & RD_RELAY_PATTERN)) return true;
    if (rd_history_rule_number(&hub->history, wanted->channel) == 0) return true;
    if (!rd_history_is_loaded(&hub->history, wanted->channel)) return false;
    const rd_hub_topic *topic = rd_hub_find_topic(hub, wanted->channel, false);
    if (topic != NULL && topic == hub->loading) return false; /* a part of it is here */
    if (topic == NULL || wanted->id <= topic->known) return true;
    if (wanted->id <= rd_history_last_of(&hub->history, wanted->channel)) return true;
    return due != 0 && topic->loads >= due && topic->asked == 0;
}

/* A copy that was asked for before the replay came may be too old. All that wait share the copies.
 */
static void expect_loads(const rd_hub *hub, const rd_hub_topic *topic, uint64_t *due) {
    const bool is_asked = topic->asked == hub->engines;
    const uint64_t most = topic->loads + LOADS + is_asked;
    if (*due == 0 || *due > most) *due = most;
}

/* The process is subscribed first, because a copy stays true only with the messages that follow.
 * The engine would take a REPLAY that overtakes SUBSCRIBE for a subscription from now on. */
bool rd_hub_ask_copy(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted, uint64_t *due) {
    if (rd_hub_has_copy(hub, wanted, *due)) return true;
    if (rd_hub_subscribe(hub, link, wanted->channel, false) < 0) return true;
    rd_hub_topic *topic = rd_hub_find_topic(hub, wanted->channel, false);
    expect_loads(hub, topic, due);
    if (topic->asked == hub->engines || hub->engine == NULL) return false;
    if (rd_changes_has(&hub->changes, wanted->channel, false)) return false;
    const rd_relay_frame frame = {
        .type = RD_RELAY_REPLAY, .id = topic->number, .channel = wanted->channel};
    if (hub->send(hub->engine, &frame, NULL)) topic->asked = hub->engines;
    return false;
}
