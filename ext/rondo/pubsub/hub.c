/* SPDX-License-Identifier: MIT
 *
 * Interests, and what follows from them for each frame; see hub.h. A topic is a channel or pattern
 * that somebody wants; it goes with its last interest.
 */
#include "pubsub/hub.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "pubsub/channel.h"
#include "pubsub/glob.h"

typedef struct topic {
    rd_map_node in_map;
    rd_list in_all;
    rd_list interests;
    bool is_pattern;
    char name[];
} topic;

typedef struct interest {
    rd_list in_topic, in_link;
    topic *topic;
    rd_hub_link *link;
} interest;

static bool is_pattern(const rd_relay_frame *frame) {
    return (frame->flags & RD_RELAY_PATTERN) != 0;
}

static rd_map *map_of(rd_hub *hub, bool is_pattern) {
    return is_pattern ? &hub->patterns : &hub->names;
}

static topic *find(rd_hub *hub, rd_slice name, bool is_pattern) {
    rd_map_node *node = rd_map_find(map_of(hub, is_pattern), name);
    return node == NULL ? NULL : RD_CONTAINER(node, topic, in_map);
}

void rd_hub_init(rd_hub *hub, rd_hub_send *send, rd_history_limits limits, uint64_t wall_us) {
    *hub = (rd_hub){.send = send, .wall_us = wall_us};
    rd_map_init(&hub->names);
    rd_map_init(&hub->patterns);
    rd_list_init(&hub->all_names);
    rd_list_init(&hub->all_patterns);
    rd_list_init(&hub->links);
    rd_history_init(&hub->history, limits, wall_us);
}

void rd_hub_clear(rd_hub *hub) {
    assert(rd_list_is_empty(&hub->links));
    rd_map_clear(&hub->names);
    rd_map_clear(&hub->patterns);
    rd_history_clear(&hub->history);
    rd_buffer_clear(&hub->unclaimed);
}

/* --- interests --- */

static void tell_engine(rd_hub *hub, rd_relay_type type, const topic *topic) {
    if (hub->engine == NULL) return;
    const rd_relay_frame frame = {.type = type,
                                  .flags = topic->is_pattern ? RD_RELAY_PATTERN : 0,
                                  .channel = topic->in_map.name};
    hub->send(hub->engine, &frame, NULL);
}

static topic *add_topic(rd_hub *hub, rd_slice name, bool is_pattern) {
    topic *added = rd_alloc(sizeof(*added) + name.len);
    *added = (topic){.is_pattern = is_pattern};
    memcpy(added->name, name.ptr, name.len);
    added->in_map.name = rd_slice_of(added->name, name.len);
    rd_list_init(&added->interests);
    rd_map_add(map_of(hub, is_pattern), &added->in_map);
    rd_list_append(is_pattern ? &hub->all_patterns : &hub->all_names, &added->in_all);
    tell_engine(hub, RD_RELAY_SUBSCRIBE, added);
    return added;
}

static void remove_topic(rd_hub *hub, topic *topic) {
    tell_engine(hub, RD_RELAY_UNSUBSCRIBE, topic);
    rd_map_remove(map_of(hub, topic->is_pattern), &topic->in_map);
    rd_list_unlink(&topic->in_all);
    rd_free(topic);
}

/* Along the list that is short: there are few processes. */
static interest *find_interest(const topic *topic, const rd_hub_link *link) {
    for (rd_list *node = topic->interests.next; node != &topic->interests; node = node->next) {
        interest *found = RD_CONTAINER(node, interest, in_topic);
        if (found->link == link) return found;
    }
    return NULL;
}

static int subscribe(rd_hub *hub, rd_hub_link *link, rd_slice name, bool is_pattern) {
    topic *topic = find(hub, name, is_pattern);
    if (topic != NULL && find_interest(topic, link) != NULL) return 0;
    if (link->interest_count >= RD_HUB_INTERESTS_MAX) return RD_ERR_CHANNEL_LIMIT;
    if (topic == NULL) topic = add_topic(hub, name, is_pattern);
    interest *added = rd_alloc(sizeof(*added));
    *added = (interest){.topic = topic, .link = link};
    rd_list_append(&topic->interests, &added->in_topic);
    rd_list_append(&link->interests, &added->in_link);
    link->interest_count++;
    return 0;
}

static void end(rd_hub *hub, interest *interest) {
    topic *topic = interest->topic;
    rd_list_unlink(&interest->in_topic);
    rd_list_unlink(&interest->in_link);
    interest->link->interest_count--;
    rd_free(interest);
    if (rd_list_is_empty(&topic->interests)) remove_topic(hub, topic);
}

static void unsubscribe(rd_hub *hub, rd_hub_link *link, rd_slice name, bool is_pattern) {
    const topic *topic = find(hub, name, is_pattern);
    interest *found = topic == NULL ? NULL : find_interest(topic, link);
    if (found != NULL) end(hub, found);
}

