/* SPDX-License-Identifier: MIT
 *
 * Waiting lines that share one resource fairly (start-time fair queueing). Each client is hashed to
 * one of a fixed number of lines. The line that has been served least is next, so a client that
 * takes much delays itself, not others. A line that was empty starts level with the others: it has
 * no claim to what it did not use.
 *
 * The hash has a random key, so a client cannot choose whose line it joins.
 */
#ifndef RD_CLUSTER_FAIR_LINES_H
#define RD_CLUSTER_FAIR_LINES_H

#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"

enum { RD_FAIR_LINES = 256 };

typedef struct rd_fair_line {
    rd_list waiting;
    uint64_t served; /* bytes */
} rd_fair_line;

typedef struct rd_fair_lines {
    rd_hash_key key;
    uint64_t floor; /* what the line that was picked last had been served */
    rd_fair_line lines[RD_FAIR_LINES];
} rd_fair_lines;

void rd_fair_lines_init(rd_fair_lines *lines);

/* Adds `node` to the end of the line of `who`. Returns the line. */
rd_fair_line *rd_fair_lines_add(rd_fair_lines *lines, rd_slice who, rd_list *node);

/* The line that is next; NULL: all lines are empty. */
rd_fair_line *rd_fair_lines_next(rd_fair_lines *lines);

static inline void rd_fair_line_charge(rd_fair_line *line, uint64_t bytes) {
    line->served += bytes;
}

#endif
