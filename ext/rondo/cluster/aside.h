/* SPDX-License-Identifier: MIT
 *
 * Channels for which the hub waits for the engine. The replays that were requested before the hub
 * said so are set aside: their answers come out of order. All later ones of the channel follow:
 * they are not requested before those are answered, because those bring the copy. Then they return
 * to their lines. Part of the link (cluster/link.h), under the loop lock.
 */
#ifndef RD_CLUSTER_ASIDE_H
#define RD_CLUSTER_ASIDE_H

#include <stdbool.h>

#include "base/list.h"
#include "base/map.h"

typedef struct rd_aside_channel {
    rd_map_node in_map;
    rd_list in_all;
    rd_list aside;     /* replays, in the order of their requests */
    rd_list followers; /* replays */
    char name[];
} rd_aside_channel;

typedef struct rd_aside {
    rd_map channels;
    rd_list all;       /* of them */
    rd_list returning; /* replays that go back to their lines */
    uint32_t count;    /* replays that are set aside */
    uint32_t gone;     /* of them, those whose clients have gone */
} rd_aside;

void rd_aside_init(rd_aside *aside);

/* No channel is there any more. */
void rd_aside_clear(rd_aside *aside);

/* Returns NULL when none of its replays is set aside. */
static inline rd_aside_channel *rd_aside_find(const rd_aside *aside, rd_slice name) {
    if (aside->count == 0) return NULL;
    rd_map_node *node = rd_map_find(&aside->channels, name);
    return node == NULL ? NULL : RD_CONTAINER(node, rd_aside_channel, in_map);
}

/* Sets a replay aside, which is in no list. Returns its channel. */
rd_aside_channel *rd_aside_add(rd_aside *aside, rd_slice name, rd_list *node);

/* A replay that was set aside is over. After the last one of a channel all its followers return. */
void rd_aside_remove(rd_aside *aside, rd_aside_channel *channel, rd_list *node);

#endif
