/* SPDX-License-Identifier: MIT
 *
 * Many patterns, and which of them match a name. Clients choose the patterns, so the cost of a
 * publish must not depend on them:
 *
 * - Patterns are grouped by their literal beginning. A group is skipped if the name does not begin
 *   with it.
 * - Matches are cached for the names that were looked up last. A newer pattern is tried once with
 *   each of these names, when a message is published to the name.
 * - No pattern matches the server's own channels.
 * - Trying a pattern takes steps in proportion to the length of the name, see glob.h.
 *
 * No lock of its own: the caller holds the loop lock.
 */
#ifndef RD_PUBSUB_PATTERNS_H
#define RD_PUBSUB_PATTERNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "pubsub/glob.h"

enum {
    RD_PATTERNS_NAMES = 1024,  /* names whose matches are cached */
    RD_PATTERNS_FOUND = 65536, /* matches of all these names */
    RD_PATTERNS_PREFIX = 16    /* longest literal beginning of a group, in bytes */
};

/* Names of the server's own channels begin so. They have a secret part, which nobody learns by a
 * pattern. See docs/decisions/0050-channels-of-the-server.md. */
#define RD_CHANNEL_OWN "\0rondo"

static inline bool rd_channel_is_own(rd_slice name) {
    return rd_slice_starts_with(name, RD_SLICE(RD_CHANNEL_OWN));
}

typedef struct rd_patterns {
    rd_list all; /* in the order in which they came */
    rd_map groups;
    uint32_t with_prefix[RD_PATTERNS_PREFIX + 1]; /* groups by the length of their beginning */
    uint64_t last_number;
    rd_map names;   /* cached names */
    rd_list recent; /* the same, by last use */
    uint32_t found; /* cached matches */
    rd_glob_text text;
    uint64_t tried; /* patterns that were compared with a name, for tests */
} rd_patterns;

/* Embedded in the owner of the pattern. */
typedef struct rd_pattern {
    rd_list in_all, in_group;
    rd_list finds;   /* names that it is known to match */
    rd_slice text;   /* the owner's bytes */
    uint64_t number; /* ascends with each new pattern */
    size_t least;    /* least number of bytes of a matching name */
    struct rd_pattern_group *group;
} rd_pattern;

void rd_patterns_init(rd_patterns *patterns);

/* The caller has removed all patterns. */
void rd_patterns_clear(rd_patterns *patterns);

void rd_patterns_add(rd_patterns *patterns, rd_pattern *pattern, rd_slice text);
void rd_patterns_remove(rd_patterns *patterns, rd_pattern *pattern);

/* Calls `run` for each pattern that matches, in no order. `run` must not change patterns. */
typedef void rd_pattern_visit(void *with, rd_pattern *pattern);
void rd_patterns_match(rd_patterns *patterns, rd_slice bytes, rd_pattern_visit *run, void *with);

#endif
