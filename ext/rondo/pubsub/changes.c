/* SPDX-License-Identifier: MIT
 *
 * Subscriptions to report; see changes.h. An entry means that the other side believes the opposite,
 * so a second change of the same name cancels the first.
 */
#include "pubsub/changes.h"

#include <string.h>

#include "base/alloc.h"

void rd_changes_init(rd_changes *changes) {
    rd_map_init(&changes->names);
    rd_map_init(&changes->patterns);
    rd_list_init(&changes->all);
}

static rd_map *map_of(rd_changes *changes, bool is_pattern) {
    return is_pattern ? &changes->patterns : &changes->names;
}

void rd_changes_remove(rd_changes *changes, rd_change *change) {
    rd_map_remove(map_of(changes, change->is_pattern), &change->in_map);
    rd_list_unlink(&change->in_all);
    rd_free(change);
}

void rd_changes_reset(rd_changes *changes) {
    for (rd_change *each; (each = rd_changes_first(changes)) != NULL;) {
        rd_changes_remove(changes, each);
    }
}

void rd_changes_clear(rd_changes *changes) {
    rd_changes_reset(changes);
    rd_map_clear(&changes->names);
    rd_map_clear(&changes->patterns);
}

static rd_change *find(const rd_changes *changes, rd_slice name, bool is_pattern) {
    rd_map_node *node = rd_map_find(is_pattern ? &changes->patterns : &changes->names, name);
    return node == NULL ? NULL : RD_CONTAINER(node, rd_change, in_map);
}

bool rd_changes_has(const rd_changes *changes, rd_slice name, bool is_pattern) {
    return find(changes, name, is_pattern) != NULL;
}

static rd_change *add(rd_changes *changes, rd_slice name, bool is_pattern, bool is_wanted) {
    rd_change *added = rd_alloc(sizeof(*added) + name.len);
    *added = (rd_change){.is_pattern = is_pattern, .is_wanted = is_wanted};
    memcpy(added->name, name.ptr, name.len);
    added->in_map.name = rd_slice_of(added->name, name.len);
    rd_map_add(map_of(changes, is_pattern), &added->in_map);
    rd_list_append(&changes->all, &added->in_all);
    return added;
}

rd_change *rd_changes_note(rd_changes *changes, rd_slice name, bool is_pattern, bool is_wanted) {
    rd_change *found = find(changes, name, is_pattern);
    if (found == NULL) return add(changes, name, is_pattern, is_wanted);
    if (found->is_wanted != is_wanted) rd_changes_remove(changes, found);
    return NULL;
}

void rd_changes_forget(rd_changes *changes, rd_slice name, bool is_pattern) {
    rd_change *found = find(changes, name, is_pattern);
    if (found != NULL) rd_changes_remove(changes, found);
}

rd_change *rd_changes_first(const rd_changes *changes) {
    if (rd_changes_is_empty(changes)) return NULL;
    return RD_CONTAINER(changes->all.next, rd_change, in_all);
}
