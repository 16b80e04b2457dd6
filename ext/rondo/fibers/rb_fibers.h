/* SPDX-License-Identifier: MIT
 *
 * The fibers of one thread: which of them wait, for what, and who runs next. Fibers switch by
 * `transfer`, so a wait inside an Enumerator's fiber does not end up in the code that called
 * `next`.
 *
 *   running ──(rd_fibers_park)──▶ parked ──(ready, deadline, error)──▶ in the run list ──▶ running
 *
 * A *strand* is a fiber that the scheduler has started, with all fibers that it resumes itself
 * (those of Enumerators). One of its fibers waits at a time. The thread's own fibers are a strand
 * too, named Qfalse. The one of them that waits is the *hub*: it waits for readiness, and control
 * comes back to it when a fiber ends, because Ruby returns to the thread's own fiber then. A fiber
 * that parks switches straight to the next one of the batch, and to the hub when that is empty.
 *
 * A wait is an `rd_parking`, on the heap: what wakes it never touches a stack that is gone. Ruby
 * may throw away a fiber that waits, or raise in one; rb_ensure() then undoes the wait.
 *
 * Who waits for the kernel, and on which loop, is not said here: `ops->wait`. In a script the
 * scheduler has a loop of its own. In a server the loop is the server's, and another thread may
 * run its turns: then it puts the parking in the run list of its owner, and wakes the owner.
 *
 * Under the GVL, on the thread of the fibers, where nothing else is said.
 */
#ifndef RD_FIBERS_FIBERS_H
#define RD_FIBERS_FIBERS_H

#include <ruby.h>
#include <ruby/st.h>

#include "loop/deadlines.h"
#include "loop/run_list.h"
#include "loop/waiters.h"

/* Descriptors that fibers may wait for at a time. */
#define RD_FIBERS_MOST_WAITERS 1048576

typedef struct rd_fibers rd_fibers;

typedef struct rd_fibers_ops {
    /* Sleeps until the run list has something, or until `until_ns` (UINT64_MAX: for ever; 0: only
     * looks). Releases the GVL to sleep, never raises. On the hub. */
    void (*wait)(rd_fibers *fibers, uint64_t until_ns);
    /* Around each use of `waiters`: the lock of their loop. */
    void (*lock)(rd_fibers *fibers);
    void (*unlock)(rd_fibers *fibers);
    /* Whether this process is a child that was forked in one of the fibers. The others are the
     * parent's, and do not go on here. */
    bool (*is_left)(const rd_fibers *fibers);
} rd_fibers_ops;

struct rd_limit;

/* A fiber that waits. */
typedef struct rd_parking {
    rd_list node; /* in rd_fibers.parked, or rd_fibers.spare */
    rd_runnable runnable;
    rd_deadline deadline;
    rd_fd_waiter waiter;
    rd_fibers *fibers;
    VALUE fiber, strand;
    VALUE error;  /* is raised when the wait ends: an exception, or its class and message; Qfalse:
                     none */
    VALUE starts; /* a new fiber that runs first; Qfalse: none */
    struct rd_limit *limit;   /* its time is up, and its error is raised when the wait ends */
    struct rd_parking *outer; /* a wait of the same fiber; this one is in a handler of a signal that
                               * came meanwhile */
    int own_fd;               /* is closed when the wait ends; -1: none */
    void (*undo)(struct rd_parking *parking, void *argument); /* NULL: nothing to undo */
    void *undo_argument;
    void *context;  /* that of its strand */
    bool may_run;   /* it was taken from a list of what is ready: its wait is over */
    bool unblocks;  /* `unblock` ends this wait */
    bool unblocked; /* it has */
    bool is_guest;  /* its fiber is not in rd_fibers_park(): it is switched to, and that is all */
} rd_parking;

struct rd_fibers {
    const rd_fibers_ops *ops;
    void *owner; /* of the code behind `ops` */
    rd_fd_waiters *waiters;
    rd_run_list runnable;
    rd_deadlines deadlines;
    rd_list urgent; /* parkings that go before the batch: those who have started others */
    rd_list batch;  /* what was ready when the hub looked last */
    rd_list parked, spare, limits;
    uint32_t parked_count, guests; /* in `parked`; of these, those that do not wait */
    st_table *by_fiber;            /* fiber => its innermost rd_parking */
    VALUE hub;          /* the fiber of the thread's own strand that waits or starts others */
    VALUE running;      /* strand that was switched to last; Qfalse: the thread's own */
    VALUE permit;       /* fiber that was unblocked before it was blocked; Qfalse: none */
    VALUE launcher;     /* starts new fibers for the hub (rb_launcher.h); Qfalse: the hub does */
    VALUE launched;     /* what it is to start; Qfalse: nothing */
    VALUE launch_error; /* what was raised in it, and the state of rb_protect(); 0: nothing was */
    int launch_state;
    void *context; /* of the strand that runs: what its first fiber has set here; NULL: nothing */
    uint64_t since_ns; /* since when a fiber has the thread, if it is noted; 0: the hub has it */
    bool is_timed;     /* it is noted */
    bool hub_turns;    /* the hub is in its loop, not starting a fiber */
    bool is_closed;
};

