/* SPDX-License-Identifier: MIT
 *
 * Events of upgraded connections on their way to the application: a queue of connections that have
 * some, in order; each is with one application thread at a time. Under the loop lock.
 */
#ifndef RD_SERVER_EVENTS_H
#define RD_SERVER_EVENTS_H

#include "http/push.h"

struct rd_server;

typedef struct rd_event {
    rd_push *push; /* a reference; NULL: none */
    rd_push_event kind;
    rd_push_message *message; /* of RD_PUSH_MESSAGE, _PUBLISHED */
} rd_event;

/* The connection has an event, and none is being told. */
void rd_events_add(struct rd_server *server, rd_push *push);

/* Gives back the event that was told, if there is one (its push is not NULL), and puts the next one
 * in its place; false, and none, when there is none or nobody `goes_on`. */
bool rd_server_tell(struct rd_server *server, rd_event *event, bool goes_on);

/* Whether there is anything to be told, or being told. */
bool rd_events_live(const struct rd_server *server);

void rd_events_clear(struct rd_server *server);

#endif
