/* SPDX-License-Identifier: MIT
 *
 * A line: the requests of one descriptor, in order of arrival. The server's queue is a FIFO of
 * lines, not of requests, so that each connection gets the same share, however many requests it
 * carries. A line has seats: this many of its requests may be with the application at once, and
 * at least this many are taken from it in each round.
 *
 *   request ──▶ waiting ──(a seat)──▶ inside ──(answered, or its call is over)──▶ the seat is free
 *
 * A line is in the FIFO while it has a waiting request and a free seat. A connection that carries
 * no others has one request at a time: the request is a line by itself and has its own rd_standing.
 * A connection that carries others has an rd_lines. Under the loop lock.
 */
#ifndef RD_REQUEST_LINE_H
#define RD_REQUEST_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* An element of the FIFO. */
typedef struct rd_standing {
    rd_list node;
    bool is_line; /* an rd_line, otherwise an rd_request */
} rd_standing;

typedef struct rd_line {
    rd_standing standing;
    rd_list waiting; /* of rd_request.in_queue */
    uint32_t len;    /* of `waiting`; of calls only */
    uint32_t seats;
    uint32_t inside; /* seats that are taken */
    uint32_t away;   /* requests that other workers answer: at most as many as there are seats */
} rd_line;

/* The lines of a connection that carries others: one for requests to the application, one for
 * requests that the static folder answers. Counted: the carrier holds a reference, and so does each
 * taken seat, and each request that another worker answers. */
typedef struct rd_lines {
    rd_line calls, files;
    uint32_t refs;
} rd_lines;

/* Returns lines with one reference. The carrier's protocol puts them into the rd_layer of each
 * connection that it opens, before that connection can have a request. */
rd_lines *rd_lines_new(uint32_t seats);
void rd_lines_ref(rd_lines *lines);
void rd_lines_unref(rd_lines *lines);

/* Whether the next request of the line may be taken. */
static inline bool rd_line_is_ready(const rd_line *line) {
    return line->inside < line->seats && !rd_list_is_empty(&line->waiting);
}

/* Puts a line that is ready at the end of the FIFO, unless it is in one already. */
static inline void rd_line_stand(rd_list *fifo, rd_line *line) {
    if (rd_line_is_ready(line) && !rd_list_is_linked(&line->standing.node)) {
        rd_list_append(fifo, &line->standing.node);
    }
}

/* Call it when a request has left `waiting`, or a seat was taken: a line that is not ready leaves
 * its FIFO. */
static inline void rd_line_settle(rd_line *line) {
    if (!rd_line_is_ready(line) && rd_list_is_linked(&line->standing.node)) {
        rd_list_unlink(&line->standing.node);
    }
}

#endif
