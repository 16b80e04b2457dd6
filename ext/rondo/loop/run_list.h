/* SPDX-License-Identifier: MIT
 *
 * What an owner is to run next, in the order in which it became ready. The owner is a thread with
 * fibers. Any thread may make something ready: the one that runs a turn of the loop, one that
 * unlocks a mutex. It wakes the owner if that sleeps.
 *
 *   idle ──(rd_run_list_add)──▶ ready ──(rd_run_list_take)──▶ in the owner's batch
 *    ▲                            │                                  │
 *    └──────────(rd_run_list_drop)┴──────────────────────────────────┘
 *
 * Something stays ready until the owner drops it, so a second wake-up finds it so and changes no
 * list. The lock is the last one that is taken: it may be taken under the loop lock.
 */
#ifndef RD_LOOP_RUN_LIST_H
#define RD_LOOP_RUN_LIST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* Lives in its owner, which drops it before it is freed. */
typedef struct rd_runnable {
    rd_list node;
    int result; /* why it is ready: 0 is a deadline, anything else what its waker says */
    bool is_ready;
} rd_runnable;

typedef struct rd_run_list {
    pthread_mutex_t lock;
    rd_list ready;
    bool sleeping; /* the owner sleeps, or is about to */
    /* Ends the owner's sleep. Any thread; not under the lock of the list. */
    void (*wake)(struct rd_run_list *list);
} rd_run_list;

void rd_run_list_init(rd_run_list *list, void (*wake)(rd_run_list *list));

/* What is ready must have been dropped. */
void rd_run_list_clear(rd_run_list *list);

static inline void rd_runnable_init(rd_runnable *runnable) {
    *runnable = (rd_runnable){.result = 0};
    rd_list_init(&runnable->node);
}

/* Makes it ready. If it is ready already, it only gets the result in place of a deadline's. Any
 * thread. */
void rd_run_list_add(rd_run_list *list, rd_runnable *runnable, int result);

/* A wait that may be ended before it begins: it is open from the first rd_gate_open() on, until the
 * owner closes it. */
typedef struct rd_gate {
    rd_run_list *list;
    rd_runnable *behind; /* what waits for it; NULL: nothing does */
    bool is_open;
} rd_gate;

/* Makes what is behind it ready, now or when it comes. Any thread. */
void rd_gate_open(rd_gate *gate);

/* ---- for the owner ---- */

/* Puts it behind the gate. It is ready at once if the gate is open. */
void rd_gate_wait(rd_gate *gate, rd_runnable *runnable);
/* Nothing waits behind it any more. Returns whether it was open; it is closed now. */
bool rd_gate_leave(rd_gate *gate);

/* Moves what is ready to the end of `batch`, the first `most`. */
void rd_run_list_take(rd_run_list *list, rd_list *batch, uint32_t most);

bool rd_run_list_is_empty(rd_run_list *list);

/* Makes it ready in a list of the owner's, as its first. False: it is ready already. */
bool rd_run_list_hold(rd_run_list *list, rd_runnable *runnable, rd_list *first_of);

/* Takes it out of any list: it is idle. Returns the result. */
int rd_run_list_drop(rd_run_list *list, rd_runnable *runnable);

/* Call it before a sleep. False: something is ready, do not sleep. */
bool rd_run_list_begin_sleep(rd_run_list *list);
void rd_run_list_end_sleep(rd_run_list *list);

#endif
