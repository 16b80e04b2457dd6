/* SPDX-License-Identifier: MIT
 *
 * What the files of a link call of each other: link_send.c sends, link_replays.c has the replays,
 * link.c runs both. Under the loop lock.
 */
#ifndef RD_CLUSTER_LINK_PARTS_H
#define RD_CLUSTER_LINK_PARTS_H

#include "cluster/link.h"

static inline uint8_t rd_link_pattern_flag(bool is_pattern) {
    return is_pattern ? RD_RELAY_PATTERN : 0;
}

/* Returns 1, 0 (no hub, no room) or an error of relay.h. */
int rd_link_send(rd_link *link, const rd_relay_frame *frame);

/* Sends the hub that a name is wanted here, or no more. Keeps the order: once a change waits, all
 * later ones wait. */
void rd_link_note_interest(rd_link *link, rd_slice name, bool is_pattern, bool is_wanted);

void rd_link_replays_init(rd_link *link);

/* The hub has gone: all replays end as a gap. */
void rd_link_replays_end(rd_link *link);

/* Whether a replay of this name was requested and is not answered yet. */
bool rd_link_has_ticket(const rd_link *link, rd_slice name, bool is_pattern);

/* The answer waits for the engine. Returns false for what a hub never sends. */
bool rd_link_answer_waits(rd_link *link, const rd_relay_frame *frame);

/* The three parts of an answer. The first and the last return false for what a hub never sends. */
bool rd_link_answer_begin(rd_link *link, const rd_relay_frame *frame);
void rd_link_answer_take(rd_link *link, const rd_relay_frame *frame);
bool rd_link_answer_end(rd_link *link, const rd_relay_frame *frame);

#endif
