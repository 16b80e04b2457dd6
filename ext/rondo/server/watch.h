/* SPDX-License-Identifier: MIT
 *
 * The watch thread: one native thread that does the work of the core (accept, read, parse, refuse,
 * send, deadlines) while the leader is away for long: in the application, or waiting for the GVL.
 *
 *   asleep ──(the leader wakes from its poll)──▶ ticking ──(a turn is overdue)──▶ turning
 *      ▲                                           │  ▲                             │
 *      └──────(the leader sleeps in its poll)──────┘  └─────(the leader is back)────┘
 *
 * It costs the leader one load when it wakes from its poll, and nothing else. While a thread needs
 * the GVL, it asks the one that computes to release it (decision 38); for that it also wakes up
 * while the leader sleeps, if calls compute.
 */
#ifndef RD_SERVER_WATCH_H
#define RD_SERVER_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "system/semaphore.h"
#include "loop/loop.h"

#define RD_WATCH_WAIT_US 50000 /* longest wait of a turn of the watch thread */
#define RD_WATCH_ASK_US  1000  /* the same, while requests wait for a sibling, or for the GVL */

/* How long a thread that computes keeps the GVL while requests wait: as long as the leader had it
 * before, so that each has a half under load, but within these bounds. The leader yields after as
 * long as it was away last, so the longest share is also how long it has the GVL itself. Both
 * together are how long a request waits under load, at most. */
#define RD_SHARE_MIN_NS 2000000
#define RD_SHARE_MAX_NS 5000000

struct rd_server;

typedef struct rd_watch {
    pthread_t thread;
    rd_semaphore wake;
    atomic_bool asleep, over;
    bool is_running;
    rd_ready_set found; /* by its own poll */
} rd_watch;

/* Returns 0 or an errno. Not twice without a stop in between. */
int rd_watch_start(struct rd_server *server);

/* Ends the thread and waits for it. Does nothing if it does not run. */
void rd_watch_stop(struct rd_server *server);

/* The leader has something to do: the watch thread observes it from now on. Any thread. */
static inline void rd_watch_begin(rd_watch *watch) {
    if (atomic_load(&watch->asleep) && atomic_exchange(&watch->asleep, false)) {
        rd_semaphore_post(&watch->wake);
    }
}

#endif