void rd_hub_each_interest(const rd_hub_link *link, rd_history_tell *tell, void *with) {
    for (rd_list *node = link->interests.next; node != &link->interests; node = node->next) {
        const topic *topic = RD_CONTAINER(node, interest, in_link)->topic;
        tell(with, &(rd_relay_frame){.type = RD_RELAY_SUBSCRIBE,
                                     .flags = topic->is_pattern ? RD_RELAY_PATTERN : 0,
                                     .channel = topic->in_map.name});
    }
}

/* --- publishing --- */

static bool send_message(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *frame,
                         rd_message *message) {
    if (hub->send(link, frame, message)) {
        link->sent++;
        return true;
    }
    if (!link->is_losing) link->outages++;
    link->is_losing = true;
    link->dropped++;
    return false;
}

static void offer(rd_hub *hub, const topic *topic, const rd_relay_frame *frame,
                  rd_message *message) {
    for (rd_list *node = topic->interests.next; node != &topic->interests; node = node->next) {
        rd_hub_link *link = RD_CONTAINER(node, interest, in_topic)->link;
        if (link->mark == hub->mark) continue;
        link->mark = hub->mark;
        send_message(hub, link, frame, message);
    }
}

static void offer_all(rd_hub *hub, const rd_relay_frame *frame, rd_message *message) {
    const topic *topic = find(hub, frame->channel, false);
    if (topic != NULL) offer(hub, topic, frame, message);
    const rd_list *patterns = &hub->all_patterns;
    for (rd_list *node = patterns->next; node != patterns; node = node->next) {
        const struct topic *pattern = RD_CONTAINER(node, struct topic, in_all);
        if (!rd_glob_matches(pattern->in_map.name, frame->channel)) continue;
        offer(hub, pattern, frame, message);
    }
}

/* To everybody but the engine: the history first, which gives the id. */
static void publish_here(rd_hub *hub, const rd_relay_frame *from) {
    const bool is_kept = rd_history_wants(&hub->history, from->channel);
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
    offer_all(hub, &frame, message);
    if (message != NULL) rd_message_unref(message);
}

static void publish_by_engine(rd_hub *hub, const rd_relay_frame *from) {
    const rd_relay_frame frame = {.type = RD_RELAY_PUBLISH,
                                  .flags = from->flags & RD_RELAY_TEXT,
                                  .channel = from->channel,
                                  .payload = from->payload};
    if (hub->engine != NULL) {
        send_message(hub, hub->engine, &frame, NULL);
    } else if (rd_buffer_len(&hub->unclaimed) + RD_RELAY_HEAD_BYTES + frame.channel.len +
                       frame.payload.len >
                   hub->unclaimed_max ||
               rd_relay_write(&frame, RD_RELAY_PAYLOAD_MAX, &hub->unclaimed) < 0) {
        hub->unclaimed_lost++;
    }
}

void rd_hub_each_unclaimed(const rd_hub *hub, rd_history_tell *tell, void *with) {
    const char *bytes = rd_buffer_ptr(&hub->unclaimed);
    size_t len = rd_buffer_len(&hub->unclaimed), used = 0;
    rd_relay_reader reader;
    rd_relay_frame frame;
    rd_relay_reader_init(&reader, RD_RELAY_PAYLOAD_MAX);
    while (len > 0 && rd_relay_read(&reader, bytes, len, &used, &frame) == 1) {
        frame.flags |= RD_RELAY_ENGINE;
        tell(with, &frame);
        bytes += used;
        len -= used;
    }
    rd_relay_reader_clear(&reader);
}

static void claim(void *with, const rd_relay_frame *frame) {
    publish_by_engine(with, frame);
}

/* `origin` does not get it, unless it wants to; NULL: nobody is left out. */
static void publish(rd_hub *hub, rd_hub_link *origin, const rd_relay_frame *frame) {
    hub->published++;
    hub->mark++;
    if (origin != NULL && !(frame->flags & RD_RELAY_ECHO)) origin->mark = hub->mark;
    const bool is_from_engine = origin != NULL && origin->kind == RD_HUB_ENGINE;
    if ((frame->flags & RD_RELAY_ENGINE) && !is_from_engine) {
        publish_by_engine(hub, frame);
    } else {
        publish_here(hub, frame);
    }
}

void rd_hub_publish(rd_hub *hub, const rd_relay_frame *frame) {
    publish(hub, NULL, frame);
}

/* --- history --- */

typedef struct answer {
    rd_hub *hub;
    rd_hub_link *link;
    bool is_cut; /* there was no room for all of it */
} answer;

static void replay_message(void *with, rd_message *message) {
    answer *answer = with;
    const rd_relay_frame frame = {.type = RD_RELAY_PUBLISH,
                                  .flags = message->is_text ? RD_RELAY_TEXT : 0,
                                  .id = message->id,
                                  .channel = rd_message_channel(message),
                                  .payload = rd_message_payload(message)};
    if (answer->is_cut) return;
    answer->is_cut = !send_message(answer->hub, answer->link, &frame, message);
}

