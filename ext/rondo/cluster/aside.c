/* SPDX-License-Identifier: MIT
 *
 * Channels whose replays wait for the engine; see aside.h.
 */
#include "cluster/aside.h"

#include <string.h>

#include "base/alloc.h"

void rd_aside_init(rd_aside *aside) {
    rd_map_init(&aside->channels);
    rd_list_init(&aside->all);
    rd_list_init(&aside->returning);
    aside->count = aside->gone = 0;
}

void rd_aside_clear(rd_aside *aside) {
    rd_map_clear(&aside->channels);
}

static rd_aside_channel *add_channel(rd_aside *aside, rd_slice name) {
    rd_aside_channel *added = rd_alloc(sizeof(*added) + name.len);
    memcpy(added->name, name.ptr, name.len);
    added->in_map.name = rd_slice_of(added->name, name.len);
    rd_list_init(&added->aside);
    rd_list_init(&added->followers);
    rd_map_add(&aside->channels, &added->in_map);
    rd_list_append(&aside->all, &added->in_all);
    return added;
}

rd_aside_channel *rd_aside_add(rd_aside *aside, rd_slice name, rd_list *node) {
    rd_aside_channel *channel = rd_aside_find(aside, name);
    if (channel == NULL) channel = add_channel(aside, name);
    rd_list_append(&channel->aside, node);
    aside->count++;
    return channel;
}

static void return_all(rd_aside *aside, rd_list *followers) {
    rd_list *to = &aside->returning;
    if (rd_list_is_empty(followers)) return;
    followers->next->prev = to->prev;
    to->prev->next = followers->next;
    followers->prev->next = to;
    to->prev = followers->prev;
    rd_list_init(followers);
}

void rd_aside_remove(rd_aside *aside, rd_aside_channel *channel, rd_list *node) {
    rd_list_unlink(node);
    aside->count--;
    if (!rd_list_is_empty(&channel->aside)) return;
    return_all(aside, &channel->followers);
    rd_map_remove(&aside->channels, &channel->in_map);
    rd_list_unlink(&channel->in_all);
    rd_free(channel);
}
