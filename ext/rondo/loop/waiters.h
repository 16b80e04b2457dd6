/* SPDX-License-Identifier: MIT
 *
 * Who waits for which descriptor: the way for descriptors that the loop does not own, those of the
 * application, to be waited for in the loop's poller. Several waiters may wait for one descriptor,
 * each for its directions; the poller knows one source for it.
 *
 *   add ──▶ waiting ──┬─(ready)──▶ on_ready(directions) ──▶ free again
 *                     ├─(close)──▶ on_ready(-EBADF)     ──▶
 *                     └─(remove)─────────────────────────▶
 *
 * A waiter waits once. A descriptor that has no waiter is not in the poller, so it may be closed
 * without a word. One that has some is announced by rd_waiters_close() first. If it is not, its
 * waiters are woken with -EBADF when its number is waited for again. A waiter may be woken although
 * nothing can be read: it tries, and waits again.
 *
 * Nothing here takes the descriptor over, and nothing runs until a waiter is added. Under the loop
 * lock. When the loop sleeps in a poller that is not live, whoever adds a waiter wakes it.
 */
#ifndef RD_LOOP_WAITERS_H
#define RD_LOOP_WAITERS_H

#include "loop/loop.h"

/* Lives in its owner, who removes it before it goes. */
typedef struct rd_waiter {
    rd_list node;
    int fd;
    unsigned wanted; /* RD_READABLE, RD_WRITABLE or both: any of them wakes it */
    /* The directions that are ready and wanted, or a negative errno. The waiter is not waiting any
     * more: it may be added again, and so may any other be added, removed or closed. */
    void (*on_ready)(struct rd_waiter *waiter, int ready);
} rd_waiter;

struct rd_waited;

typedef struct rd_waiters {
    rd_loop *loop;
    struct rd_waited **by_fd; /* NULL where nothing waits */
    int size;
    rd_list lost; /* sources that the poller may still report, see waiters.c */
    uint32_t count, limit;
} rd_waiters;

/* `limit`: waiters at a time. */
void rd_waiters_init(rd_waiters *waiters, rd_loop *loop, uint32_t limit);

/* Wakes all with -ECANCELED. Before the loop is cleared. */
void rd_waiters_clear(rd_waiters *waiters);

void rd_waiter_init(rd_waiter *waiter, void (*on_ready)(rd_waiter *waiter, int ready));

static inline bool rd_waiter_waits(const rd_waiter *waiter) {
    return rd_list_is_linked(&waiter->node);
}

/* 0: it waits. 1: it does not, because such a descriptor (of a file) is always ready. -1 with
 * errno: ENOBUFS at the limit, EBADF, EEXIST for a descriptor of the loop's own. */
int rd_waiters_add(rd_waiters *waiters, rd_waiter *waiter, int fd, unsigned wanted);

/* Waits no more; nothing if it does not wait. */
void rd_waiters_remove(rd_waiters *waiters, rd_waiter *waiter);

/* The descriptor is about to be closed. */
void rd_waiters_close(rd_waiters *waiters, int fd);

#endif
