/* SPDX-License-Identifier: MIT
 *
 * Parking fibers and switching between them; see rb_fibers.h.
 */
#include "fibers/rb_fibers.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/clock.h"
#include "fibers/rb_launcher.h"
#include "fibers/rb_limits.h"
#include "fibers/rb_switch.h"
#include "ruby/rb_error.h"

void rd_fibers_init(rd_fibers *fibers, const rd_fibers_ops *ops, rd_fd_waiters *waiters,
                    void (*wake)(rd_run_list *list)) {
    *fibers = (rd_fibers){.ops = ops,
                          .waiters = waiters,
                          .hub = Qfalse,
                          .running = Qfalse,
                          .permit = Qfalse,
                          .launcher = Qfalse,
                          .launched = Qfalse,
                          .launch_error = Qnil};
    rd_run_list_init(&fibers->runnable, wake);
    rd_deadlines_init(&fibers->deadlines);
    rd_list_init(&fibers->urgent);
    rd_list_init(&fibers->batch);
    rd_list_init(&fibers->parked);
    rd_list_init(&fibers->spare);
    rd_list_init(&fibers->limits);
    fibers->by_fiber = st_init_numtable();
}

void rd_fibers_close(rd_fibers *fibers, bool is_parents) {
    fibers->is_closed = true;
    for (rd_list *node = fibers->parked.next; node != &fibers->parked; node = node->next) {
        rd_parking *parking = rd_parking_of_node(node);
        rd_parking_leave(parking, is_parents);
        rd_run_list_drop(&fibers->runnable, &parking->runnable);
    }
    rd_run_list_clear(&fibers->runnable);
    rd_deadlines_clear(&fibers->deadlines);
    rd_parkings_free(&fibers->spare);
    st_free_table(fibers->by_fiber);
}

void rd_fibers_free(rd_fibers *fibers) {
    rd_parkings_free(&fibers->parked);
    rd_limits_free(fibers);
}

/* Marking pins the fibers: their addresses are keys, and are compared. */
void rd_fibers_mark(const rd_fibers *fibers) {
    for (rd_list *node = fibers->parked.next; node != &fibers->parked; node = node->next) {
        const rd_parking *parking = rd_parking_of_node(node);
        rb_gc_mark(parking->fiber);
        rb_gc_mark(parking->strand);
        rb_gc_mark(parking->starts);
        rb_gc_mark(parking->error);
    }
    rd_limits_mark(fibers);
    rb_gc_mark(fibers->hub);
    rb_gc_mark(fibers->running);
    rb_gc_mark(fibers->permit);
    rb_gc_mark(fibers->launcher);
    rb_gc_mark(fibers->launched);
    rb_gc_mark(fibers->launch_error);
}

size_t rd_fibers_memory(const rd_fibers *fibers) {
    return fibers->parked_count * sizeof(rd_parking) + fibers->deadlines.room * sizeof(void *) +
           st_memsize(fibers->by_fiber);
}

/* ---- the hub ---- */

static void take_due(rd_fibers *fibers) {
    if (rd_deadlines_next(&fibers->deadlines) == UINT64_MAX) return;
    rd_deadlines_advance(&fibers->deadlines, rd_clock_ns());
}

/* Fills the batch. */
static void look(rd_fibers *fibers) {
    fibers->ops->wait(fibers, rd_deadlines_next(&fibers->deadlines));
    take_due(fibers);
    rd_run_list_take(&fibers->runnable, &fibers->batch, UINT32_MAX);
}

typedef struct rd_hub_stay {
    rd_fibers *fibers;
    rd_parking *own; /* the hub's own wait; NULL: it runs until nobody waits */
    VALUE hub_before;
    bool turned_before;
} rd_hub_stay;

static rd_hub_stay begin_stay(rd_fibers *fibers, rd_parking *own, bool turns) {
    rd_hub_stay stay = {fibers, own, fibers->hub, fibers->hub_turns};
    fibers->hub = rb_fiber_current();
    fibers->hub_turns = turns;
    return stay;
}

static VALUE end_stay(VALUE argument) {
    const rd_hub_stay *stay = (const rd_hub_stay *)argument;
    stay->fibers->hub = stay->hub_before;
    stay->fibers->hub_turns = stay->turned_before;
    rd_switch_at_hub(stay->fibers);
    return Qnil;
}

/* Nothing is left to run. */
static bool is_gone(const rd_fibers *fibers) {
    return fibers->is_closed || fibers->ops->is_left(fibers);
}

