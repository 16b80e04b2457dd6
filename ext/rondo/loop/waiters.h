/* SPDX-License-Identifier: MIT
 *
 * Waiters for descriptors that the loop does not own: the application can wait for its descriptors
 * in the loop's poller. Several waiters may wait for one descriptor, each for its directions; the
 * poller has one source for it.
 *
 *   add ──▶ waiting ──┬─(ready)──▶ on_ready(directions) ──▶ free again
 *                     ├─(close)──▶ on_ready(-EBADF)     ──▶
 *                     └─(remove)─────────────────────────▶
 *
 * A waiter waits once. A descriptor without waiters is not in the poller, so it may be closed
 * without notice. For a descriptor with waiters, rd_waiters_close() must be called first. Otherwise
 * its waiters are woken with -EBADF when its number is waited for again, or when one of them ends
 * its wait. A waiter may be woken although nothing can be read: it tries, and waits again.
 *
 * The poller reports a descriptor once. If the thread that got the report drops it
 * (rd_loop_drop()), the poller is asked again, a part of the descriptors in each turn.
 *
 * Descriptors stay with their owners, and nothing runs until a waiter is added. Under the loop
 * lock. If the loop sleeps in a poller that is not live, the caller that adds a waiter must wake
 * it.
 */
#ifndef RD_LOOP_WAITERS_H
#define RD_LOOP_WAITERS_H

#include "loop/loop.h"

/* Lives in its owner, which removes it before it is freed. */
typedef struct rd_fd_waiter {
    rd_list node;
    int fd;
    unsigned wanted; /* RD_READABLE, RD_WRITABLE or both: either direction wakes it */
    /* `ready` is the wanted directions that are ready, or a negative errno. The waiter does not
     * wait any more. It may be added again, and any other waiter added, removed or closed. */
    void (*on_ready)(struct rd_fd_waiter *waiter, int ready);
} rd_fd_waiter;

struct rd_waited;

typedef struct rd_fd_waiters {
    rd_loop *loop;
    struct rd_waited **by_fd; /* NULL where nothing waits */
    int size;
    rd_list lost; /* sources that the poller may still report, see waiters.c */
    rd_once once;
    rd_timer again; /* armed while the poller is asked again */
    int next;       /* descriptor, of those */
    uint32_t count, limit;
} rd_fd_waiters;

/* `limit`: how many may wait at a time. */
void rd_waiters_init(rd_fd_waiters *waiters, rd_loop *loop, uint32_t limit);

/* Wakes all waiters with -ECANCELED. Before the loop is cleared. */
void rd_waiters_clear(rd_fd_waiters *waiters);

void rd_waiter_init(rd_fd_waiter *waiter, void (*on_ready)(rd_fd_waiter *waiter, int ready));

static inline bool rd_waiter_waits(const rd_fd_waiter *waiter) {
    return rd_list_is_linked(&waiter->node);
}

/* Returns 0 when the waiter waits, and 1 when it does not, because such a descriptor (of a file) is
 * always ready. Returns -1 with errno: ENOBUFS at the limit, EBADF, EEXIST for a descriptor that
 * the loop owns. */
int rd_waiters_add(rd_fd_waiters *waiters, rd_fd_waiter *waiter, int fd, unsigned wanted);

/* Ends the wait. Does nothing if the waiter does not wait. If the descriptor was closed without
 * notice, it wakes the other waiters. */
void rd_waiters_remove(rd_fd_waiters *waiters, rd_fd_waiter *waiter);

/* Must be called before the descriptor is closed. */
void rd_waiters_close(rd_fd_waiters *waiters, int fd);

#endif
