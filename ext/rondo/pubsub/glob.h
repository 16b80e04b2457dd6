/* SPDX-License-Identifier: MIT
 *
 * The patterns of channel names, as Redis has them (PSUBSCRIBE), over bytes:
 *
 *   *      any bytes, or none           [abc]  one of these; [a-z] a range, in either direction
 *   ?      any byte                     [^a-z] a byte that is not one of these
 *   \x     the byte x, in a class too
 *
 * The first ] ends a class; an unclosed class ends with the pattern. A \ at the end stands for
 * itself. Every pattern is valid.
 *
 * Takes at most one step for each byte of the pattern and each 64 bytes of the text. A pattern of
 * bytes and * alone takes at most one for each byte of the text and each group of bytes between two
 * *, because a hostile text makes the search compare at each byte. Any thread, with a text of its
 * own.
 */
#ifndef RD_PUBSUB_GLOB_H
#define RD_PUBSUB_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Most bytes of a pattern that a client may subscribe to. */
#define RD_GLOB_MAX 255

/* A text that is matched with many patterns: where each byte stands in it. */
typedef struct rd_glob_text {
    rd_slice text;   /* owned by the caller, valid while it is matched */
    size_t words;    /* of 64 places: before each byte, and the end */
    uint64_t *below; /* for each byte value, the places of all lower ones */
    size_t capacity; /* of `below`, words */
    uint64_t steps;  /* taken so far */
    bool is_indexed; /* `below` is about this text */
} rd_glob_text;

void rd_glob_text_init(rd_glob_text *text);
void rd_glob_text_clear(rd_glob_text *text);

/* Costs nothing until a pattern needs more than its literal beginning. */
void rd_glob_text_set(rd_glob_text *text, rd_slice bytes);
bool rd_glob_text_matches(rd_glob_text *text, rd_slice pattern);

/* Matches one text with one pattern. */
bool rd_glob_matches(rd_slice pattern, rd_slice text);

/* How many bytes at the beginning of a pattern stand for themselves. */
size_t rd_glob_literal(rd_slice pattern);

/* The least number of bytes that a matching text has. */
size_t rd_glob_least(rd_slice pattern);

#endif
