/* SPDX-License-Identifier: MIT
 *
 * Limits of time on blocks; see rb_limits.h.
 */
#include "fibers/rb_limits.h"

#include "base/alloc.h"
#include "system/clock.h"

#define ASKED_AGAIN_NS 1000000

static bool can_raise_in(const rd_parking *parking) {
    return parking != NULL && !parking->unblocked && parking->limit == NULL &&
           parking->error == Qfalse;
}

/* The fiber of an Enumerator may be thrown away inside the block. Its limit never ends then. */
static bool is_abandoned(const rd_limit *limit) {
    return !RTEST(rb_fiber_alive_p(limit->fiber)) ||
           (limit->strand != Qfalse && !RTEST(rb_fiber_alive_p(limit->strand)));
}

static void set_again(rd_limit *limit) {
    if (limit->fibers->is_closed) return;
    rd_deadline_set(&limit->fibers->deadlines, &limit->deadline, rd_clock_ns() + ASKED_AGAIN_NS);
}

static void leave_parking(rd_limit *limit) {
    if (limit->parking != NULL) limit->parking->limit = NULL;
    limit->parking = NULL;
}

VALUE rd_limit_take(rd_limit *limit) {
    leave_parking(limit);
    return limit->error;
}

void rd_limit_ask_again(rd_limit *limit) {
    leave_parking(limit);
    set_again(limit);
}

void rd_limit_raise_in(rd_limit *limit, rd_parking *parking) {
    if (is_abandoned(limit)) return;
    if (!can_raise_in(parking)) {
        set_again(limit);
        return;
    }
    parking->limit = limit;
    limit->parking = parking;
    rd_run_list_add(&limit->fibers->runnable, &parking->runnable, 1);
}

rd_limit *rd_limit_begin(rd_fibers *fibers, VALUE fiber, VALUE strand, uint64_t due_ns,
                         void (*on_due)(rd_deadline *deadline)) {
    rd_limit *limit = rd_alloc_zero(sizeof(*limit));
    limit->fibers = fibers;
    limit->fiber = fiber;
    limit->strand = strand;
    limit->error = Qfalse;
    limit->deadline.on_due = on_due;
    rd_list_append(&fibers->limits, &limit->node);
    if (due_ns != UINT64_MAX) rd_deadline_set(&fibers->deadlines, &limit->deadline, due_ns);
    return limit;
}

void rd_limit_end(rd_limit *limit) {
    leave_parking(limit);
    rd_deadline_cancel(&limit->fibers->deadlines, &limit->deadline);
    rd_list_unlink(&limit->node);
    rd_free(limit);
}

void rd_limits_mark(const rd_fibers *fibers) {
    for (rd_list *node = fibers->limits.next; node != &fibers->limits; node = node->next) {
        const rd_limit *limit = RD_CONTAINER(node, rd_limit, node);
        rb_gc_mark(limit->fiber);
        rb_gc_mark(limit->strand);
        rb_gc_mark(limit->error);
    }
}

void rd_limits_free(rd_fibers *fibers) {
    for (rd_list *node; (node = rd_list_shift(&fibers->limits)) != NULL;) {
        rd_free(RD_CONTAINER(node, rd_limit, node));
    }
}
