/* SPDX-License-Identifier: MIT
 *
 * Topics and interests, and how the engine learns of them; see hub_interests.h.
 */
#include "pubsub/hub_interests.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "pubsub/hub_waiting.h"

enum { FROM_NOW = 1 }; /* as id of SUBSCRIBE */

static rd_map *map_of(rd_hub *hub, bool is_pattern) {
    return is_pattern ? &hub->patterns : &hub->names;
}

rd_hub_topic *rd_hub_find_topic(rd_hub *hub, rd_slice name, bool is_pattern) {
    rd_map_node *node = rd_map_find(map_of(hub, is_pattern), name);
    return node == NULL ? NULL : RD_CONTAINER(node, rd_hub_topic, in_map);
}

static bool send_interest(rd_hub *hub, rd_slice name, bool is_pattern, bool is_wanted,
                          uint64_t after) {
    const bool is_kept = hub->has_streams && !is_pattern && is_wanted &&
                         rd_history_rule_number(&hub->history, name) != 0;
    return hub->send(
        hub->engine,
        &(rd_relay_frame){.type = is_wanted ? RD_RELAY_SUBSCRIBE : RD_RELAY_UNSUBSCRIBE,
                          .flags = is_pattern ? RD_RELAY_PATTERN : 0,
                          .id = is_kept ? after : 0,
                          .channel = name},
        NULL);
}

/* Keeps the order: once a change waits, all later ones wait. */
static void send_to_engine(rd_hub *hub, const rd_hub_topic *topic, bool is_wanted, uint64_t after) {
    const rd_slice name = topic->in_map.name;
    if (hub->engine == NULL) return;
    if (rd_changes_is_empty(&hub->changes) &&
        send_interest(hub, name, topic->is_pattern, is_wanted, after)) {
        return;
    }
    rd_change *noted = rd_changes_note(&hub->changes, name, topic->is_pattern, is_wanted);
    if (noted != NULL) noted->after = after;
}

/* The engine knows the topic now, so replays may ask it for a copy. */
static void recall_topic(rd_hub *hub, const rd_change *change) {
    rd_hub_topic *topic = rd_hub_find_topic(hub, rd_change_name(change), change->is_pattern);
    if (topic != NULL) rd_hub_recall(hub, topic);
}

void rd_hub_catch_up(rd_hub *hub, unsigned count) {
    for (; count > 0; count--) {
        rd_change *change = rd_changes_first(&hub->changes);
        if (change == NULL) return;
        if (!send_interest(hub, rd_change_name(change), change->is_pattern, change->is_wanted,
                           change->after)) {
            return;
        }
        recall_topic(hub, change);
        rd_changes_remove(&hub->changes, change);
    }
}

static rd_hub_topic *add_topic(rd_hub *hub, rd_slice name, bool is_pattern) {
    rd_hub_topic *added = rd_alloc(sizeof(*added) + name.len);
    *added = (rd_hub_topic){.is_pattern = is_pattern, .number = ++hub->topics};
    memcpy(added->name, name.ptr, name.len);
    added->in_map.name = rd_slice_of(added->name, name.len);
    rd_list_init(&added->interests);
    rd_list_init(&added->aside);
    rd_map_add(map_of(hub, is_pattern), &added->in_map);
    rd_list_append(is_pattern ? &hub->all_patterns : &hub->all_names, &added->in_all);
    if (is_pattern) rd_patterns_add(&hub->matcher, &added->pattern, added->in_map.name);
    send_to_engine(hub, added, true, FROM_NOW);
    return added;
}

static void remove_topic(rd_hub *hub, rd_hub_topic *topic) {
    send_to_engine(hub, topic, false, 0);
    rd_hub_recall(hub, topic);
    if (hub->has_streams && !topic->is_pattern) {
        rd_history_forget(&hub->history, topic->in_map.name);
    }
    rd_map_remove(map_of(hub, topic->is_pattern), &topic->in_map);
    rd_list_unlink(&topic->in_all);
    if (topic->is_pattern) rd_patterns_remove(&hub->matcher, &topic->pattern);
    if (hub->loading == topic) hub->loading = NULL;
    rd_free(topic);
}

/* Searches the list of the topic, which is short: there are few processes. */
static rd_hub_interest *find_interest(const rd_hub_topic *topic, const rd_hub_link *link) {
    for (rd_list *node = topic->interests.next; node != &topic->interests; node = node->next) {
        rd_hub_interest *found = RD_CONTAINER(node, rd_hub_interest, in_topic);
        if (found->link == link) return found;
    }
    return NULL;
}

int rd_hub_subscribe(rd_hub *hub, rd_hub_link *link, rd_slice name, bool is_pattern) {
    rd_hub_topic *topic = rd_hub_find_topic(hub, name, is_pattern);
    if (topic != NULL && find_interest(topic, link) != NULL) return 0;
    if (link->interest_count >= RD_HUB_INTERESTS_MAX) return RD_ERR_CHANNEL_LIMIT;
    if (topic == NULL) topic = add_topic(hub, name, is_pattern);
    rd_hub_interest *added = rd_alloc(sizeof(*added));
    *added = (rd_hub_interest){.topic = topic, .link = link};
    rd_list_append(&topic->interests, &added->in_topic);
    rd_list_append(&link->interests, &added->in_link);
    link->interest_count++;
    return 0;
}

static void end(rd_hub *hub, rd_hub_interest *interest) {
    rd_hub_topic *topic = interest->topic;
    rd_list_unlink(&interest->in_topic);
    rd_list_unlink(&interest->in_link);
    interest->link->interest_count--;
    rd_free(interest);
    if (rd_list_is_empty(&topic->interests)) remove_topic(hub, topic);
}

void rd_hub_unsubscribe(rd_hub *hub, rd_hub_link *link, rd_slice name, bool is_pattern) {
    const rd_hub_topic *topic = rd_hub_find_topic(hub, name, is_pattern);
    rd_hub_interest *found = topic == NULL ? NULL : find_interest(topic, link);
    if (found != NULL) end(hub, found);
}

void rd_hub_end_interests(rd_hub *hub, rd_hub_link *link) {
    while (!rd_list_is_empty(&link->interests)) {
        end(hub, RD_CONTAINER(link->interests.next, rd_hub_interest, in_link));
    }
}

void rd_hub_each_interest(const rd_hub_link *link, rd_history_emit *emit, void *with) {
    for (rd_list *node = link->interests.next; node != &link->interests; node = node->next) {
        const rd_hub_topic *topic = RD_CONTAINER(node, rd_hub_interest, in_link)->topic;
        emit(with, &(rd_relay_frame){.type = RD_RELAY_SUBSCRIBE,
                                     .flags = topic->is_pattern ? RD_RELAY_PATTERN : 0,
                                     .channel = topic->in_map.name});
    }
}

/* The last message that was delivered here; the ids of an engine ascend over all channels. The
 * floor of a copy is none of these ids: it may be a time at which the engine gave none yet. */
static uint64_t last_delivered(const rd_hub *hub) {
    return hub->engine_id != 0 ? hub->engine_id : FROM_NOW;
}

static void send_topics(rd_hub *hub, const rd_list *list) {
    for (rd_list *node = list->next; node != list; node = node->next) {
        const rd_hub_topic *topic = RD_CONTAINER(node, rd_hub_topic, in_all);
        send_to_engine(hub, topic, true, last_delivered(hub));
    }
}

void rd_hub_tell_interests(rd_hub *hub) {
    send_topics(hub, &hub->all_names);
    send_topics(hub, &hub->all_patterns);
}
