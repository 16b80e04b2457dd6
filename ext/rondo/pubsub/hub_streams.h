/* SPDX-License-Identifier: MIT
 *
 * The hub with an engine that keeps messages for all servers; see hub.h. Under the lock of the
 * hub's loop.
 */
#ifndef RD_PUBSUB_HUB_STREAMS_H
#define RD_PUBSUB_HUB_STREAMS_H

#include "pubsub/hub.h"

/* Sends the rules to the engine, and then the topics that they may concern. Does nothing without
 * an engine that wants to know. */
void rd_hub_tell_rules(rd_hub *hub);

/* All that is followed has come here up to this id. */
static inline void rd_hub_see_id(rd_hub *hub, uint64_t id) {
    if (hub->engine_id < id) hub->engine_id = id;
}

/* A message of the engine that has an id, or the notice of a gap. */
void rd_hub_take_kept(rd_hub *hub, const rd_relay_frame *from);

/* The two ends of a copy. Return 0, or < 0 when the engine's link must be closed. Between them a
 * part of the copy is here, which answers nobody. */
int rd_hub_load_begin(rd_hub *hub, const rd_relay_frame *frame);
int rd_hub_load_end(rd_hub *hub);

/* The engine has gone: forgets the part of a copy that is here. */
void rd_hub_load_break(rd_hub *hub);

/* Whether the replay can be answered now, or need not wait: there is a copy, and it is as new as
 * what the client has seen. `due`: see below. */
bool rd_hub_has_copy(rd_hub *hub, const rd_relay_frame *wanted, uint64_t due);

/* Asks the engine for its copy if the replay needs it. Returns whether the replay can be answered
 * now. `due`, 0 at first: after how many copies of the channel an id that is too high is of no
 * message. */
bool rd_hub_ask_copy(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted, uint64_t *due);

#endif