static bool is_over(const rd_hub_stay *stay) {
    if (is_gone(stay->fibers)) return true;
    return stay->own != NULL ? stay->own->may_run : stay->fibers->parked_count == 0;
}

/* What was raised in the thread is raised here, and handlers of signals run here. They may wait:
 * then they have filled the batch, or have ended the hub's own wait. */
static bool must_look(const rd_hub_stay *stay) {
    rb_thread_check_ints();
    const rd_fibers *fibers = stay->fibers;
    return !is_over(stay) && rd_list_is_empty(&fibers->urgent) && rd_list_is_empty(&fibers->batch);
}

/* One step of the hub: another fiber runs until control is back, or the batch is filled. */
static void turn(const rd_hub_stay *stay) {
    rd_fibers *fibers = stay->fibers;
    rd_parking *next = rd_switch_next(fibers);
    if (next == NULL) {
        if (must_look(stay)) look(fibers);
    } else if (next != stay->own) {
        rd_switch_to_parking(next);
        rd_switch_let_go_on(fibers, fibers->running);
        rd_switch_at_hub(fibers);
    }
}

static VALUE stay_as_hub(VALUE argument) {
    const rd_hub_stay *stay = (const rd_hub_stay *)argument;
    while (!is_over(stay)) turn(stay);
    return Qnil;
}

void rd_fibers_run(rd_fibers *fibers) {
    if (rd_fibers_strand(fibers) != Qfalse) rb_raise(rd_eError, "called in a fiber");
    rd_hub_stay stay = begin_stay(fibers, NULL, true);
    rb_ensure(stay_as_hub, (VALUE)&stay, end_stay, (VALUE)&stay);
}

void rd_fibers_begin_hub(rd_fibers *fibers) {
    fibers->hub = rb_fiber_current();
    fibers->hub_turns = true;
    rd_switch_at_hub(fibers);
}

void rd_fibers_stop_hub(rd_fibers *fibers) {
    fibers->hub = Qfalse;
    fibers->hub_turns = false;
}

static bool has_taken(const rd_fibers *fibers) {
    return !rd_list_is_empty(&fibers->urgent) || !rd_list_is_empty(&fibers->batch);
}

bool rd_fibers_can_run(rd_fibers *fibers) {
    take_due(fibers);
    return has_taken(fibers) || !rd_run_list_is_empty(&fibers->runnable);
}

void rd_fibers_run_some(rd_fibers *fibers, uint32_t most) {
    const rd_hub_stay stay = {.fibers = fibers};
    rd_run_list_take(&fibers->runnable, &fibers->batch, most);
    while (has_taken(fibers) && !is_gone(fibers)) turn(&stay);
}

/* ---- waiting ---- */

typedef struct rd_park_call {
    rd_parking *parking;
    bool has_ended; /* the wait has, without an exception */
    int result;
    VALUE error;
} rd_park_call;

static rd_parking *find(const rd_fibers *fibers, VALUE fiber) {
    st_data_t found;
    return st_lookup(fibers->by_fiber, (st_data_t)fiber, &found) ? (rd_parking *)found : NULL;
}

rd_parking *rd_parking_begin(rd_fibers *fibers) {
    const VALUE fiber = rb_fiber_current();
    const VALUE strand = fibers->running == fiber ? fiber : rd_fibers_strand(fibers);
    rd_parking *parking = rd_parking_add(fibers, fiber, strand);
    parking->outer = find(fibers, fiber);
    if (fibers->permit == fiber) fibers->permit = Qfalse;
    st_insert(fibers->by_fiber, (st_data_t)fiber, (st_data_t)parking);
    return parking;
}

int rd_parking_wait_for(rd_parking *parking, int fd, unsigned wanted) {
    rd_fibers *fibers = parking->fibers;
    fibers->ops->lock(fibers);
    const int result = rd_waiters_add(fibers->waiters, &parking->waiter, fd, wanted);
    const int code = errno;
    fibers->ops->unlock(fibers);
    errno = code;
    return result;
}

static VALUE switch_to_new(VALUE argument) {
    const rd_parking *parking = (const rd_parking *)argument;
    rd_switch_to(parking->fibers, parking->starts);
    return Qnil;
}

/* If the system has no stack for the new fiber, it has not begun, and must not begin later. */
static void start_in_strand(const rd_parking *parking) {
    rd_fibers *fibers = parking->fibers;
    int state = 0;
    fibers->running = parking->starts;
    fibers->context = NULL;
    rb_protect(switch_to_new, (VALUE)parking, &state);
    if (state == 0) return;
    if (rd_is_fiber_error(rb_errinfo())) fibers->running = parking->strand;
    rb_jump_tag(state);
}

