/* SPDX-License-Identifier: MIT
 *
 * Subscriptions that another side (an engine, the hub) does not know about yet. This is state, not
 * a queue of messages: there is one entry for each name whose state the other side does not know,
 * and the last change wins. A subscription that comes and goes before it is reported leaves no
 * entry. So there are never more entries than channels that exist here plus channels that the other
 * side still knows, and no entry is ever dropped.
 *
 * No lock of its own: the caller holds the loop lock.
 */
#ifndef RD_PUBSUB_CHANGES_H
#define RD_PUBSUB_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

typedef struct rd_changes {
    rd_map names, patterns;
    rd_list all; /* in the order in which they are reported */
} rd_changes;

typedef struct rd_change {
    rd_map_node in_map;
    rd_list in_all;
    bool is_pattern;
    bool is_wanted;
    uint64_t after; /* whoever notes it may say where the other side goes on; at first 0 */
    char name[];
} rd_change;

void rd_changes_init(rd_changes *changes);
void rd_changes_clear(rd_changes *changes);

/* Drops all entries: the other side has gone, or will be told everything anew. */
void rd_changes_reset(rd_changes *changes);

static inline bool rd_changes_is_empty(const rd_changes *changes) {
    return rd_list_is_empty(&changes->all);
}

/* The name is wanted now, or no longer wanted. Called once for each change of that state. Returns
 * the entry if it is new, valid until it is removed; else NULL. */
rd_change *rd_changes_note(rd_changes *changes, rd_slice name, bool is_pattern, bool is_wanted);

/* Drops the entry of a name whose state the other side learns in another way. */
void rd_changes_forget(rd_changes *changes, rd_slice name, bool is_pattern);

/* Whether the other side does not know the state of the name. */
bool rd_changes_has(const rd_changes *changes, rd_slice name, bool is_pattern);

/* The change to report next, valid until it is removed. NULL: none. */
rd_change *rd_changes_first(const rd_changes *changes);
void rd_changes_remove(rd_changes *changes, rd_change *change);

static inline rd_slice rd_change_name(const rd_change *change) {
    return change->in_map.name;
}

#endif
