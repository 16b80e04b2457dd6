/* SPDX-License-Identifier: MIT
 *
 * Which link of the hub wants which channel. A topic is a channel or pattern that some link wants.
 * It is freed with its last interest. Under the lock of the hub's loop.
 */
#ifndef RD_PUBSUB_HUB_INTERESTS_H
#define RD_PUBSUB_HUB_INTERESTS_H

#include "pubsub/hub.h"

typedef struct rd_hub_topic {
    rd_map_node in_map;
    rd_list in_all;
    rd_list interests;
    rd_list aside; /* replays that wait for its copy */
    bool is_pattern;
    uint64_t number;    /* no other topic of this hub has it */
    uint32_t asked;     /* the engine for its copy: the number of that engine; 0: none */
    uint64_t loads;     /* copies that have come */
    uint64_t known;     /* the copy has all messages up to this id */
    rd_pattern pattern; /* only used if the topic is a pattern */
    char name[];
} rd_hub_topic;

typedef struct rd_hub_interest {
    rd_list in_topic, in_link;
    rd_hub_topic *topic;
    rd_hub_link *link;
} rd_hub_interest;

/* Returns NULL when no link wants it. */
rd_hub_topic *rd_hub_find_topic(rd_hub *hub, rd_slice name, bool is_pattern);

/* Returns 0, or RD_ERR_CHANNEL_LIMIT. */
int rd_hub_subscribe(rd_hub *hub, rd_hub_link *link, rd_slice name, bool is_pattern);

/* Does nothing if the link does not want it. */
void rd_hub_unsubscribe(rd_hub *hub, rd_hub_link *link, rd_slice name, bool is_pattern);

/* Ends all interests of a link. */
void rd_hub_end_interests(rd_hub *hub, rd_hub_link *link);

/* Reports all topics to a new engine, or to one for which there is a new rule. */
void rd_hub_tell_interests(rd_hub *hub);

#endif