static void park_in_strand(rd_parking *parking) {
    rd_fibers *fibers = parking->fibers;
    if (parking->starts != Qfalse) {
        start_in_strand(parking);
        rd_switch_arrived(parking);
    }
    while (!parking->may_run && !fibers->is_closed) {
        rd_parking *next = rd_switch_next(fibers);
        if (next == parking) break;
        if (next != NULL) {
            rd_switch_to_parking(next);
        } else {
            rd_switch_at_hub(fibers);
            rd_switch_to(fibers, fibers->hub);
        }
        rd_switch_arrived(parking);
    }
}

static VALUE park(VALUE argument) {
    rd_park_call *call = (rd_park_call *)argument;
    rb_thread_check_ints(); /* what was raised in the thread is for the fiber that has it now */
    if (call->parking->strand != Qfalse) {
        park_in_strand(call->parking);
    } else {
        rd_hub_stay stay = begin_stay(call->parking->fibers, call->parking, true);
        rb_ensure(stay_as_hub, (VALUE)&stay, end_stay, (VALUE)&stay);
    }
    call->has_ended = true;
    return Qnil;
}

/* Of a limit whose time is up: it is raised now; or, if something else was, asked again. */
static VALUE take_error(const rd_park_call *call) {
    rd_limit *limit = call->parking->limit;
    if (limit == NULL) return call->parking->error;
    if (call->has_ended) return rd_limit_take(limit);
    rd_limit_ask_again(limit);
    return Qfalse;
}

static void leave_fiber(const rd_parking *parking) {
    st_table *by_fiber = parking->fibers->by_fiber;
    st_data_t key = (st_data_t)parking->fiber;
    if (parking->outer != NULL) {
        st_insert(by_fiber, key, (st_data_t)parking->outer);
    } else {
        st_delete(by_fiber, &key, NULL);
    }
}

static VALUE end_park(VALUE argument) {
    rd_park_call *call = (rd_park_call *)argument;
    rd_parking *parking = call->parking;
    rd_fibers *fibers = parking->fibers;
    if (!fibers->is_closed) {
        rd_switch_arrived(parking); /* if it was raised in, nobody has done that */
        rd_parking_leave(parking, fibers->ops->is_left(fibers));
    }
    /* rd_fibers_free() has the parking, and its error is not marked any more. */
    if (fibers->is_closed) return Qnil;
    call->error = take_error(call);
    rd_deadline_cancel(&fibers->deadlines, &parking->deadline);
    call->result = rd_run_list_drop(&fibers->runnable, &parking->runnable);
    leave_fiber(parking);
    rd_parking_end(parking);
    return Qnil;
}

/* What belongs to the error is called in the fiber that gets it. */
NORETURN(static void raise_error(VALUE error));

static void raise_error(VALUE error) {
    if (!RB_TYPE_P(error, T_ARRAY)) rb_exc_raise(error);
    VALUE arguments[] = {rb_ary_entry(error, 0), rb_ary_entry(error, 1)};
    rb_exc_raise(rb_make_exception(2, arguments));
}

int rd_fibers_park(rd_parking *parking) {
    const rd_fibers *fibers = parking->fibers;
    rd_park_call call = {.parking = parking, .error = Qfalse};
    rb_ensure(park, (VALUE)&call, end_park, (VALUE)&call);
    if (call.error != Qfalse) raise_error(call.error);
    if (fibers->is_closed) rb_raise(rd_eError, "the scheduler was closed meanwhile");
    return call.result;
}

