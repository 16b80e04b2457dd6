/* SPDX-License-Identifier: MIT
 *
 * What the scoreboard has beside numbers, as JSON: the views of the workers, and the lines of the
 * journal. Any thread.
 */
#ifndef RD_CONTROL_VIEWS_H
#define RD_CONTROL_VIEWS_H

#include "base/buffer.h"
#include "cluster/journal.h"
#include "cluster/view.h"

/* Appends members of the object of a worker, with a comma before each: "calls", "waiting",
 * "busiest", "longest", "clients_ms". Nothing if nobody has watched, or the view cannot be read. */
void rd_views_add(const rd_shared_view *shared, rd_buffer *text);

/* Appends the upper ends of the bands of a client's waits as a member "client_bounds_us". */
void rd_views_add_bounds(rd_buffer *text);

/* Appends an array of the lines after number `after`, and returns the number of the last one, or
 * `after` if there is none. A line that cannot be read any more is left out. */
uint64_t rd_views_add_lines(const rd_journal *journal, uint64_t after, rd_buffer *text);

#endif
