/* SPDX-License-Identifier: MIT
 *
 * Patterns in groups, and cached matches of names; see patterns.h. A find is a pattern that matches
 * a cached name; it is freed with either.
 */
#include "pubsub/patterns.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

typedef struct rd_pattern_group {
    rd_map_node in_groups;
    rd_list patterns;
    char prefix[];
} group;

typedef struct recent_name {
    rd_map_node in_names;
    rd_list in_recent;
    rd_list finds;
    uint64_t number; /* of the last pattern that was tried */
    char name[];
} recent_name;

typedef struct find {
    rd_list in_name, in_pattern;
    rd_pattern *pattern;
} find;

void rd_patterns_init(rd_patterns *patterns) {
    *patterns = (rd_patterns){.last_number = 0};
    rd_list_init(&patterns->all);
    rd_list_init(&patterns->recent);
    rd_map_init(&patterns->groups);
    rd_map_init(&patterns->names);
    rd_glob_text_init(&patterns->text);
}

/* ---- what is known about names ---- */

static void forget_find(rd_patterns *patterns, find *found) {
    rd_list_unlink(&found->in_name);
    rd_list_unlink(&found->in_pattern);
    rd_free(found);
    patterns->found--;
}

static void forget(rd_patterns *patterns, recent_name *name) {
    while (!rd_list_is_empty(&name->finds)) {
        forget_find(patterns, RD_CONTAINER(name->finds.next, find, in_name));
    }
    rd_map_remove(&patterns->names, &name->in_names);
    rd_list_unlink(&name->in_recent);
    rd_free(name);
}

static recent_name *oldest(const rd_patterns *patterns) {
    return RD_CONTAINER(patterns->recent.next, recent_name, in_recent);
}

/* Drops the names used longest ago, but never the last one used. */
static void keep_limits(rd_patterns *patterns) {
    while (patterns->names.count > RD_PATTERNS_NAMES ||
           (patterns->found > RD_PATTERNS_FOUND && patterns->names.count > 1)) {
        forget(patterns, oldest(patterns));
    }
}

static recent_name *recall(rd_patterns *patterns, rd_slice name) {
    rd_map_node *node = rd_map_find(&patterns->names, name);
    if (node == NULL) return NULL;
    recent_name *found = RD_CONTAINER(node, recent_name, in_names);
    rd_list_unlink(&found->in_recent);
    rd_list_append(&patterns->recent, &found->in_recent);
    return found;
}

static recent_name *get_to_know(rd_patterns *patterns, rd_slice name) {
    recent_name *added = rd_alloc(sizeof(*added) + name.len);
    *added = (recent_name){.number = patterns->last_number};
    memcpy(added->name, name.ptr, name.len);
    added->in_names.name = rd_slice_of(added->name, name.len);
    rd_list_init(&added->finds);
    rd_map_add(&patterns->names, &added->in_names);
    rd_list_append(&patterns->recent, &added->in_recent);
    return added;
}

static void try_pattern(rd_patterns *patterns, recent_name *name, rd_pattern *pattern) {
    patterns->tried++;
    if (pattern->least > name->in_names.name.len) return;
    if (!rd_glob_text_matches(&patterns->text, pattern->text)) return;
    find *added = rd_alloc(sizeof(*added));
    *added = (find){.pattern = pattern};
    rd_list_append(&name->finds, &added->in_name);
    rd_list_append(&pattern->finds, &added->in_pattern);
    patterns->found++;
}

/* ---- groups ---- */

static rd_slice prefix_of(rd_slice text) {
    const size_t literal = rd_glob_literal(text);
    return rd_slice_of(text.ptr, literal < RD_PATTERNS_PREFIX ? literal : RD_PATTERNS_PREFIX);
}

static group *find_group(const rd_patterns *patterns, rd_slice prefix) {
    rd_map_node *node = rd_map_find(&patterns->groups, prefix);
    return node == NULL ? NULL : RD_CONTAINER(node, group, in_groups);
}

