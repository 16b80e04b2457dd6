/* SPDX-License-Identifier: MIT
 *
 * What the hub does with each frame, by the interests of its links; see hub.h.
 */
#include "pubsub/hub.h"

#include <assert.h>
#include <limits.h>

#include "base/alloc.h"
#include "base/error.h"
#include "pubsub/channel.h"
#include "pubsub/hub_interests.h"
#include "pubsub/hub_offer.h"
#include "pubsub/hub_replay.h"
#include "pubsub/hub_streams.h"
#include "pubsub/hub_unclaimed.h"
#include "pubsub/hub_waiting.h"

static bool is_pattern(const rd_relay_frame *frame) {
    return (frame->flags & RD_RELAY_PATTERN) != 0;
}

void rd_hub_init(rd_hub *hub, rd_hub_send *send, rd_hub_room *room, rd_history_limits limits,
                 uint64_t wall_us) {
    *hub = (rd_hub){.send = send, .room = room, .wall_us = wall_us};
    rd_map_init(&hub->names);
    rd_map_init(&hub->patterns);
    rd_list_init(&hub->all_names);
    rd_list_init(&hub->all_patterns);
    rd_list_init(&hub->links);
    rd_list_init(&hub->asking);
    rd_patterns_init(&hub->matcher);
    rd_changes_init(&hub->changes);
    rd_history_init(&hub->history, limits, wall_us);
}

void rd_hub_clear(rd_hub *hub) {
    assert(rd_list_is_empty(&hub->links));
    rd_map_clear(&hub->names);
    rd_map_clear(&hub->patterns);
    rd_patterns_clear(&hub->matcher);
    rd_changes_clear(&hub->changes);
    rd_history_clear(&hub->history);
    rd_hub_clear_unclaimed(hub);
}

/* --- publishing --- */

/* Publishes to all links except the engine. The history comes first, because it gives the id. */
static void deliver_here(rd_hub *hub, const rd_relay_frame *from) {
    const bool is_kept = !hub->has_streams && !(from->flags & RD_RELAY_ROOT) &&
                         rd_history_wants(&hub->history, from->channel);
    rd_relay_frame frame = {.type = RD_RELAY_PUBLISH,
                            .flags = from->flags & RD_RELAY_TEXT,
                            .id = is_kept ? rd_history_next_id(&hub->history, hub->wall_us) : 0,
                            .channel = from->channel,
                            .payload = from->payload};
    rd_message *message = NULL;
    if (is_kept || from->payload.len > RD_HUB_COPY_MAX) {
        message = rd_message_new(from->channel, from->payload, frame.flags != 0, frame.id);
        frame.channel = rd_message_channel(message);
        frame.payload = rd_message_payload(message);
    }
    if (is_kept) rd_history_add(&hub->history, message, hub->now_ms);
    rd_hub_offer(hub, &frame, message, from->flags & (RD_RELAY_ROOT | RD_RELAY_WORKERS));
    if (message != NULL) rd_message_unref(message);
}

/* No engine will come: its messages are those of this server. A publisher that waits for an answer
 * gets none. */
static void deliver_alone(rd_hub *hub, const rd_relay_frame *from) {
    rd_relay_frame frame = *from;
    if (frame.flags & RD_RELAY_CONFIRM) {
        frame.payload = rd_slice_of(frame.payload.ptr + RD_RELAY_CONFIRM_NOTE,
                                    frame.payload.len - RD_RELAY_CONFIRM_NOTE);
    }
    deliver_here(hub, &frame);
}

/* `origin` does not get the message unless it asks for it. NULL: no link is excluded. */
static void publish(rd_hub *hub, rd_hub_link *origin, const rd_relay_frame *frame) {
    hub->published++;
    hub->mark++;
    if (origin != NULL && !(frame->flags & (RD_RELAY_ECHO | RD_RELAY_ENGINE))) {
        origin->mark = hub->mark;
    }
    const bool is_from_engine = origin != NULL && rd_hub_is_engine(origin->kind);
    if (is_from_engine && frame->id != 0) {
        rd_hub_take_kept(hub, frame);
    } else if ((frame->flags & RD_RELAY_ENGINE) && !is_from_engine) {
        hub->is_alone ? deliver_alone(hub, frame) : rd_hub_publish_by_engine(hub, frame);
    } else {
        deliver_here(hub, frame);
    }
}

bool rd_hub_publish(rd_hub *hub, const rd_relay_frame *frame) {
    const uint64_t before = hub->lost;
    publish(hub, NULL, frame);
    return hub->lost == before;
}

static void publish_alone(void *with, const rd_relay_frame *frame) {
    publish(with, NULL, frame);
}

