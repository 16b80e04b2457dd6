/* SPDX-License-Identifier: MIT
 *
 * Tasks of the application: blocks that run on its threads without a request, at once, after a
 * time, every so often, or when nothing else waits.
 *
 *   new ──▶ timed ──(due)──▶ waiting ──(a seat)──▶ running ──(returned)──▶ over
 *    │        ▲                 ▲                     │
 *    ├────────┼─────────────────┤                     │
 *    └─▶ idle ┼─(nothing waits)─┘                     │
 *             └──────────(it runs again)──────────────┘
 *
 * Tasks wait in one line, which has seats: so many of them run at once, and the rest of the threads
 * is for requests. A task that repeats is timed again when it has returned. So it never runs beside
 * itself, and runs that were missed are not made up for. From the beginning of a stop there are no
 * timers, and when the stop's time is over no task begins any more.
 *
 * A task lives in its owner, which cancels it before it is freed. Under the loop lock.
 */
#ifndef RD_REQUEST_TASKS_H
#define RD_REQUEST_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "cluster/scoreboard.h"
#include "loop/app_timer.h"

#define RD_TASK_FOR_EVER UINT64_MAX

typedef enum rd_task_state {
    RD_TASK_NEW,
    RD_TASK_TIMED,   /* its time is still to come */
    RD_TASK_IDLE,    /* it waits until nothing else does */
    RD_TASK_WAITING, /* for a thread */
    RD_TASK_RUNNING, /* in the application */
    RD_TASK_OVER,    /* it will not run again */
} rd_task_state;

typedef struct rd_tasks rd_tasks;

typedef struct rd_task {
    rd_list node; /* in the list of its state */
    rd_app_timer timer;
    rd_tasks *tasks;      /* NULL: it is new */
    uint64_t interval_ns; /* before each run; 0: none */
    uint64_t runs;        /* still to come; RD_TASK_FOR_EVER */
    uint64_t due_ns;      /* since when it may run */
    rd_task_state state;
    bool when_idle;
} rd_task;

typedef enum rd_tasks_phase { RD_TASKS_OPEN, RD_TASKS_DRAINING, RD_TASKS_ENDED } rd_tasks_phase;

struct rd_tasks {
    rd_list waiting, idle, timed;
    rd_app_timers timers;
    rd_score_row *const *score;
    uint32_t *ready_count; /* of the server's queue of events: counts the line while it is ready */
    uint32_t seats;        /* tasks that may run at once */
    uint32_t running;
    uint32_t waiting_len;
    uint32_t live; /* tasks that are not over */
    uint64_t begun;
    uint64_t dropped;  /* accepted, and never begun, because the server has stopped */
    uint64_t until_ns; /* end of this turn's time for tasks */
    unsigned turn;     /* that turn */
    bool is_ready;     /* a task can be taken */
    rd_tasks_phase phase;
};

void rd_tasks_init(rd_tasks *tasks, rd_loop *loop, uint32_t seats);

/* `when_idle`: it begins when nothing else waits, and the other two numbers are 0 and 1. */
void rd_task_init(rd_task *task, uint64_t interval_ns, uint64_t runs, bool when_idle);

/* Begins to wait, for its time or for a thread. It is over at once if there are no timers any more,
 * or no tasks; the latter counts as dropped. */
void rd_tasks_add(rd_tasks *tasks, rd_task *task, uint64_t now_ns);

/* The first task that waits; with `is_idle` also one for that. NULL: none, or all seats are taken.
 */
rd_task *rd_tasks_take(rd_tasks *tasks, bool is_idle, uint64_t now_ns);

/* The application has returned from the task, which it took at its due_ns. False: it is over. */
bool rd_tasks_give_back(rd_tasks *tasks, rd_task *task, uint64_t now_ns);

/* It does not run again. True: it would have. A run that has begun goes on. */
bool rd_task_cancel(rd_task *task);

/* A stop begins: timers end, and tasks that wait for an idle server wait for it no longer. */
void rd_tasks_drain(rd_tasks *tasks);

/* The time for a stop is over, or the server is: drops what waits. */
void rd_tasks_end(rd_tasks *tasks);

/* Whether a stop must wait. */
static inline bool rd_tasks_live(const rd_tasks *tasks) {
    return tasks->running + tasks->waiting_len > 0;
}

#endif
