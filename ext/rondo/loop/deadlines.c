/* SPDX-License-Identifier: MIT
 *
 * A heap in which each element has four below it: as deep as half the logarithm, and the four are
 * in one cache line of pointers; see deadlines.h.
 */
#include "loop/deadlines.h"

#include "base/alloc.h"

#define CHILDREN   4
#define FIRST_ROOM 64

void rd_deadlines_init(rd_deadlines *deadlines) {
    *deadlines = (rd_deadlines){.heap = NULL};
}

void rd_deadlines_clear(rd_deadlines *deadlines) {
    for (uint32_t at = 0; at < deadlines->count; at++) deadlines->heap[at]->place = 0;
    rd_free(deadlines->heap);
    rd_deadlines_init(deadlines);
}

static void put(rd_deadlines *deadlines, uint32_t at, rd_deadline *deadline) {
    deadlines->heap[at] = deadline;
    deadline->place = at + 1;
}

static void move_up(rd_deadlines *deadlines, uint32_t at, rd_deadline *deadline) {
    while (at > 0) {
        const uint32_t above = (at - 1) / CHILDREN;
        if (deadlines->heap[above]->due_ns <= deadline->due_ns) break;
        put(deadlines, at, deadlines->heap[above]);
        at = above;
    }
    put(deadlines, at, deadline);
}

/* The earliest of those below this place, or `count` if there is none. */
static uint32_t earliest_below(const rd_deadlines *deadlines, uint32_t at) {
    const uint64_t first = (uint64_t)at * CHILDREN + 1;
    uint32_t best = deadlines->count;
    for (uint64_t next = first; next < first + CHILDREN && next < deadlines->count; next++) {
        if (best == deadlines->count ||
            deadlines->heap[next]->due_ns < deadlines->heap[best]->due_ns)
            best = (uint32_t)next;
    }
    return best;
}

static void move_down(rd_deadlines *deadlines, uint32_t at, rd_deadline *deadline) {
    for (uint32_t below; (below = earliest_below(deadlines, at)) < deadlines->count; at = below) {
        if (deadlines->heap[below]->due_ns >= deadline->due_ns) break;
        put(deadlines, at, deadlines->heap[below]);
    }
    put(deadlines, at, deadline);
}

void rd_deadline_set(rd_deadlines *deadlines, rd_deadline *deadline, uint64_t due_ns) {
    rd_deadline_cancel(deadlines, deadline);
    if (deadlines->count == deadlines->room) {
        deadlines->room = deadlines->room == 0 ? FIRST_ROOM : deadlines->room * 2;
        deadlines->heap = rd_realloc(deadlines->heap, deadlines->room * sizeof(void *));
    }
    deadline->due_ns = due_ns;
    move_up(deadlines, deadlines->count++, deadline);
}

void rd_deadline_cancel(rd_deadlines *deadlines, rd_deadline *deadline) {
    if (!rd_deadline_is_set(deadline)) return;
    const uint32_t at = deadline->place - 1;
    deadline->place = 0;
    rd_deadline *last = deadlines->heap[--deadlines->count];
    if (last == deadline) return;
    /* The last one takes its place, and belongs above or below it. */
    if (last->due_ns < deadline->due_ns) {
        move_up(deadlines, at, last);
    } else {
        move_down(deadlines, at, last);
    }
}

uint64_t rd_deadlines_next(const rd_deadlines *deadlines) {
    return deadlines->count == 0 ? UINT64_MAX : deadlines->heap[0]->due_ns;
}

void rd_deadlines_advance(rd_deadlines *deadlines, uint64_t now_ns) {
    while (rd_deadlines_next(deadlines) <= now_ns) {
        rd_deadline *first = deadlines->heap[0];
        rd_deadline_cancel(deadlines, first);
        first->on_due(first);
    }
}
