/* SPDX-License-Identifier: MIT
 *
 * Many patterns, and which of them match a name. Whoever subscribes chooses the patterns, so what a
 * publish costs must not depend on them:
 *
 * - Patterns stand in groups by their literal beginning: a group that the name does not begin with
 *   is not looked at.
 * - What was found out about a name is kept, for the names that were asked for last. A pattern that
 *   comes later is tried once with each of them, when it is published to.
 * - A pattern that is tried takes steps in proportion to the name, see glob.h.
 *
 * No lock of its own: the caller holds the loop lock.
 */
#ifndef RD_PUBSUB_PATTERNS_H
#define RD_PUBSUB_PATTERNS_H

#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "pubsub/glob.h"

enum {
    RD_PATTERNS_NAMES = 1024,  /* names whose matches are kept */
    RD_PATTERNS_FOUND = 65536, /* matches of all of these */
    RD_PATTERNS_PREFIX = 16    /* bytes of a literal beginning that groups go by */
};

typedef struct rd_patterns {
    rd_list all; /* in the order in which they came */
    rd_map groups;
    uint32_t with_prefix[RD_PATTERNS_PREFIX + 1]; /* groups by the length of their beginning */
    uint64_t last_number;
    rd_map names;   /* what was found out */
    rd_list recent; /* the same, by last use */
    uint32_t found; /* matches in it */
    rd_glob_text text;
    uint64_t tried; /* patterns that were compared with a name, for tests */
} rd_patterns;

/* Lies inside of whoever has the pattern. */
typedef struct rd_pattern {
    rd_list in_all, in_group;
    rd_list finds;   /* names it is known to match */
    rd_slice text;   /* the owner's */
    uint64_t number; /* of its coming */
    size_t least;    /* bytes of a name that it can match */
    struct rd_pattern_group *group;
} rd_pattern;

void rd_patterns_init(rd_patterns *patterns);

/* The patterns must be out of it. */
void rd_patterns_clear(rd_patterns *patterns);

void rd_patterns_add(rd_patterns *patterns, rd_pattern *pattern, rd_slice text);
void rd_patterns_remove(rd_patterns *patterns, rd_pattern *pattern);

/* Names each pattern that matches, in no order. `run` changes no pattern. */
typedef void rd_pattern_visit(void *with, rd_pattern *pattern);
void rd_patterns_match(rd_patterns *patterns, rd_slice bytes, rd_pattern_visit *run, void *with);

#endif
