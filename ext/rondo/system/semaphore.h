/* SPDX-License-Identifier: MIT
 *
 * A semaphore whose timeouts use the monotonic clock. sem_timedwait(3) uses the wall clock: when
 * that clock is set back, a wait of a millisecond lasts as long as the step. sem_clockwait(3) does
 * not exist in musl and in glibc before 2.30, so this is a futex on every Linux. Its only memory is
 * the counter, so there is nothing to clear. Any thread.
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

/* The waiter may return, and free the semaphore, before this function returns. */
void rd_semaphore_post(rd_semaphore *semaphore);

/* Takes a post, or waits for one: at most `timeout_ns`, or for ever if it is negative. Returns
 * false when the time is over, or when a signal handler has run. */
bool rd_semaphore_wait(rd_semaphore *semaphore, int64_t timeout_ns);

#endif
