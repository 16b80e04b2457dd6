/* SPDX-License-Identifier: MIT
 *
 * The lines of connections that carry others; see line.h.
 */
#include "request/line.h"

#include <assert.h>

#include "base/alloc.h"

static void init(rd_line *line, uint32_t seats) {
    rd_list_init(&line->standing.node);
    rd_list_init(&line->waiting);
    rd_list_init(&line->seated);
    line->standing.is_line = true;
    line->len = 0;
    line->seats = seats;
    line->inside = line->away = 0;
    line->is_full = line->is_held = false;
}

void rd_line_place(rd_line *line, rd_list *fifo, rd_list *full) {
    rd_list *node = &line->standing.node;
    const bool waits = !rd_list_is_empty(&line->waiting), is_linked = rd_list_is_linked(node);
    const bool is_full = line->is_held || line->inside >= line->seats;
    if (is_linked && waits && line->is_full == is_full) return;
    if (is_linked) rd_list_unlink(node);
    line->is_full = waits && is_full;
    if (waits) rd_list_append(is_full ? full : fifo, node);
}

rd_lines *rd_lines_new(uint32_t seats) {
    assert(seats > 0);
    rd_lines *lines = rd_alloc(sizeof(*lines));
    init(&lines->calls, seats);
    init(&lines->files, seats);
    lines->refs = 1;
    return lines;
}

void rd_lines_ref(rd_lines *lines) {
    lines->refs++;
}

void rd_lines_unref(rd_lines *lines) {
    assert(lines->refs > 0);
    if (--lines->refs > 0) return;
    assert(rd_list_is_empty(&lines->calls.waiting) && rd_list_is_empty(&lines->files.waiting));
    rd_free(lines);
}
