/* SPDX-License-Identifier: MIT
 *
 * Events on their way to the application: a FIFO of sources that have events (request/event.h). A
 * source is with one application thread at a time. Beside it stands the line of tasks
 * (request/tasks.h), which has its own time in each turn. Under the loop lock.
 */
#ifndef RD_SERVER_EVENTS_H
#define RD_SERVER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "request/event.h"
#include "request/tasks.h"

struct rd_server;

typedef struct rd_event_queue {
    rd_list waiting;                         /* sources that have an event */
    uint32_t ready_count;                    /* of these, and of the line of tasks if it is ready */
    uint32_t holders[RD_EVENT_FAMILY_COUNT]; /* sources whose last event is still to come */
} rd_event_queue;

/* The source has an event, and no application thread has one of its events. */
void rd_events_add(struct rd_server *server, rd_event_source *source);

/* The source will have no event: nobody has taken any. */
void rd_events_withdraw(struct rd_server *server, rd_event_source *source);

/* Gives back the event that the application was told, unless its source is NULL, and puts the next
 * event in its place. False: there is no next event, or `goes_on` is false. */
bool rd_server_next_event(struct rd_server *server, rd_event *event, bool goes_on);

/* The next task, for the application thread that runs turns. NULL: none, or their time in this turn
 * is over: that of a batch of requests, and one task at least. */
rd_task *rd_server_next_task(struct rd_server *server, uint64_t now_ns);

/* Whether events wait, or sources are still to have their last event. */
bool rd_events_live(const struct rd_server *server);

void rd_events_clear(struct rd_server *server);

#endif
