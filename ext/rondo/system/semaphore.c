/* SPDX-License-Identifier: MIT
 *
 * Waiting by futex(2), whose relative timeouts are monotonic; see semaphore.h.
 */
#include "system/semaphore.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system/clock.h"

/* What the kernel reads at SYS_futex, independent of the size of time_t in the C library. */
typedef struct rd_futex_time {
    long seconds, nanoseconds;
} rd_futex_time;

void rd_semaphore_post(rd_semaphore *semaphore) {
    atomic_fetch_add_explicit(&semaphore->count, 1, memory_order_release);
    /* Only the address is used. If the memory is gone, no thread wakes, or an unrelated one looks
     * once more. */
    syscall(SYS_futex, &semaphore->count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool take(rd_semaphore *semaphore) {
    uint32_t count = atomic_load_explicit(&semaphore->count, memory_order_relaxed);
    while (count > 0) {
        if (atomic_compare_exchange_weak_explicit(&semaphore->count, &count, count - 1,
                                                  memory_order_acquire, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

bool rd_semaphore_wait(rd_semaphore *semaphore, int64_t timeout_ns) {
    const uint64_t until = timeout_ns < 0 ? 0 : rd_clock_ns() + (uint64_t)timeout_ns;
    while (!take(semaphore)) {
        rd_futex_time left = {0, 0};
        if (timeout_ns >= 0) {
            const uint64_t now = rd_clock_ns();
            if (now >= until) return false;
            left.seconds = (long)((until - now) / 1000000000);
            left.nanoseconds = (long)((until - now) % 1000000000);
        }
        if (syscall(SYS_futex, &semaphore->count, FUTEX_WAIT_PRIVATE, 0,
                    timeout_ns < 0 ? NULL : &left, NULL, 0) != 0 &&
            errno == EINTR) {
            return take(semaphore);
        }
    }
    return true;
}
