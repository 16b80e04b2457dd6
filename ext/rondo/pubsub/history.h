/* SPDX-License-Identifier: MIT
 *
 * The last messages of channels, for whoever was away: kept by number and age where a rule asks for
 * it, replayed from the id that somebody has seen last.
 *
 * Ids ascend over all channels of a server. They begin at the wall clock in microseconds, so that
 * those of an earlier life of the server are lower than all of this one. An id is a place in time,
 * so every number has an answer, be it from the channel or not; see rd_replay.
 *
 * The seam: in one hold of the lock, add to the history and publish; in one hold, replay and
 * subscribe (rd_subscribe_terms.is_afresh). Then whatever is published is either replayed or
 * delivered, never both and never neither. A history in another process has the same seam if its
 * answer comes over the same stream as the messages: subscribe when the end of the replay arrives.
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

/* Above either, the oldest message of all channels goes. Bytes are those of names, payloads and
 * what keeps them, without encodings. */
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
    uint64_t replays;   /* of patterns so far */
    uint64_t forgotten; /* up to this id, messages may have been in channels nothing is known of */
    uint64_t restored_ms; /* of the message that is restored next */
} rd_history;

/* What a replay was. When in doubt it is a gap: one may be reported where nothing is missing, but
 * nothing is missing where none is reported. */
typedef enum rd_replay {
    RD_REPLAY_WHOLE,   /* all after the id; all that is kept after id 0 */
    RD_REPLAY_GAP,     /* what is kept after the id; something before it may be lost */
    RD_REPLAY_UNKNOWN, /* nothing: the id has not been given to anybody yet */
    RD_REPLAY_NONE     /* nothing: no history is kept of this */
} rd_replay;

void rd_history_init(rd_history *history, rd_history_limits limits, uint64_t wall_us);
void rd_history_clear(rd_history *history);

/* Keeps the last `size` messages of a channel, or of each channel a pattern matches, for `ttl_ms`
 * (0: for ever). A channel's own rule goes before patterns, a newer pattern before an older one;
 * the same name again replaces, size 0 ends the rule. 0, or RD_ERR_CHANNEL_NAME. */
int rd_history_keep(rd_history *history, rd_slice name, bool is_pattern, uint32_t size,
                    uint64_t ttl_ms);

/* Whether there is exactly this rule; with size 0, whether there is none. */
bool rd_history_has_rule(const rd_history *history, rd_slice name, bool is_pattern, uint32_t size,
                         uint64_t ttl_ms);

/* Whether a rule wants the messages of this channel. */
bool rd_history_wants(const rd_history *history, rd_slice channel);

/* The id of the next message. */
uint64_t rd_history_next_id(rd_history *history, uint64_t wall_us);

/* Keeps the message if a rule wants it; whether it did. To be called with every message, also those
 * that other processes gave their ids. One whose id is not above the last of its channel is a
 * double and not kept. `now_ms` is monotonic. */
bool rd_history_add(rd_history *history, rd_message *message, uint64_t now_ms);

/* What is to be replayed: what came after `since`, of the channel or of all channels that the
 * pattern matches. */
typedef struct rd_history_wish {
    rd_slice name;
    bool is_pattern;
    uint64_t since, now_ms;
    size_t bytes_max; /* of names and payloads; the newest messages that are no more than that */
} rd_history_wish;

/* Hands it out by ascending id. What the limits leave out is a gap; a pattern has some of its own,
 * which only histories of many thousand channels meet. `run` may do as it likes; it keeps a
 * reference for longer. */
typedef void rd_history_visit(void *with, rd_message *message);
rd_replay rd_history_replay(rd_history *history, const rd_history_wish *wish, rd_history_visit *run,
                            void *with);

/* Drops what has become too old; for a timer, so that silent channels do not keep it. */
void rd_history_expire(rd_history *history, uint64_t now_ms);

/* Hands out every rule as a KEEP frame, the oldest first: told in this order they mean the same
 * elsewhere. */
typedef void rd_history_tell(void *with, const rd_relay_frame *frame);
void rd_history_each_rule(const rd_history *history, rd_history_tell *tell, void *with);

/* For a process that goes on where this one ends, on the same clock: everything as frames (KEEP,
 * PUBLISH, SAVED_*), and back into a history that is new. Frames that are no concern of it are
 * passed over. */
void rd_history_save(const rd_history *history, rd_history_tell *tell, void *with);
void rd_history_restore(rd_history *history, const rd_relay_frame *frame);

/* An id as clients send it back (Last-Event-ID): decimal, without sign, blanks or leading zeros.
 * False for anything else; such a client is one that has never been here. */
bool rd_history_parse_id(rd_slice text, uint64_t *id);

#endif
