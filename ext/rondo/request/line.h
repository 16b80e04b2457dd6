/* SPDX-License-Identifier: MIT
 *
 * A line: the requests of one descriptor, in order of arrival. The server's queue is a FIFO of
 * lines, not of requests, so that each connection gets the same share, however many requests it
 * carries. A line has seats: this many of its requests may be with the application at once, and
 * at least this many are taken from it in each round.
 *
 *   request ──▶ waiting ──(a seat)──▶ inside ──(answered, or its call is over)──▶ the seat is free
 *
 * A line is in the FIFO while it has a waiting request and a free seat. A seat is held while the
 * call holds a place in the application: a call that waits for its client, or stands aside, or that
 * another worker answers has none. A connection that carries no others has one request at a time:
 * the request is a line by itself and has its own rd_standing. A connection that carries others has
 * an rd_lines. Nothing is taken from a line that is held, because its client takes nothing of the
 * answers that it has. Under the loop lock.
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
    rd_list waiting; /* of rd_request.in_queue, the most urgent first, then by arrival */
    rd_list seated;  /* of rd_request.queued.standing: those that have a seat, the first first */
    uint32_t len;    /* of `waiting`; of calls only */
    uint32_t seats;
    uint32_t inside; /* seats that are taken; more than there are while others leave threads free */
    uint32_t away;   /* requests that other workers answer: at most as many as there are seats */
    bool is_full;    /* it stands among the lines that wait for a seat, or that are held */
    bool is_held;
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

/* Call it when `waiting` or `inside` has changed. The line stands in one of the lists, or in none:
 * at the end of `fifo` if its next request may be taken, of `full` if all its seats are taken or it
 * is held. */
void rd_line_place(rd_line *line, rd_list *fifo, rd_list *full);

/* How many of its requests do not wait for a thread, but for their line. */
static inline uint32_t rd_line_behind(const rd_line *line) {
    const uint32_t most = line->is_held ? 0 : line->seats;
    return line->len > most ? line->len - most : 0;
}

#endif
