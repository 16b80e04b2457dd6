/* SPDX-License-Identifier: MIT
 *
 * Replays of a history; see history.h. Looks for the newest messages first, because a replay is
 * limited: in bytes, by what the client can take, and in work, because a client's pattern could
 * take very long.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "pubsub/glob.h"
#include "pubsub/history_parts.h"
#include "pubsub/patterns.h"

enum {
    LOOKS_MAX = 1 << 12, /* messages, or channels, that a pattern is compared with */
    STEPS_MAX = 1 << 19  /* steps of matching, see glob.h; reached first by patterns with ? [ \, or
                          * with bytes between two * and names of more than 120 bytes */
};

typedef struct replay {
    rd_message **messages;
    size_t count, capacity;
    size_t bytes, bytes_max;
    uint64_t since, floor;
    uint64_t now_ms;
    bool is_kept;
    bool is_cut; /* there is more than the limits allow */
} replay;

static uint64_t higher(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* A single message may be longer than the limit. */
static bool has_room(const replay *self, const rd_message *message) {
    const size_t bytes = (size_t)message->channel_len + message->payload_len;
    return self->count == 0 || (bytes <= self->bytes_max && self->bytes <= self->bytes_max - bytes);
}

/* Returns false when the search is over. */
static bool add(replay *self, rd_message *message) {
    if (message->id <= self->since) return false;
    if (!has_room(self, message)) {
        self->is_cut = true;
        return false;
    }
    if (self->count == self->capacity) {
        self->capacity = self->capacity ? self->capacity * 2 : 16;
        self->messages = rd_realloc(self->messages, self->capacity * sizeof(rd_message *));
    }
    self->messages[self->count++] = rd_message_ref(message);
    self->bytes += (size_t)message->channel_len + message->payload_len;
    return true;
}

/* ---- a channel ---- */

static void collect_channel(rd_history *history, replay *self, rd_slice name) {
    rd_history_record *record = rd_history_find_record(history, name);
    if (record == NULL || !rd_history_expire_record(history, record, self->now_ms)) {
        const rd_history_rule *rule = rd_history_rule_for(history, name);
        self->is_kept = rule != NULL;
        self->floor = rule == NULL ? 0 : higher(rule->floor, history->forgotten);
        return;
    }
    self->is_kept = true;
    self->floor = record->floor;
    const rd_list *list = &record->entries;
    for (rd_list *node = list->prev; node != list; node = node->prev) {
        if (!add(self, RD_CONTAINER(node, rd_history_entry, in_record)->message)) return;
    }
}

/* ---- a pattern ---- */

static bool is_match(rd_history *history, rd_glob_text *text, rd_slice pattern,
                     rd_history_record *record) {
    if (record->asked == history->replays) return record->is_match;
    record->asked = history->replays;
    record->is_match = false;
    if (rd_channel_is_own(record->in_names.name)) return false;
    rd_glob_text_set(text, record->in_names.name);
    record->is_match = rd_glob_text_matches(text, pattern);
    return record->is_match;
}

static bool is_too_old(const replay *self, const rd_history_entry *entry) {
    const uint64_t ttl_ms = entry->record->rule->terms.ttl_ms;
    return ttl_ms != 0 && self->now_ms - entry->added_ms >= ttl_ms;
}

/* Takes one entry of all channels. Returns false when the search is over. */
static bool take_entry(replay *self, const rd_history_entry *entry) {
    self->is_kept = true;
    self->floor = higher(self->floor, entry->record->floor);
    if (!is_too_old(self, entry)) return add(self, entry->message);
    self->floor = higher(self->floor, entry->message->id);
    return true;
}

static void collect_newest(rd_history *history, replay *self, rd_glob_text *text,
                           rd_slice pattern) {
    const rd_list *list = &history->entries;
    int looks = LOOKS_MAX;
    for (rd_list *node = list->prev; node != list; node = node->prev) {
        const rd_history_entry *entry = RD_CONTAINER(node, rd_history_entry, in_all);
        if (entry->message->id <= self->since) return;
        self->is_cut = looks-- == 0 || text->steps > STEPS_MAX;
        if (self->is_cut) return;
        if (!is_match(history, text, pattern, entry->record)) continue;
        if (!take_entry(self, entry)) return;
    }
}

/* Finds out whether any channel that the pattern matches is kept. */
static void look_for_any(rd_history *history, replay *self, rd_glob_text *text, rd_slice pattern) {
    const rd_list *list = &history->records;
    int looks = LOOKS_MAX;
    for (rd_list *node = list->next; node != list && !self->is_kept; node = node->next) {
        if (looks-- == 0 || text->steps > STEPS_MAX) return;
        rd_history_record *record = RD_CONTAINER(node, rd_history_record, in_records);
        self->is_kept = is_match(history, text, pattern, record);
    }
}

static void collect_pattern(rd_history *history, replay *self, rd_slice pattern) {
    rd_glob_text text;
    const rd_history_rule *own = rd_history_find_rule(history, pattern, true);
    self->is_kept = own != NULL;
    self->floor = higher(own == NULL ? 0 : own->floor, history->forgotten);
    history->replays++;
    rd_glob_text_init(&text);
    collect_newest(history, self, &text, pattern);
    look_for_any(history, self, &text, pattern);
    rd_glob_text_clear(&text);
}

/* ---- both ---- */

static int by_id(const void *left, const void *right) {
    const rd_message *a = *(rd_message *const *)left, *b = *(rd_message *const *)right;
    return a->id < b->id ? -1 : a->id > b->id;
}

rd_replay rd_history_replay(rd_history *history, const rd_history_wish *wish, rd_history_visit *run,
                            void *with) {
    replay self = {.since = wish->since, .bytes_max = wish->bytes_max, .now_ms = wish->now_ms};
    if (wish->is_pattern) {
        collect_pattern(history, &self, wish->name);
    } else {
        collect_channel(history, &self, wish->name);
    }
    if (!self.is_kept) return self.is_cut ? RD_REPLAY_GAP : RD_REPLAY_NONE;
    if (wish->since > history->last_id) return RD_REPLAY_UNKNOWN; /* nothing was collected */
    if (self.count > 1) qsort(self.messages, self.count, sizeof(rd_message *), by_id);
    for (size_t i = 0; i < self.count; i++) {
        run(with, self.messages[i]);
        rd_message_unref(self.messages[i]);
    }
    rd_free(self.messages);
    if (self.is_cut) return RD_REPLAY_GAP;
    return wish->since != 0 && wish->since < self.floor ? RD_REPLAY_GAP : RD_REPLAY_WHOLE;
}
