/* SPDX-License-Identifier: MIT
 *
 * The last messages of channels, for clients that were away. A rule says how many messages are kept
 * and for how long; they are replayed from the last id that a client has seen.
 *
 * Ids ascend over all channels of a server. They begin at the wall clock in microseconds, so that
 * ids of an earlier run of the server are lower than all of this one. An id is a point in time, so
 * a replay can begin at any number, whether or not a message of the channel has it; see rd_replay.
 *
 * The rule for callers: add to the history and publish in one hold of the lock; replay and
 * subscribe (rd_subscribe_terms.is_afresh) in one hold of the lock. Then a published message is
 * either replayed or delivered, never both and never neither. The same holds for a history in
 * another process if its answer comes over the same stream as the messages: subscribe when the end
 * of the replay arrives.
 *
 * No lock of its own: the caller holds the loop lock.
 */
#ifndef RD_PUBSUB_HISTORY_H
#define RD_PUBSUB_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "pubsub/message.h"
#include "pubsub/relay.h"

/* Above either limit, the oldest message of all channels is dropped. Bytes are those of names,
 * payloads and bookkeeping, without encodings. */
typedef struct rd_history_limits {
    uint32_t messages;
    size_t bytes;
} rd_history_limits;

typedef struct rd_history {
    rd_list rules;   /* newest first */
    rd_list records; /* one for each channel that has messages */
    rd_map names;    /* the same by name */
    rd_list entries; /* of all channels, in the order in which they came */
    uint32_t count;
    size_t bytes;
    rd_history_limits limits;
    uint64_t last_id;
    uint64_t replays;     /* of patterns so far */
    uint64_t forgotten;   /* up to this id, messages may be missing in channels without a record */
    uint64_t restored_ms; /* when the message that is restored next was added */
    uint32_t rule_count;  /* rules so far */
} rd_history;

/* How complete a replay was. When in doubt it is a gap: a gap may be reported where nothing is
 * missing, but no missing message goes unreported. */
typedef enum rd_replay {
    RD_REPLAY_WHOLE,   /* all after the id; for id 0 all that is kept */
    RD_REPLAY_GAP,     /* what is kept after the id; earlier messages may be lost */
    RD_REPLAY_UNKNOWN, /* nothing: no message has this id yet */
    RD_REPLAY_NONE     /* nothing: no history is kept here */
} rd_replay;

void rd_history_init(rd_history *history, rd_history_limits limits, uint64_t wall_us);
void rd_history_clear(rd_history *history);

/* Keeps messages of a channel, or of each channel that a pattern matches. A channel's own rule goes
 * before patterns, a newer pattern before an older one. A rule of the same name is replaced; size 0
 * ends it. Returns 0, or RD_ERR_CHANNEL_NAME. */
int rd_history_keep(rd_history *history, rd_slice name, bool is_pattern, rd_relay_terms terms);

/* Whether exactly this rule exists; with size 0, whether no rule has this name. */
bool rd_history_has_rule(const rd_history *history, rd_slice name, bool is_pattern,
                         rd_relay_terms terms);

/* Whether a rule wants the messages of this channel. */
bool rd_history_wants(const rd_history *history, rd_slice channel);

/* The id of the next message. */
uint64_t rd_history_next_id(rd_history *history, uint64_t wall_us);

/* Keeps the message if a rule wants it; returns whether it did. To be called with every message,
 * also with those that have their id from other processes. A message whose id is not above the last
 * one of its channel is a duplicate and not kept. `now_ms` is monotonic. */
bool rd_history_add(rd_history *history, rd_message *message, uint64_t now_ms);

/* What to replay: messages after `since`, of the channel or of all channels that the pattern
 * matches. */
typedef struct rd_history_wish {
    rd_slice name;
    bool is_pattern;
    uint64_t since, now_ms;
    size_t bytes_max; /* of names and payloads; the newest messages that fit are taken */
} rd_history_wish;

/* Calls `run` for the messages by ascending id. What the limits leave out is a gap. A pattern has
 * further limits, which only histories of many thousand channels reach. `run` may call anything; it
 * takes a reference to keep a message. */
typedef void rd_history_visit(void *with, rd_message *message);
rd_replay rd_history_replay(rd_history *history, const rd_history_wish *wish, rd_history_visit *run,
                            void *with);

/* Drops messages that are too old. A timer calls this, so that silent channels do not keep them. */
void rd_history_expire(rd_history *history, uint64_t now_ms);

/* Calls `tell` with every rule as a KEEP frame, the oldest first: taken in this order they mean the
 * same elsewhere. */
typedef void rd_history_emit(void *with, const rd_relay_frame *frame);
void rd_history_each_rule(const rd_history *history, rd_history_emit *emit, void *with);

/* The same, with the number of each rule as id. */
void rd_history_number_rules(const rd_history *history, rd_history_emit *emit, void *with);

/* The number of the rule that applies to the channel; 0: none. */
uint32_t rd_history_rule_number(const rd_history *history, rd_slice channel);

/* A channel whose messages an engine keeps, for all servers: this history has a copy of the newest
 * ones. load() begins the copy anew, without messages: none above `floor` is missing that will not
 * be added. forget() ends it. lose() says that messages up to `floor` are lost. */
void rd_history_load(rd_history *history, rd_slice channel, uint64_t floor);
bool rd_history_is_loaded(const rd_history *history, rd_slice channel);
void rd_history_forget(rd_history *history, rd_slice channel);
void rd_history_lose(rd_history *history, rd_slice channel, uint64_t floor);

/* The id of the last message of the channel that was added; 0: none is known. */
uint64_t rd_history_last_of(const rd_history *history, rd_slice channel);

/* Hands the history to a process that continues this one, on the same clock: save() writes
 * everything as frames (KEEP, PUBLISH, SAVED_*), restore() reads them into a new history and
 * ignores other frames. */
void rd_history_save(const rd_history *history, rd_history_emit *emit, void *with);
void rd_history_restore(rd_history *history, const rd_relay_frame *frame);

/* Parses an id as clients send it back (Last-Event-ID): decimal, without sign, blanks or leading
 * zeros. Returns false for anything else; such a client is treated as a new one. */
bool rd_history_parse_id(rd_slice text, uint64_t *id);

#endif
