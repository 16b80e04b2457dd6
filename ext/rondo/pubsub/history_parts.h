/* SPDX-License-Identifier: MIT
 *
 * The parts of a history. Shared by history.c, which keeps messages, and history_replay.c, which
 * replays them. Under its owner's loop lock.
 */
#ifndef RD_PUBSUB_HISTORY_PARTS_H
#define RD_PUBSUB_HISTORY_PARTS_H

#include "pubsub/history.h"

typedef struct rd_history_rule {
    rd_list in_rules;
    bool is_pattern;
    uint32_t number; /* never used again */
    rd_relay_terms terms;
    uint64_t floor; /* the rule has not seen messages up to this id */
    size_t name_len;
    char name[];
} rd_history_rule;

typedef struct rd_history_record {
    rd_map_node in_names;
    rd_list in_records;
    rd_list entries;
    const rd_history_rule *rule;
    uint32_t count;
    size_t bytes; /* of payloads */
    uint64_t floor, last_id;
    uint64_t asked; /* the last replay that matched this channel with its pattern */
    bool is_match;
    bool is_loaded; /* a copy of what an engine keeps; stays without messages, too */
    char name[];
} rd_history_record;

typedef struct rd_history_entry {
    rd_list in_record, in_all;
    rd_history_record *record;
    rd_message *message;
    uint64_t added_ms;
} rd_history_entry;

rd_history_rule *rd_history_find_rule(const rd_history *history, rd_slice name, bool is_pattern);

/* The rule that applies to a channel; NULL: none. */
const rd_history_rule *rd_history_rule_for(const rd_history *history, rd_slice channel);

rd_history_record *rd_history_find_record(const rd_history *history, rd_slice channel);

/* Drops what is too old. Returns false when nothing is left; the record is gone then, too. */
bool rd_history_expire_record(rd_history *history, rd_history_record *record, uint64_t now_ms);

#endif
