/* SPDX-License-Identifier: MIT
 *
 * Who looks at the status page: open event streams (Server-Sent Events), each with the same events.
 * The thread that sends them never waits for Ruby. Under the lock of the control server's loop.
 */
#ifndef RD_CONTROL_VIEWERS_H
#define RD_CONTROL_VIEWERS_H

#include "base/buffer.h"
#include "base/list.h"
#include "request/request.h"

#define RD_VIEWERS_MAX 64

typedef struct rd_viewers {
    rd_list all;
    unsigned count;
} rd_viewers;

void rd_viewers_init(rd_viewers *viewers);

/* Begins the stream of a request with these events. False: there are RD_VIEWERS_MAX, and the
 * request was answered 503. */
bool rd_viewers_add(rd_viewers *viewers, rd_request *request, const rd_buffer *events);

/* Sends events to all. A client that does not read gets no more until it has taken what it has. */
void rd_viewers_send(rd_viewers *viewers, const rd_buffer *events);

/* Forgets those that have gone. Returns how many there are. */
unsigned rd_viewers_count(rd_viewers *viewers);

/* Ends all streams; a page that is open comes back later. */
void rd_viewers_end(rd_viewers *viewers);

/* Appends an event whose data, one line of JSON, the caller appends before rd_viewers_end_event().
 */
void rd_viewers_begin_event(rd_buffer *events, const char *name);
void rd_viewers_end_event(rd_buffer *events);

#endif
