/* SPDX-License-Identifier: MIT
 *
 * Replays that wait at the hub. Those that can be answered soon stand in the line of their link.
 * One that needs a copy of the engine is set aside at its topic, if its worker can take answers out
 * of order: the engine may be away for long, and what is here already must not wait for that. Under
 * the lock of the hub's loop.
 */
#ifndef RD_PUBSUB_HUB_WAITING_H
#define RD_PUBSUB_HUB_WAITING_H

#include "pubsub/hub_interests.h"

typedef struct rd_hub_waiting {
    rd_list in_link;  /* in the line, or with those that are set aside */
    rd_list in_topic; /* while it is set aside */
    rd_hub_link *link;
    rd_relay_frame frame; /* REPLAY; its slices point to the bytes below */
    uint64_t due;         /* see rd_hub_ask_copy() */
    bool is_told;         /* the worker knows that it is set aside */
    char bytes[];
} rd_hub_waiting;

/* Copies the request, and puts it at the end of the line. */
rd_hub_waiting *rd_hub_wait(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted);

/* The first in the line, which is not empty. */
static inline rd_hub_waiting *rd_hub_first_waiting(const rd_hub_link *link) {
    return RD_CONTAINER(link->replays.next, rd_hub_waiting, in_link);
}

void rd_hub_set_aside(rd_hub_topic *topic, rd_hub_waiting *waiting);

/* Back to the end of the line: all of a topic; all there are. */
void rd_hub_recall(rd_hub *hub, rd_hub_topic *topic);
void rd_hub_recall_all(rd_hub *hub);

/* It is answered, or its link leaves. */
void rd_hub_end_waiting(rd_hub_waiting *waiting);
void rd_hub_forget_replays(rd_hub_link *link);

#endif
