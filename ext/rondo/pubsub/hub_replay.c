/* SPDX-License-Identifier: MIT
 *
 * The hub's answers to clients that were away; see hub_replay.h. Messages go first. An answer is
 * only given while a part of the link's queue is free, and has no more than that part and no more
 * than its client can take. So an answer never makes a message get lost.
 *
 * All replays wait first, also where there is room. So one hold of the lock answers for so long and
 * no longer, however many links ask, and links have turns. A search that finds nothing takes time
 * but no room.
 */
#include "pubsub/hub_replay.h"

#include "base/error.h"
#include "system/clock.h"
#include "pubsub/hub_streams.h"
#include "pubsub/hub_waiting.h"

enum { ANSWERS_NS = 1000000 }; /* the last answer begins before */

typedef struct answering {
    rd_hub *hub;
    rd_hub_link *link;
    bool is_cut; /* a message longer than the link may queue was left out */
} answering;

static bool is_pattern(const rd_relay_frame *frame) {
    return (frame->flags & RD_RELAY_PATTERN) != 0;
}

static void replay_message(void *with, rd_message *message) {
    answering *to = with;
    const rd_relay_frame frame = {.type = RD_RELAY_PUBLISH,
                                  .flags = message->is_text ? RD_RELAY_TEXT : 0,
                                  .id = message->id,
                                  .channel = rd_message_channel(message),
                                  .payload = rd_message_payload(message)};
    const bool is_sent = to->hub->send(to->link, &frame, message);
    to->link->sent += is_sent;
    to->is_cut |= !is_sent;
}

/* How much the client can take, if the worker says so. */
static size_t client_room(const rd_relay_frame *wanted) {
    if (wanted->payload.len < RD_RELAY_REPLAY_NOTE) return SIZE_MAX;
    return (size_t)rd_relay_get_number(wanted->payload.ptr + RD_RELAY_REPLAY_NOTE - 8, 8);
}

/* A link with more interests than it may have is told that there is a gap. */
static void answer(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted, size_t room) {
    const size_t client = client_room(wanted);
    const rd_history_wish wish = {.name = wanted->channel,
                                  .is_pattern = is_pattern(wanted),
                                  .since = wanted->id,
                                  .now_ms = hub->now_ms,
                                  .bytes_max = client < room ? client : room};
    answering to = {.hub = hub, .link = link};
    rd_relay_frame frame = *wanted;
    const bool subscribed = rd_hub_subscribe(hub, link, wanted->channel, is_pattern(wanted)) >= 0;
    frame.type = RD_RELAY_REPLAY_BEGIN;
    frame.id = 0;
    hub->send(link, &frame, NULL);
    rd_replay kind = RD_REPLAY_GAP;
    if (subscribed) kind = rd_history_replay(&hub->history, &wish, replay_message, &to);
    if (to.is_cut) kind = RD_REPLAY_GAP;
    link->replay_gaps += kind == RD_REPLAY_GAP;
    frame.type = RD_RELAY_REPLAY_END;
    frame.id = kind;
    hub->send(link, &frame, NULL);
}

/* ---- waiting ---- */

/* Whether the replay is recalled by itself: when a copy that was asked for comes, when the engine
 * is told of the topic, or when there is an engine. */
static bool is_recalled(const rd_hub *hub, const rd_hub_topic *topic) {
    return hub->engine == NULL || topic->asked == hub->engines ||
           rd_changes_has(&hub->changes, topic->in_map.name, false);
}

/* Returns false if the replay stays in the line. */
static bool set_aside(rd_hub *hub, rd_hub_waiting *waiting) {
    const rd_relay_frame *wanted = &waiting->frame;
    rd_hub_topic *topic = rd_hub_find_topic(hub, wanted->channel, false);
    if (wanted->payload.len < RD_RELAY_WAITS_NOTE) return false;
    if (!is_recalled(hub, topic)) return false;
    rd_hub_set_aside(topic, waiting);
    if (waiting->is_told) return true;
    waiting->is_told = true;
    hub->send(waiting->link,
              &(rd_relay_frame){.type = RD_RELAY_REPLAY_WAITS,
                                .channel = wanted->channel,
                                .payload = wanted->payload},
              NULL);
    return true;
}

static bool is_ready(rd_hub *hub, rd_hub_waiting *waiting) {
    return rd_hub_ask_copy(hub, waiting->link, &waiting->frame, &waiting->due);
}

/* The process is subscribed from the request on: it sends no SUBSCRIBE for its other clients while
 * it waits for the answer. Where this finds no room, the answer says so. */
int rd_hub_replay(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted) {
    if (link->replay_count >= RD_HUB_REPLAYS_MAX) return RD_ERR_CHANNEL_LIMIT;
    (void)rd_hub_subscribe(hub, link, wanted->channel, is_pattern(wanted));
    rd_hub_waiting *added = rd_hub_wait(hub, link, wanted);
    if (!is_ready(hub, added)) (void)set_aside(hub, added);
    return 0;
}

/* Answers the first replay of a link that asks, or sets it aside. */
static bool answer_first(rd_hub *hub, rd_hub_link *link) {
    const size_t room = hub->room(link);
    if (room == 0) return false;
    rd_hub_waiting *first = rd_hub_first_waiting(link);
    if (!is_ready(hub, first)) return set_aside(hub, first);
    answer(hub, link, &first->frame, room);
    rd_hub_end_waiting(first);
    return true;
}

/* Links without room for an answer stand aside until the others are through. */
bool rd_hub_answer(rd_hub *hub) {
    rd_list full;
    if (rd_list_is_empty(&hub->asking)) return false;
    const uint64_t end_ns = rd_clock_ns() + ANSWERS_NS;
    bool is_over = false;
    rd_list_init(&full);
    while (!is_over && !rd_list_is_empty(&hub->asking)) {
        rd_hub_link *link = RD_CONTAINER(hub->asking.next, rd_hub_link, in_asking);
        rd_list_unlink(&link->in_asking);
        rd_list_append(&full, &link->in_asking);
        if (!answer_first(hub, link)) continue;
        if (!rd_list_is_empty(&link->replays)) {
            rd_list_unlink(&link->in_asking);
            rd_list_append(&hub->asking, &link->in_asking);
        }
        is_over = rd_clock_ns() >= end_ns;
    }
    const bool has_more = !rd_list_is_empty(&hub->asking);
    for (rd_list *node; (node = rd_list_shift(&full)) != NULL;) rd_list_append(&hub->asking, node);
    return has_more;
}

bool rd_hub_can_answer(rd_hub *hub) {
    for (rd_list *node = hub->asking.next; node != &hub->asking; node = node->next) {
        const rd_hub_link *link = RD_CONTAINER(node, rd_hub_link, in_asking);
        const rd_hub_waiting *first = rd_hub_first_waiting(link);
        if (hub->room(link) > 0 && rd_hub_has_copy(hub, &first->frame, first->due)) return true;
    }
    return false;
}
