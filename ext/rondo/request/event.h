/* SPDX-License-Identifier: MIT
 *
 * Events on their way to the application, and their sources: an upgraded connection, a subscription
 * of the application itself. The queue (server/events.h) knows only the interface below. Under the
 * loop lock.
 *
 * The application handles one event of a source at a time; the others wait inside the source.
 */
#ifndef RD_REQUEST_EVENT_H
#define RD_REQUEST_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

typedef struct rd_event_source rd_event_source;

/* Which handler takes the events of a source, and what their kinds mean. */
typedef enum rd_event_family {
    RD_EVENTS_OF_CONNECTION,
    RD_EVENTS_OF_SUBSCRIBER,
    RD_EVENT_FAMILY_COUNT,
} rd_event_family;

typedef struct rd_event {
    rd_event_source *source; /* a reference; NULL: none */
    unsigned kind;           /* a number of the source's family; never 0 */
    void *message;           /* the data of the event, or NULL */
} rd_event;

typedef struct rd_event_ops {
    rd_event_family family;
    /* The kind of the next event; 0: none. */
    unsigned (*next)(const rd_event_source *source);
    /* Takes the next event: sets kind and message. */
    void (*take)(rd_event_source *source, rd_event *event);
    /* The application has handled the event. Returns whether it was the last event there can be. */
    bool (*handled)(rd_event_source *source, const rd_event *event);
    /* Frees the message and drops the reference. The last one frees the source. */
    void (*release)(rd_event_source *source, void *message);
} rd_event_ops;

struct rd_event_source {
    const rd_event_ops *ops;
    rd_list in_queue; /* of the server, while events wait and the application handles none */
    bool is_handling; /* the application is handling an event */
    bool holds;       /* the server does not end before the last event was handled */
    bool is_counted;  /* the server counts this source as one that holds it */
    uint32_t refs;
};

/* With one reference. */
static inline void rd_event_source_init(rd_event_source *source, const rd_event_ops *ops,
                                        bool holds) {
    *source = (rd_event_source){.ops = ops, .holds = holds, .refs = 1};
    rd_list_init(&source->in_queue);
}

#endif