void rd_fibers_init(rd_fibers *fibers, const rd_fibers_ops *ops, rd_fd_waiters *waiters,
                    void (*wake)(rd_run_list *list));
/* Ends what waits are registered for. A fiber that still waits gets an error if anybody switches to
 * it, so its parking stays until rd_fibers_free(). `is_parents`: this is a forked child, and
 * the waits are registered for the parent. */
void rd_fibers_close(rd_fibers *fibers, bool is_parents);
/* No fiber is left that has waited. After rd_fibers_close(). */
void rd_fibers_free(rd_fibers *fibers);
void rd_fibers_mark(const rd_fibers *fibers);
size_t rd_fibers_memory(const rd_fibers *fibers);

/* Begins a wait of the fiber that runs now. What may wake it is set afterwards; then
 * rd_fibers_park() has to follow. */
rd_parking *rd_parking_begin(rd_fibers *fibers);

/* Also wakes it when this descriptor is ready, with the directions that are, or a negative errno.
 * Returns what rd_waiters_add() returns. */
int rd_parking_wait_for(rd_parking *parking, int fd, unsigned wanted);

/* Waits until the parking is in the run list. Returns the result that was given there, or raises.
 * The parking is gone then, and what it was registered for is undone; so is what its `undo` undoes,
 * once in any case. */
int rd_fibers_park(rd_parking *parking);

/* The time of a wait that may last that long: nil is for ever. Raises for what is no time. */
uint64_t rd_fibers_deadline(VALUE seconds);

/* Starts a new fiber at once, and returns when it waits, or has ended. */
void rd_fibers_start(rd_fibers *fibers, VALUE fiber);

/* For a fiber that has nothing to do: back to the hub, until it is started again. */
void rd_fibers_rest(rd_fibers *fibers);

/* Runs fibers until none waits. On the thread's own fiber. */
void rd_fibers_run(rd_fibers *fibers);

/* For a thread whose own fiber does more than that: this fiber is the hub from now on, until
 * rd_fibers_stop_hub(). It decides when fibers run. */
void rd_fibers_begin_hub(rd_fibers *fibers);
void rd_fibers_stop_hub(rd_fibers *fibers);

/* Whether a fiber can run now. On the hub. */
bool rd_fibers_can_run(rd_fibers *fibers);

/* Runs fibers that rd_fibers_can_run() has found, at most about `most` of them. May raise what one
 * of them raises. On the hub. */
void rd_fibers_run_some(rd_fibers *fibers, uint32_t most);

/* Ends the wait of this fiber, if `unblock` may end it, with the result 1. A fiber that does not
 * wait yet does not begin its next such wait. Any thread with the GVL. */
void rd_fibers_unblock(rd_fibers *fibers, VALUE fiber);

/* Whether the fiber that runs now was unblocked already; forgets it. */
bool rd_fibers_take_permit(rd_fibers *fibers);

/* The wait of the fiber; or, if it runs another fiber (an Enumerator's), that of the strand. NULL:
 * neither waits. */
rd_parking *rd_fibers_find(const rd_fibers *fibers, VALUE fiber, VALUE strand);

/* A limit for the fiber, until rd_limit_end(). At `due_ns` (UINT64_MAX: when rd_limit_raise_in()
 * says so) the error, class and message, is raised where it waits. If that wait has been ended
 * already, it is raised where it waits next. */
struct rd_limit *rd_fibers_limit(rd_fibers *fibers, VALUE fiber, VALUE strand, VALUE error,
                                 uint64_t due_ns);

/* Raises in the fiber where it waits. Does nothing if neither it nor its strand waits. Any thread
 * with the GVL. */
void rd_fibers_raise(rd_fibers *fibers, VALUE fiber, VALUE strand, VALUE error);

/* Raises in all fibers where they wait, one after the other as they get their turn. */
void rd_fibers_raise_all(rd_fibers *fibers, VALUE error);

/* The fiber that runs now has the thread anew, as if it had been switched to. */
void rd_fibers_note_time(rd_fibers *fibers);

/* The strand that runs now. */
VALUE rd_fibers_strand(rd_fibers *fibers);

#endif
