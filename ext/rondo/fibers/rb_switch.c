/* SPDX-License-Identifier: MIT
 *
 * Parkings, and switching from one fiber to another; see rb_switch.h.
 */
#include "fibers/rb_switch.h"

#include <unistd.h>

#include "base/alloc.h"
#include "system/clock.h"

rd_parking *rd_parking_of_node(rd_list *node) {
    return RD_CONTAINER(node, rd_parking, node);
}

static rd_parking *parking_of_runnable(rd_list *node) {
    return RD_CONTAINER(node, rd_parking, runnable.node);
}

void rd_parkings_free(rd_list *parkings) {
    for (rd_list *node; (node = rd_list_shift(parkings)) != NULL;)
        rd_free(rd_parking_of_node(node));
}

static void stop_waiting(rd_parking *parking) {
    rd_fibers *fibers = parking->fibers;
    if (!rd_waiter_waits(&parking->waiter)) return;
    fibers->ops->lock(fibers);
    rd_waiters_remove(fibers->waiters, &parking->waiter);
    fibers->ops->unlock(fibers);
}

static void undo(rd_parking *parking) {
    void (*call)(rd_parking * parking, void *argument) = parking->undo;
    parking->undo = NULL;
    if (call != NULL) call(parking, parking->undo_argument);
}

void rd_parking_leave(rd_parking *parking, bool is_parents) {
    if (!is_parents) {
        stop_waiting(parking);
        undo(parking);
    }
    if (parking->own_fd >= 0) close(parking->own_fd);
    parking->own_fd = -1;
}

/* ---- switching ---- */

/* A strand ends without notice: control is then at the hub. */
VALUE rd_fibers_strand(rd_fibers *fibers) {
    if (fibers->running != Qfalse && !RTEST(rb_fiber_alive_p(fibers->running)))
        fibers->running = Qfalse;
    return fibers->running;
}

void rd_fibers_note_time(rd_fibers *fibers) {
    if (fibers->is_timed) fibers->since_ns = rd_clock_ns();
}

void rd_switch_at_hub(rd_fibers *fibers) {
    fibers->running = Qfalse;
    fibers->context = NULL;
    fibers->since_ns = 0;
}

void rd_switch_to(rd_fibers *fibers, VALUE fiber) {
    if (fiber != fibers->hub) rd_fibers_note_time(fibers);
    rb_fiber_transfer(fiber, 0, NULL);
}

static rd_parking *alloc_parking(rd_fibers *fibers) {
    rd_list *node = rd_list_shift(&fibers->spare);
    return node != NULL ? rd_parking_of_node(node) : rd_alloc(sizeof(rd_parking));
}

static void on_descriptor(rd_fd_waiter *waiter, int ready) {
    rd_parking *parking = RD_CONTAINER(waiter, rd_parking, waiter);
    rd_run_list_add(&parking->fibers->runnable, &parking->runnable, ready);
}

static void on_deadline(rd_deadline *deadline) {
    rd_parking *parking = RD_CONTAINER(deadline, rd_parking, deadline);
    rd_run_list_add(&parking->fibers->runnable, &parking->runnable, 0);
}

rd_parking *rd_parking_add(rd_fibers *fibers, VALUE fiber, VALUE strand) {
    rd_parking *parking = alloc_parking(fibers);
    *parking = (rd_parking){.fibers = fibers,
                            .fiber = fiber,
                            .strand = strand,
                            .context = fibers->context,
                            .starts = Qfalse,
                            .error = Qfalse,
                            .own_fd = -1};
    parking->deadline.on_due = on_deadline;
    rd_list_init(&parking->node);
    rd_runnable_init(&parking->runnable);
    rd_waiter_init(&parking->waiter, on_descriptor);
    rd_list_append(&fibers->parked, &parking->node);
    fibers->parked_count++;
    return parking;
}

void rd_parking_end(rd_parking *parking) {
    rd_fibers *fibers = parking->fibers;
    rd_list_unlink(&parking->node);
    rd_list_insert_before(fibers->spare.next, &parking->node); /* what was used last is in caches */
    fibers->parked_count--;
}

void rd_switch_let_go_on(rd_fibers *fibers, VALUE strand) {
    if (fibers->is_closed || strand == Qfalse || !RTEST(rb_fiber_alive_p(strand))) return;
    st_data_t found;
    if (st_lookup(fibers->by_fiber, (st_data_t)strand, &found)) return;
    rd_parking *guest = rd_parking_add(fibers, strand, strand);
    guest->is_guest = true;
    fibers->guests++;
    rd_run_list_hold(&fibers->runnable, &guest->runnable, &fibers->urgent);
}

void rd_switch_arrived(rd_parking *parking) {
    rd_fibers *fibers = parking->fibers;
    if (fibers->running != parking->strand) rd_switch_let_go_on(fibers, fibers->running);
    fibers->running = parking->strand;
    fibers->context = parking->context;
}

rd_parking *rd_switch_next(rd_fibers *fibers) {
    rd_list *node = rd_list_shift(&fibers->urgent);
    if (node == NULL && fibers->hub_turns) node = rd_list_shift(&fibers->batch);
    if (node == NULL) return NULL;
    rd_parking *next = parking_of_runnable(node);
    next->may_run = true;
    return next;
}

void rd_switch_to_parking(rd_parking *next) {
    rd_fibers *fibers = next->fibers;
    const VALUE fiber = next->strand == Qfalse ? fibers->hub : next->fiber;
    fibers->context = next->context;
    if (next->is_guest) {
        rd_run_list_drop(&fibers->runnable, &next->runnable);
        rd_parking_end(next);
        fibers->guests--;
        if (!RTEST(rb_fiber_alive_p(fiber))) return;
    }
    fibers->running = next->strand;
    rd_switch_to(fibers, fiber);
}