static group *add_group(rd_patterns *patterns, rd_slice prefix) {
    group *added = rd_alloc(sizeof(*added) + prefix.len);
    if (prefix.len > 0) memcpy(added->prefix, prefix.ptr, prefix.len);
    added->in_groups.name = rd_slice_of(added->prefix, prefix.len);
    rd_list_init(&added->patterns);
    rd_map_add(&patterns->groups, &added->in_groups);
    patterns->with_prefix[prefix.len]++;
    return added;
}

static void remove_group(rd_patterns *patterns, group *group) {
    patterns->with_prefix[group->in_groups.name.len]--;
    rd_map_remove(&patterns->groups, &group->in_groups);
    rd_free(group);
}

void rd_patterns_add(rd_patterns *patterns, rd_pattern *pattern, rd_slice text) {
    const rd_slice prefix = prefix_of(text);
    *pattern = (rd_pattern){.text = text, .number = ++patterns->last_number};
    pattern->least = rd_glob_least(text);
    rd_list_init(&pattern->finds);
    pattern->group = find_group(patterns, prefix);
    if (pattern->group == NULL) pattern->group = add_group(patterns, prefix);
    rd_list_append(&pattern->group->patterns, &pattern->in_group);
    rd_list_append(&patterns->all, &pattern->in_all);
}

void rd_patterns_remove(rd_patterns *patterns, rd_pattern *pattern) {
    while (!rd_list_is_empty(&pattern->finds)) {
        forget_find(patterns, RD_CONTAINER(pattern->finds.next, find, in_pattern));
    }
    rd_list_unlink(&pattern->in_group);
    rd_list_unlink(&pattern->in_all);
    if (rd_list_is_empty(&pattern->group->patterns)) remove_group(patterns, pattern->group);
    if (!rd_list_is_empty(&patterns->all)) return;
    /* No match is asked for any more. */
    while (!rd_list_is_empty(&patterns->recent)) forget(patterns, oldest(patterns));
}

void rd_patterns_clear(rd_patterns *patterns) {
    assert(rd_list_is_empty(&patterns->all));
    rd_map_clear(&patterns->groups);
    rd_map_clear(&patterns->names);
    rd_glob_text_clear(&patterns->text);
}

/* ---- matching ---- */

static void try_group(rd_patterns *patterns, recent_name *name, const group *group) {
    const rd_list *list = &group->patterns;
    for (rd_list *node = list->next; node != list; node = node->next) {
        try_pattern(patterns, name, RD_CONTAINER(node, rd_pattern, in_group));
    }
}

static recent_name *try_all(rd_patterns *patterns, rd_slice bytes) {
    recent_name *name = get_to_know(patterns, bytes);
    for (size_t len = 0; len <= RD_PATTERNS_PREFIX && len <= bytes.len; len++) {
        if (patterns->with_prefix[len] == 0) continue;
        const group *group = find_group(patterns, rd_slice_of(bytes.ptr, len));
        if (group != NULL) try_group(patterns, name, group);
    }
    return name;
}

/* The newest patterns are at the end of the list. */
static void try_newer(rd_patterns *patterns, recent_name *name) {
    const rd_list *all = &patterns->all;
    for (rd_list *node = all->prev; node != all; node = node->prev) {
        rd_pattern *pattern = RD_CONTAINER(node, rd_pattern, in_all);
        if (pattern->number <= name->number) break;
        try_pattern(patterns, name, pattern);
    }
    name->number = patterns->last_number;
}

void rd_patterns_match(rd_patterns *patterns, rd_slice bytes, rd_pattern_visit *run, void *with) {
    if (rd_list_is_empty(&patterns->all) || rd_channel_is_own(bytes)) return;
    rd_glob_text_set(&patterns->text, bytes);
    recent_name *name = recall(patterns, bytes);
    if (name == NULL) {
        name = try_all(patterns, bytes);
    } else if (name->number < patterns->last_number) {
        try_newer(patterns, name);
    }
    keep_limits(patterns);
    const rd_list *finds = &name->finds;
    for (rd_list *node = finds->next; node != finds; node = node->next) {
        run(with, RD_CONTAINER(node, find, in_name)->pattern);
    }
}