static int replay(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted) {
    answer answer = {.hub = hub, .link = link};
    rd_relay_frame frame = *wanted;
    const int subscribed = subscribe(hub, link, wanted->channel, is_pattern(wanted));
    if (subscribed < 0) return subscribed;
    frame.type = RD_RELAY_REPLAY_BEGIN;
    frame.id = 0;
    hub->send(link, &frame, NULL);
    rd_replay kind = rd_history_replay(&hub->history, wanted->channel, is_pattern(wanted),
                                       wanted->id, hub->now_ms, replay_message, &answer);
    if (answer.is_cut) kind = RD_REPLAY_GAP;
    frame.type = RD_RELAY_REPLAY_END;
    frame.id = kind;
    hub->send(link, &frame, NULL);
    return 0;
}

static void tell_workers(rd_hub *hub, const rd_relay_frame *frame) {
    for (rd_list *node = hub->links.next; node != &hub->links; node = node->next) {
        rd_hub_link *link = RD_CONTAINER(node, rd_hub_link, in_hub);
        if (link->kind == RD_HUB_WORKER) hub->send(link, frame, NULL);
    }
}

/* Every worker brings the rules of its configuration: the same ones are no news. */
int rd_hub_keep(rd_hub *hub, rd_slice name, bool is_pattern, uint32_t size, uint64_t ttl_ms) {
    if (rd_history_has_rule(&hub->history, name, is_pattern, size, ttl_ms)) return 0;
    const int kept = rd_history_keep(&hub->history, name, is_pattern, size, ttl_ms);
    if (kept < 0) return kept;
    char terms[RD_RELAY_TERMS_BYTES];
    rd_relay_put_terms(terms, size, ttl_ms);
    tell_workers(hub, &(rd_relay_frame){.type = RD_RELAY_KEEP,
                                        .flags = is_pattern ? RD_RELAY_PATTERN : 0,
                                        .channel = name,
                                        .payload = rd_slice_of(terms, sizeof(terms))});
    return 0;
}

static int keep(rd_hub *hub, const rd_relay_frame *frame) {
    uint32_t size;
    uint64_t ttl_ms;
    rd_relay_get_terms(frame, &size, &ttl_ms);
    return rd_hub_keep(hub, frame->channel, is_pattern(frame), size, ttl_ms);
}

/* --- links --- */

typedef struct newcomer {
    rd_hub *hub;
    rd_hub_link *link;
} newcomer;

static void tell_rule(void *with, const rd_relay_frame *frame) {
    const newcomer *newcomer = with;
    newcomer->hub->send(newcomer->link, frame, NULL);
}

static void tell_topics(rd_hub *hub, const rd_list *list) {
    for (rd_list *node = list->next; node != list; node = node->next) {
        tell_engine(hub, RD_RELAY_SUBSCRIBE, RD_CONTAINER(node, topic, in_all));
    }
}

void rd_hub_join(rd_hub *hub, rd_hub_link *link, rd_hub_kind kind) {
    *link = (rd_hub_link){.kind = kind};
    rd_list_init(&link->interests);
    rd_list_append(&hub->links, &link->in_hub);
    if (kind == RD_HUB_WORKER) {
        newcomer newcomer = {hub, link};
        rd_history_each_rule(&hub->history, tell_rule, &newcomer);
        return;
    }
    assert(hub->engine == NULL);
    hub->engine = link;
    tell_topics(hub, &hub->all_names);
    tell_topics(hub, &hub->all_patterns);
    rd_hub_each_unclaimed(hub, claim, hub);
    rd_buffer_clear(&hub->unclaimed);
}

void rd_hub_retire_engine(rd_hub *hub, const rd_hub_link *link) {
    if (hub->engine == link) hub->engine = NULL;
}

void rd_hub_leave(rd_hub *hub, rd_hub_link *link) {
    rd_hub_retire_engine(hub, link);
    rd_list_unlink(&link->in_hub);
    while (!rd_list_is_empty(&link->interests)) {
        end(hub, RD_CONTAINER(link->interests.next, interest, in_link));
    }
}

int rd_hub_take(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *frame) {
    if (frame->type != RD_RELAY_PUBLISH && link->kind == RD_HUB_ENGINE) return RD_ERR_RELAY_TYPE;
    switch (frame->type) {
    case RD_RELAY_PUBLISH:
        publish(hub, link, frame);
        return 0;
    case RD_RELAY_SUBSCRIBE:
        return subscribe(hub, link, frame->channel, is_pattern(frame));
    case RD_RELAY_UNSUBSCRIBE:
        unsubscribe(hub, link, frame->channel, is_pattern(frame));
        return 0;
    case RD_RELAY_REPLAY:
        return replay(hub, link, frame);
    case RD_RELAY_KEEP:
        return keep(hub, frame);
    default:
        return RD_ERR_RELAY_TYPE;
    }
}
