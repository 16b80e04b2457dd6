/* SPDX-License-Identifier: MIT
 *
 * What a history consists of. Shared by history.c, which keeps it, and history_replay.c, which
 * hands it out. Under its owner's loop lock.
 */
#ifndef RD_PUBSUB_HISTORY_PARTS_H
#define RD_PUBSUB_HISTORY_PARTS_H

#include "pubsub/history.h"

typedef struct rd_history_rule {
    rd_list in_rules;
    bool is_pattern;
    uint32_t size;
    uint64_t ttl_ms;
    uint64_t floor; /* what was published up to this id, it has not seen */
    size_t name_len;
    char name[];
} rd_history_rule;

typedef struct rd_history_record {
    rd_map_node in_names;
    rd_list in_records;
    rd_list entries;
    const rd_history_rule *rule;
    uint32_t count;
    uint64_t floor, last_id;
    uint64_t asked; /* the replay that has found out whether its pattern matches */
    bool is_match;
    char name[];
} rd_history_record;

typedef struct rd_history_entry {
    rd_list in_record, in_all;
    rd_history_record *record;
    rd_message *message;
    uint64_t added_ms;
} rd_history_entry;

rd_history_rule *rd_history_find_rule(const rd_history *history, rd_slice name, bool is_pattern);

/* The rule that counts for a channel; NULL: none. */
const rd_history_rule *rd_history_rule_for(const rd_history *history, rd_slice channel);

rd_history_record *rd_history_find_record(const rd_history *history, rd_slice channel);

/* Drops what is too old; false when nothing is left and the record with it. */
bool rd_history_expire_record(rd_history *history, rd_history_record *record, uint64_t now_ms);

#endif
