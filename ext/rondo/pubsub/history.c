/* SPDX-License-Identifier: MIT
 *
 * The history of channels; see history.h. A record holds the messages of one channel and exists
 * while it has any. Its floor is the id up to which messages of this channel may be missing.
 */
#include "pubsub/history.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "pubsub/channel.h"
#include "pubsub/glob.h"
#include "pubsub/history_parts.h"

#define ID_MAX (UINT64_MAX >> 1) /* leaves room for the next one */

typedef rd_history_rule rule;
typedef rd_history_record record;
typedef rd_history_entry entry;

static uint64_t higher(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static rd_slice rule_name(const rule *rule) {
    return rd_slice_of(rule->name, rule->name_len);
}

static record *record_at(const rd_list *node) {
    return RD_CONTAINER(node, record, in_records);
}

static size_t bytes_of(const rd_message *message) {
    return sizeof(entry) + sizeof(*message) + message->channel_len + message->payload_len;
}

void rd_history_init(rd_history *history, rd_history_limits limits, uint64_t wall_us) {
    *history = (rd_history){.limits = limits, .last_id = wall_us, .forgotten = wall_us};
    rd_list_init(&history->rules);
    rd_list_init(&history->records);
    rd_list_init(&history->entries);
    rd_map_init(&history->names);
}

/* --- records and their entries --- */

static void remove_record(rd_history *history, record *record) {
    history->forgotten = higher(history->forgotten, record->floor);
    rd_map_remove(&history->names, &record->in_names);
    rd_list_unlink(&record->in_records);
    rd_free(record);
}

/* Frees the record with its last entry. */
static void drop(rd_history *history, entry *entry) {
    record *record = entry->record;
    record->floor = higher(record->floor, entry->message->id);
    rd_list_unlink(&entry->in_record);
    rd_list_unlink(&entry->in_all);
    history->bytes -= bytes_of(entry->message);
    record->bytes -= entry->message->payload_len;
    history->count--;
    rd_message_unref(entry->message);
    rd_free(entry);
    if (--record->count == 0 && !record->is_loaded) remove_record(history, record);
}

static void drop_oldest_of(rd_history *history, const record *record) {
    drop(history, RD_CONTAINER(record->entries.next, entry, in_record));
}

bool rd_history_expire_record(rd_history *history, record *record, uint64_t now_ms) {
    const uint64_t ttl_ms = record->rule->terms.ttl_ms;
    const bool stays = record->is_loaded;
    if (ttl_ms == 0) return true;
    for (uint32_t left = record->count; left > 0; left--) {
        const entry *oldest = RD_CONTAINER(record->entries.next, entry, in_record);
        if (now_ms - oldest->added_ms < ttl_ms) return true;
        drop_oldest_of(history, record);
    }
    return stays;
}

void rd_history_expire(rd_history *history, uint64_t now_ms) {
    rd_list *node = history->records.next;
    while (node != &history->records) {
        rd_list *next = node->next;
        (void)rd_history_expire_record(history, record_at(node), now_ms);
        node = next;
    }
}

void rd_history_clear(rd_history *history) {
    while (!rd_list_is_empty(&history->entries)) {
        drop(history, RD_CONTAINER(history->entries.next, entry, in_all));
    }
    while (!rd_list_is_empty(&history->records)) { /* copies without messages */
        remove_record(history, record_at(history->records.next));
    }
    rd_list *node;
    while ((node = rd_list_shift(&history->rules)) != NULL) {
        rd_free(RD_CONTAINER(node, rule, in_rules));
    }
    rd_map_clear(&history->names);
}

/* --- rules --- */

rule *rd_history_find_rule(const rd_history *history, rd_slice name, bool is_pattern) {
    for (rd_list *node = history->rules.next; node != &history->rules; node = node->next) {
        rule *found = RD_CONTAINER(node, rule, in_rules);
        if (found->is_pattern == is_pattern && rd_slice_equal(rule_name(found), name)) {
            return found;
        }
    }
    return NULL;
}

/* The server's own channels are kept by rules of the server alone, not by an application's "*". */
static bool covers(const rule *found, rd_slice channel) {
    if (!found->is_pattern) return false;
    if (rd_channel_is_own(channel) && !rd_channel_is_own(rule_name(found))) return false;
    return rd_glob_matches(rule_name(found), channel);
}

const rule *rd_history_rule_for(const rd_history *history, rd_slice channel) {
    if (rd_channel_is_private(channel)) return NULL;
    const rule *own = rd_history_find_rule(history, channel, false);
    if (own != NULL) return own;
    for (rd_list *node = history->rules.next; node != &history->rules; node = node->next) {
        const rule *found = RD_CONTAINER(node, rule, in_rules);
        if (covers(found, channel)) return found;
    }
    return NULL;
}

/* Drops what the rule does not keep; of its bytes the newest message may have more. */
static void drop_excess(rd_history *history, record *record, const rd_relay_terms *terms) {
    const uint64_t bytes = terms->bytes == 0 ? UINT64_MAX : terms->bytes;
    for (uint32_t count = record->count;
         count > terms->size || (count > 1 && record->bytes > bytes); count--) {
        drop_oldest_of(history, record);
    }
}

static void apply_rule(rd_history *history, record *record) {
    record->rule = rd_history_rule_for(history, record->in_names.name);
    if (record->rule == NULL) record->is_loaded = false;
    if (record->count == 0 && !record->is_loaded) {
        remove_record(history, record);
        return;
    }
    static const rd_relay_terms none = {0};
    drop_excess(history, record, record->rule == NULL ? &none : &record->rule->terms);
}

static void apply_rules(rd_history *history) {
    rd_list *node = history->records.next;
    while (node != &history->records) {
        rd_list *next = node->next;
        apply_rule(history, record_at(node));
        node = next;
    }
}

static rule *add_rule(rd_history *history, rd_slice name, bool is_pattern) {
    rule *added = rd_alloc(sizeof(*added) + name.len);
    *added = (rule){.is_pattern = is_pattern,
                    .number = ++history->rule_count,
                    .floor = history->last_id,
                    .name_len = name.len};
    memcpy(added->name, name.ptr, name.len);
    rd_list_insert_before(history->rules.next, &added->in_rules);
    return added;
}

int rd_history_keep(rd_history *history, rd_slice name, bool is_pattern, rd_relay_terms terms) {
    if (name.len == 0 || name.len > RD_CHANNEL_NAME_MAX) return RD_ERR_CHANNEL_NAME;
    rule *changed = rd_history_find_rule(history, name, is_pattern);
    if (terms.size == 0) {
        if (changed == NULL) return 0;
        rd_list_unlink(&changed->in_rules);
        apply_rules(history);
        rd_free(changed);
        return 0;
    }
    if (changed == NULL) changed = add_rule(history, name, is_pattern);
    changed->terms = terms;
    apply_rules(history);
    return 0;
}

bool rd_history_has_rule(const rd_history *history, rd_slice name, bool is_pattern,
                         rd_relay_terms terms) {
    const rule *found = rd_history_find_rule(history, name, is_pattern);
    if (found == NULL || terms.size == 0) return found == NULL && terms.size == 0;
    return found->terms.size == terms.size && found->terms.ttl_ms == terms.ttl_ms &&
           found->terms.bytes == terms.bytes;
}

/* --- adding --- */

uint64_t rd_history_next_id(rd_history *history, uint64_t wall_us) {
    history->last_id = higher(history->last_id + 1, wall_us);
    return history->last_id;
}

record *rd_history_find_record(const rd_history *history, rd_slice channel) {
    rd_map_node *node = rd_map_find(&history->names, channel);
    return node == NULL ? NULL : RD_CONTAINER(node, record, in_names);
}

bool rd_history_wants(const rd_history *history, rd_slice channel) {
    return rd_history_find_record(history, channel) != NULL ||
           rd_history_rule_for(history, channel) != NULL;
}

static record *add_record(rd_history *history, rd_slice channel, const rule *rule, uint64_t floor) {
    record *added = rd_alloc(sizeof(*added) + channel.len);
    *added = (record){.rule = rule, .floor = floor};
    memcpy(added->name, channel.ptr, channel.len);
    added->in_names.name = rd_slice_of(added->name, channel.len);
    rd_list_init(&added->entries);
    rd_map_add(&history->names, &added->in_names);
    rd_list_append(&history->records, &added->in_records);
    return added;
}

static void add_entry(rd_history *history, record *record, rd_message *message, uint64_t now_ms) {
    entry *added = rd_alloc(sizeof(*added));
    *added = (entry){.record = record, .added_ms = now_ms};
    added->message = rd_message_ref(message);
    rd_list_append(&record->entries, &added->in_record);
    rd_list_append(&history->entries, &added->in_all);
    record->last_id = message->id;
    record->count++;
    history->count++;
    history->bytes += bytes_of(message);
    record->bytes += message->payload_len;
    drop_excess(history, record, &record->rule->terms);
    while (history->count > history->limits.messages || history->bytes > history->limits.bytes) {
        drop(history, RD_CONTAINER(history->entries.next, entry, in_all));
    }
}

/* Skips a message that alone is larger than the limits of all. It counts as dropped. */
static bool pass_over(rd_history *history, record *record, uint64_t id) {
    if (record == NULL) {
        history->forgotten = higher(history->forgotten, id);
    } else {
        record->floor = record->last_id = id;
    }
    return false;
}

bool rd_history_add(rd_history *history, rd_message *message, uint64_t now_ms) {
    const rd_slice channel = rd_message_channel(message);
    if (message->id == 0 || message->id > ID_MAX) return false;
    if (channel.len == 0 || channel.len > RD_CHANNEL_NAME_MAX) return false;
    history->last_id = higher(history->last_id, message->id);
    record *record = rd_history_find_record(history, channel);
    if (record != NULL && !rd_history_expire_record(history, record, now_ms)) record = NULL;
    if (record != NULL && message->id <= record->last_id) return false;
    const rule *rule = record != NULL ? record->rule : rd_history_rule_for(history, channel);
    if (rule == NULL) return false;
    const uint64_t floor = higher(rule->floor, history->forgotten);
    if (record == NULL && message->id <= floor) return false;
    if (history->limits.messages == 0 || bytes_of(message) > history->limits.bytes) {
        return pass_over(history, record, message->id);
    }
    if (record == NULL) record = add_record(history, channel, rule, floor);
    add_entry(history, record, message, now_ms);
    return true;
}

/* --- copies of what an engine keeps --- */

void rd_history_load(rd_history *history, rd_slice channel, uint64_t floor) {
    rd_history_forget(history, channel);
    const rule *rule = rd_history_rule_for(history, channel);
    if (rule == NULL) return;
    record *added = add_record(history, channel, rule, floor);
    added->is_loaded = true;
    added->last_id = floor;
    history->last_id = higher(history->last_id, floor);
}

bool rd_history_is_loaded(const rd_history *history, rd_slice channel) {
    const record *found = rd_history_find_record(history, channel);
    return found != NULL && found->is_loaded;
}

/* The engine has the messages still, so they do not count as forgotten. */
void rd_history_forget(rd_history *history, rd_slice channel) {
    record *found = rd_history_find_record(history, channel);
    const uint64_t forgotten = history->forgotten;
    if (found == NULL) return;
    found->is_loaded = true;
    while (found->count > 0) drop_oldest_of(history, found);
    remove_record(history, found);
    history->forgotten = forgotten;
}

void rd_history_lose(rd_history *history, rd_slice channel, uint64_t floor) {
    record *found = rd_history_find_record(history, channel);
    if (found != NULL) found->floor = higher(found->floor, floor);
}

uint64_t rd_history_last_of(const rd_history *history, rd_slice channel) {
    const record *found = rd_history_find_record(history, channel);
    return found == NULL ? 0 : found->last_id;
}

/* --- for the process that goes on --- */

static void each_rule(const rd_history *history, bool numbered, rd_history_emit *emit, void *with) {
    const rd_list *rules = &history->rules;
    for (rd_list *node = rules->prev; node != rules; node = node->prev) {
        const rule *rule = RD_CONTAINER(node, struct rd_history_rule, in_rules);
        char terms[RD_RELAY_TERMS_BYTES];
        emit(with, &(rd_relay_frame){.type = RD_RELAY_KEEP,
                                     .flags = rule->is_pattern ? RD_RELAY_PATTERN : 0,
                                     .id = numbered ? rule->number : rule->floor,
                                     .channel = rule_name(rule),
                                     .payload = rd_relay_put_terms(terms, &rule->terms)});
    }
}

void rd_history_each_rule(const rd_history *history, rd_history_emit *emit, void *with) {
    each_rule(history, false, emit, with);
}

void rd_history_number_rules(const rd_history *history, rd_history_emit *emit, void *with) {
    each_rule(history, true, emit, with);
}

uint32_t rd_history_rule_number(const rd_history *history, rd_slice channel) {
    const rule *found = rd_history_rule_for(history, channel);
    return found == NULL ? 0 : found->number;
}

static void save_entry(const entry *entry, rd_history_emit *emit, void *with) {
    const rd_message *message = entry->message;
    emit(with, &(rd_relay_frame){.type = RD_RELAY_SAVED_TIME, .id = entry->added_ms});
    emit(with, &(rd_relay_frame){.type = RD_RELAY_PUBLISH,
                                 .flags = message->is_text ? RD_RELAY_TEXT : 0,
                                 .id = message->id,
                                 .channel = rd_message_channel(message),
                                 .payload = rd_message_payload(message)});
}

/* Floors go last, because restoring a message would move them. */
void rd_history_save(const rd_history *history, rd_history_emit *emit, void *with) {
    rd_history_each_rule(history, emit, with);
    const rd_list *entries = &history->entries, *records = &history->records;
    for (rd_list *node = entries->next; node != entries; node = node->next) {
        save_entry(RD_CONTAINER(node, entry, in_all), emit, with);
    }
    for (rd_list *node = records->next; node != records; node = node->next) {
        const record *record = record_at(node);
        emit(with, &(rd_relay_frame){.type = RD_RELAY_SAVED_FLOOR,
                                     .id = record->floor,
                                     .channel = record->in_names.name});
    }
    char forgotten[8];
    rd_relay_put_number(forgotten, 8, history->forgotten);
    emit(with, &(rd_relay_frame){.type = RD_RELAY_SAVED_IDS,
                                 .id = history->last_id,
                                 .payload = rd_slice_of(forgotten, sizeof(forgotten))});
}

static void restore_rule(rd_history *history, const rd_relay_frame *frame) {
    const bool is_pattern = (frame->flags & RD_RELAY_PATTERN) != 0;
    rd_history_keep(history, frame->channel, is_pattern, rd_relay_get_terms(frame));
    rule *restored = rd_history_find_rule(history, frame->channel, is_pattern);
    if (restored != NULL) restored->floor = frame->id;
}

/* Ignores the floor, unlike a new message: this one was kept already, perhaps by another rule. */
static void restore_message(rd_history *history, const rd_relay_frame *frame) {
    record *record = rd_history_find_record(history, frame->channel);
    const rule *rule = record != NULL ? record->rule : rd_history_rule_for(history, frame->channel);
    if (rule == NULL || (record != NULL && frame->id <= record->last_id)) return;
    const bool is_text = (frame->flags & RD_RELAY_TEXT) != 0;
    rd_message *message = rd_message_new(frame->channel, frame->payload, is_text, frame->id);
    if (record == NULL) record = add_record(history, frame->channel, rule, 0);
    add_entry(history, record, message, history->restored_ms);
    rd_message_unref(message);
}

void rd_history_restore(rd_history *history, const rd_relay_frame *frame) {
    if (frame->type == RD_RELAY_KEEP) {
        restore_rule(history, frame);
    } else if (frame->type == RD_RELAY_SAVED_TIME) {
        history->restored_ms = frame->id;
    } else if (frame->type == RD_RELAY_PUBLISH) {
        restore_message(history, frame);
    } else if (frame->type == RD_RELAY_SAVED_FLOOR) {
        record *record = rd_history_find_record(history, frame->channel);
        if (record != NULL) record->floor = higher(record->floor, frame->id);
    } else if (frame->type == RD_RELAY_SAVED_IDS) {
        history->last_id = frame->id; /* continues; when this history began does not matter */
        history->forgotten = rd_relay_get_number(frame->payload.ptr, 8);
    }
}

bool rd_history_parse_id(rd_slice text, uint64_t *id) {
    uint64_t value = 0;
    if (text.len == 0 || text.len > 19 || (text.len > 1 && text.ptr[0] == '0')) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return false;
        value = value * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    *id = value;
    return true;
}
