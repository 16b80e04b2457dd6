/* SPDX-License-Identifier: MIT
 *
 * A semaphore whose timeouts run on the monotonic clock. sem_timedwait(3) counts on the wall clock:
 * when that is stepped back, a wait of a millisecond takes as long as the step. sem_clockwait(3) is
 * not in musl and in glibc before 2.30, so this is a futex on every Linux. No memory but the
 * counter, so nothing is cleared. Any thread.
 */
#ifndef RD_SYSTEM_SEMAPHORE_H
#define RD_SYSTEM_SEMAPHORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct rd_semaphore {
    _Atomic uint32_t count;
} rd_semaphore;

static inline void rd_semaphore_init(rd_semaphore *semaphore) {
    atomic_init(&semaphore->count, 0);
}

/* The waiter may return, and the semaphore be gone, before this does. */
void rd_semaphore_post(rd_semaphore *semaphore);

/* Takes a post, or waits for one: at most so long, for ever if timeout_ns is negative. False: the
 * time is over, or a signal handler has run. */
bool rd_semaphore_wait(rd_semaphore *semaphore, int64_t timeout_ns);

#endif
