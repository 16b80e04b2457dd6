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

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "system/clock.h"
#include "pubsub/hub_interests.h"
#include "pubsub/hub_streams.h"

enum { ANSWERS_NS = 1000000 }; /* the last answer begins before */

typedef struct answering {
    rd_hub *hub;
    rd_hub_link *link;
    bool is_cut; /* a message longer than the link may queue was left out */
} answering;

static bool is_pattern(const rd_relay_frame *frame) {
    return (frame->flags & RD_RELAY_PATTERN) != 0;
}

typedef struct waiting {
    rd_list in_link;
    rd_relay_frame frame; /* REPLAY; its slices point to the bytes below */
    unsigned asks;        /* of the engine, for this replay */
    char bytes[];
} waiting;

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

int rd_hub_replay(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted) {
    if (link->replay_count >= RD_HUB_REPLAYS_MAX) return RD_ERR_CHANNEL_LIMIT;
    const size_t name = wanted->channel.len, note = wanted->payload.len;
    waiting *added = rd_alloc(sizeof(*added) + name + note);
    *added = (waiting){.frame = *wanted};
    memcpy(added->bytes, wanted->channel.ptr, name);
    if (note > 0) memcpy(added->bytes + name, wanted->payload.ptr, note);
    added->frame.channel = rd_slice_of(added->bytes, name);
    added->frame.payload = rd_slice_of(added->bytes + name, note);
    rd_list_append(&link->replays, &added->in_link);
    if (link->replay_count++ == 0) rd_list_append(&hub->asking, &link->in_asking);
    (void)rd_hub_ask_copy(hub, link, wanted, &added->asks);
    return 0;
}

static void forget_first(rd_hub_link *link) {
    rd_free(RD_CONTAINER(rd_list_shift(&link->replays), waiting, in_link));
    if (--link->replay_count == 0) rd_list_unlink(&link->in_asking);
}

void rd_hub_forget_replays(rd_hub_link *link) {
    while (link->replay_count > 0) forget_first(link);
}

/* Answers the first replay of a link that asks. */
static bool answer_first(rd_hub *hub, rd_hub_link *link) {
    const size_t room = hub->room(link);
    if (room == 0) return false;
    waiting *first = RD_CONTAINER(link->replays.next, waiting, in_link);
    if (!rd_hub_ask_copy(hub, link, &first->frame, &first->asks)) return false;
    answer(hub, link, &first->frame, room);
    forget_first(link);
    return true;
}

/* Links without room for an answer stand aside until the others are through. */
void rd_hub_answer(rd_hub *hub) {
    rd_list full;
    if (rd_list_is_empty(&hub->asking)) return;
    const uint64_t end_ns = rd_clock_ns() + ANSWERS_NS;
    bool is_over = false;
    rd_list_init(&full);
    while (!is_over && !rd_list_is_empty(&hub->asking)) {
        rd_hub_link *link = RD_CONTAINER(hub->asking.next, rd_hub_link, in_asking);
        rd_list_unlink(&link->in_asking);
        rd_list_append(&full, &link->in_asking);
        if (!answer_first(hub, link)) continue;
        if (link->replay_count > 0) {
            rd_list_unlink(&link->in_asking);
            rd_list_append(&hub->asking, &link->in_asking);
        }
        is_over = rd_clock_ns() >= end_ns;
    }
    for (rd_list *node; (node = rd_list_shift(&full)) != NULL;) rd_list_append(&hub->asking, node);
}

bool rd_hub_can_answer(rd_hub *hub) {
    for (rd_list *node = hub->asking.next; node != &hub->asking; node = node->next) {
        const rd_hub_link *link = RD_CONTAINER(node, rd_hub_link, in_asking);
        const waiting *first = RD_CONTAINER(link->replays.next, waiting, in_link);
        if (hub->room(link) > 0 && rd_hub_has_copy(hub, &first->frame, first->asks)) return true;
    }
    return false;
}

void rd_hub_each_replay(const rd_hub_link *link, rd_history_emit *emit, void *with) {
    for (rd_list *node = link->replays.next; node != &link->replays; node = node->next) {
        emit(with, &RD_CONTAINER(node, waiting, in_link)->frame);
    }
}
