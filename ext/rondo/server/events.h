/* SPDX-License-Identifier: MIT
 *
 * Events on their way to the application: a queue of sources that have some (http/event.h), in
 * order; each is with one application thread at a time. Under the loop lock.
 */
#ifndef RD_SERVER_EVENTS_H
#define RD_SERVER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/event.h"

struct rd_server;

typedef struct rd_event_queue {
    rd_list waiting;                         /* sources that have an event */
    uint32_t holders[RD_EVENT_FAMILY_COUNT]; /* sources whose last event was not told yet */
} rd_event_queue;

/* The source has an event, and none is being told. */
void rd_events_add(struct rd_server *server, rd_event_source *source);

/* Gives back the event that was told, if there is one (its source is not NULL), and puts the next
 * one in its place; false, and none, when there is none or nobody `goes_on`. */
bool rd_server_tell(struct rd_server *server, rd_event *event, bool goes_on);

/* Whether there is anything to be told, or being told. */
bool rd_events_live(const struct rd_server *server);

void rd_events_clear(struct rd_server *server);

#endif
