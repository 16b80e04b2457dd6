/* SPDX-License-Identifier: MIT
 *
 * A line: the requests of one descriptor, in order of arrival. What waits for its turn is a FIFO of
 * lines, not of requests, so that each connection gets the same share, however many requests it
 * carries. A line has seats: at most so many of its requests are with the application at once, and
 * in a round it gets at least so many turns.
 *
 *   request ──▶ waiting ──(a seat)──▶ inside ──(answered, or its call is over)──▶ the seat is free
 *
 * A line stands in the FIFO while it has a request waiting and a seat free. A connection that
 * carries no others has one request at a time: that is a line by itself and has its own
 * rd_standing. A connection that carries others has an rd_lines. Under the loop lock.
 */
#ifndef RD_HTTP_LINE_H
#define RD_HTTP_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* What stands in a FIFO. */
typedef struct rd_standing {
    rd_list node;
    bool is_line; /* an rd_line, else an rd_request */
} rd_standing;

typedef struct rd_line {
    rd_standing standing;
    rd_list waiting; /* of rd_request.in_queue */
    uint32_t seats;
    uint32_t inside; /* seats that are taken */
} rd_line;

/* The lines of a connection that carries others: of requests for the application, and of those that
 * the static folder answers. Counted: the carrier holds a reference, and each taken seat. */
typedef struct rd_lines {
    rd_line calls, files;
    uint32_t refs;
} rd_lines;

/* With one reference. The protocol of the carrier puts it into the rd_layer of each connection that
 * it opens, before that one can have a request. */
rd_lines *rd_lines_new(uint32_t seats);
void rd_lines_ref(rd_lines *lines);
void rd_lines_unref(rd_lines *lines);

/* Whether its next request can have its turn. */
static inline bool rd_line_is_ready(const rd_line *line) {
    return line->inside < line->seats && !rd_list_is_empty(&line->waiting);
}

/* Puts a line that is ready at the end of the FIFO, unless it stands in one already. */
static inline void rd_line_stand(rd_list *fifo, rd_line *line) {
    if (rd_line_is_ready(line) && !rd_list_is_linked(&line->standing.node)) {
        rd_list_append(fifo, &line->standing.node);
    }
}

/* A request left `waiting`, or a seat was taken: a line that is not ready leaves its FIFO. */
static inline void rd_line_settle(rd_line *line) {
    if (!rd_line_is_ready(line) && rd_list_is_linked(&line->standing.node)) {
        rd_list_unlink(&line->standing.node);
    }
}

#endif