uint64_t rd_fibers_deadline(VALUE seconds) {
    if (NIL_P(seconds)) return UINT64_MAX;
    const struct timespec time = rb_time_timespec_interval(seconds);
    const uint64_t most = UINT64_MAX / 2000000000; /* about 290 years */
    if ((uint64_t)time.tv_sec > most) return UINT64_MAX;
    return rd_clock_ns() + (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* ---- starting ---- */

typedef struct rd_start {
    rd_fibers *fibers;
    VALUE fiber;
} rd_start;

static VALUE start_from_hub(VALUE argument) {
    const rd_start *start = (const rd_start *)argument;
    rd_fibers *fibers = start->fibers;
    fibers->running = start->fiber;
    fibers->context = NULL;
    if (fibers->launcher != Qfalse) {
        rd_launcher_start(fibers, start->fiber);
    } else {
        rd_switch_to(fibers, start->fiber);
    }
    /* It has parked or ended; those that started others inside of it have not. */
    for (rd_parking *next; !is_gone(fibers) && (next = rd_switch_next(fibers)) != NULL;)
        rd_switch_to_parking(next);
    return Qnil;
}

static void start_as_hub(rd_fibers *fibers, VALUE fiber) {
    rd_start start = {fibers, fiber};
    rd_hub_stay stay = begin_stay(fibers, NULL, false);
    rb_ensure(start_from_hub, (VALUE)&start, end_stay, (VALUE)&stay);
}

void rd_fibers_start(rd_fibers *fibers, VALUE fiber) {
    if (rd_fibers_strand(fibers) == Qfalse) {
        start_as_hub(fibers, fiber);
        return;
    }
    rd_parking *parking = rd_parking_begin(fibers);
    parking->starts = fiber;
    rd_run_list_hold(&fibers->runnable, &parking->runnable, &fibers->urgent);
    rd_fibers_park(parking);
}

/* The next one of the batch goes on at once: by way of the hub that would be two switches. */
void rd_fibers_rest(rd_fibers *fibers) {
    rd_parking *next = is_gone(fibers) ? NULL : rd_switch_next(fibers);
    if (next != NULL) {
        rd_switch_to_parking(next);
        return;
    }
    rd_switch_at_hub(fibers);
    rd_switch_to(fibers, fibers->hub);
}

/* ---- from outside ---- */

/* The last to wait of a strand is the innermost. */
static rd_parking *find_in_strand(const rd_fibers *fibers, VALUE strand) {
    for (rd_list *node = fibers->parked.prev; node != &fibers->parked; node = node->prev) {
        rd_parking *parking = rd_parking_of_node(node);
        if (parking->strand == strand && !parking->is_guest) return parking;
    }
    return NULL;
}

static void unblock(rd_parking *parking) {
    if (!parking->unblocks) return;
    /* What it waited for may be there for it alone: it must not get an error in its place. */
    if (parking->limit != NULL) rd_limit_ask_again(parking->limit);
    parking->unblocked = true;
    rd_run_list_add(&parking->fibers->runnable, &parking->runnable, 1);
}

/* A fiber may be unblocked between the moment at which others can know that it waits, and its wait.
 * Only the fiber that runs can be there. Which of several waits of a fiber is meant is not said:
 * all of them end, and those that were not look again. */
void rd_fibers_unblock(rd_fibers *fibers, VALUE fiber) {
    rd_parking *parking = find(fibers, fiber);
    if (parking == NULL) fibers->permit = fiber;
    for (; parking != NULL; parking = parking->outer) unblock(parking);
}

bool rd_fibers_take_permit(rd_fibers *fibers) {
    if (fibers->permit == Qfalse || fibers->permit != rb_fiber_current()) return false;
    fibers->permit = Qfalse;
    return true;
}

static void raise_in(rd_parking *parking, VALUE error) {
    parking->error = error;
    rd_run_list_add(&parking->fibers->runnable, &parking->runnable, 1);
}

rd_parking *rd_fibers_find(const rd_fibers *fibers, VALUE fiber, VALUE strand) {
    rd_parking *parking = find(fibers, fiber);
    return parking != NULL ? parking : find_in_strand(fibers, strand);
}

static void on_limit(rd_deadline *deadline) {
    rd_limit *limit = RD_CONTAINER(deadline, rd_limit, deadline);
    rd_limit_raise_in(limit, rd_fibers_find(limit->fibers, limit->fiber, limit->strand));
}

rd_limit *rd_fibers_limit(rd_fibers *fibers, VALUE fiber, VALUE strand, VALUE error,
                          uint64_t due_ns) {
    rd_limit *limit = rd_limit_begin(fibers, fiber, strand, due_ns, on_limit);
    limit->error = error;
    return limit;
}

void rd_fibers_raise(rd_fibers *fibers, VALUE fiber, VALUE strand, VALUE error) {
    rd_parking *parking = rd_fibers_find(fibers, fiber, strand);
    if (parking != NULL) raise_in(parking, error);
}

void rd_fibers_raise_all(rd_fibers *fibers, VALUE error) {
    for (rd_list *node = fibers->parked.next; node != &fibers->parked; node = node->next) {
        raise_in(rd_parking_of_node(node), error);
    }
}