void rd_hub_expect_no_engine(rd_hub *hub) {
    hub->is_alone = true;
    rd_hub_each_unclaimed(hub, publish_alone, hub);
    rd_hub_clear_unclaimed(hub);
}

/* --- rules --- */

static void send_to_workers(rd_hub *hub, const rd_relay_frame *frame) {
    for (rd_list *node = hub->links.next; node != &hub->links; node = node->next) {
        rd_hub_link *link = RD_CONTAINER(node, rd_hub_link, in_hub);
        if (link->kind == RD_HUB_WORKER) hub->send(link, frame, NULL);
    }
}

/* Every worker sends the rules of its configuration; a rule that exists already changes nothing. */
int rd_hub_keep(rd_hub *hub, rd_slice name, bool is_pattern, rd_relay_terms terms) {
    if (rd_history_has_rule(&hub->history, name, is_pattern, terms)) return 0;
    const int kept = rd_history_keep(&hub->history, name, is_pattern, terms);
    if (kept < 0) return kept;
    char bytes[RD_RELAY_TERMS_BYTES];
    send_to_workers(hub, &(rd_relay_frame){.type = RD_RELAY_KEEP,
                                           .flags = is_pattern ? RD_RELAY_PATTERN : 0,
                                           .id = hub->has_streams,
                                           .channel = name,
                                           .payload = rd_relay_put_terms(bytes, &terms)});
    rd_hub_tell_rules(hub);
    return 0;
}

static int keep(rd_hub *hub, const rd_relay_frame *frame) {
    return rd_hub_keep(hub, frame->channel, is_pattern(frame), rd_relay_get_terms(frame));
}

/* --- links --- */

typedef struct newcomer {
    rd_hub *hub;
    rd_hub_link *link;
} newcomer;

static void send_rule(void *with, const rd_relay_frame *frame) {
    const newcomer *newcomer = with;
    rd_relay_frame rule = *frame;
    rule.id = newcomer->hub->has_streams;
    newcomer->hub->send(newcomer->link, &rule, NULL);
}

void rd_hub_join(rd_hub *hub, rd_hub_link *link, rd_hub_kind kind) {
    *link = (rd_hub_link){.kind = kind};
    rd_list_init(&link->interests);
    rd_list_init(&link->replays);
    rd_list_init(&link->aside);
    rd_list_append(&hub->links, &link->in_hub);
    if (kind == RD_HUB_WORKER) {
        newcomer newcomer = {hub, link};
        rd_history_each_rule(&hub->history, send_rule, &newcomer);
    }
    if (!rd_hub_is_engine(kind)) return;
    assert(hub->engine == NULL);
    hub->engine = link;
    hub->is_alone = false;
    hub->has_streams = kind == RD_HUB_STREAMS;
    hub->engines++;
    rd_hub_tell_rules(hub);
    rd_hub_recall_all(hub);
    if (!hub->has_streams) rd_hub_tell_interests(hub);
    rd_hub_claim(hub, UINT_MAX);
}

void rd_hub_retire_engine(rd_hub *hub, const rd_hub_link *link) {
    if (hub->engine != link) return;
    hub->engine = NULL;
    rd_hub_load_break(hub);
    rd_changes_reset(&hub->changes); /* the next engine is told everything anew */
}

void rd_hub_leave(rd_hub *hub, rd_hub_link *link) {
    rd_hub_retire_engine(hub, link);
    rd_list_unlink(&link->in_hub);
    rd_hub_forget_replays(link);
    rd_hub_end_interests(hub, link);
}

int rd_hub_receive(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *frame) {
    if (link->kind == RD_HUB_STREAMS) {
        if (frame->type == RD_RELAY_REPLAY_BEGIN) return rd_hub_load_begin(hub, frame);
        if (frame->type == RD_RELAY_REPLAY_END) return rd_hub_load_end(hub);
        if (frame->type == RD_RELAY_SAVED_ENGINE) {
            rd_hub_see_id(hub, frame->id);
            return 0;
        }
    }
    if (frame->type != RD_RELAY_PUBLISH && rd_hub_is_engine(link->kind)) return RD_ERR_RELAY_TYPE;
    switch (frame->type) {
    case RD_RELAY_PUBLISH:
        publish(hub, link, frame);
        return 0;
    case RD_RELAY_SUBSCRIBE:
        return rd_hub_subscribe(hub, link, frame->channel, is_pattern(frame));
    case RD_RELAY_UNSUBSCRIBE:
        rd_hub_unsubscribe(hub, link, frame->channel, is_pattern(frame));
        return 0;
    case RD_RELAY_REPLAY:
        return rd_hub_replay(hub, link, frame);
    case RD_RELAY_KEEP:
        return keep(hub, frame);
    default:
        return RD_ERR_RELAY_TYPE;
    }
}
