/* SPDX-License-Identifier: MIT
 *
 * Which line is next; see fair_lines.h.
 */
#include "cluster/fair_lines.h"

#include <stddef.h>

void rd_fair_lines_init(rd_fair_lines *lines) {
    lines->key = rd_hash_key_random();
    lines->floor = 0;
    for (int i = 0; i < RD_FAIR_LINES; i++) {
        rd_list_init(&lines->lines[i].waiting);
        lines->lines[i].served = 0;
    }
}

rd_fair_line *rd_fair_lines_add(rd_fair_lines *lines, rd_slice who, rd_list *node) {
    rd_fair_line *line = &lines->lines[rd_hash(lines->key, who) % RD_FAIR_LINES];
    if (rd_list_is_empty(&line->waiting) && line->served < lines->floor) {
        line->served = lines->floor;
    }
    rd_list_append(&line->waiting, node);
    return line;
}

rd_fair_line *rd_fair_lines_next(rd_fair_lines *lines) {
    rd_fair_line *next = NULL;
    for (int i = 0; i < RD_FAIR_LINES; i++) {
        rd_fair_line *line = &lines->lines[i];
        if (rd_list_is_empty(&line->waiting)) continue;
        if (next == NULL || line->served < next->served) next = line;
    }
    if (next != NULL && next->served > lines->floor) lines->floor = next->served;
    return next;
}
