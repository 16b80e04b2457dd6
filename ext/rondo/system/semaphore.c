/* SPDX-License-Identifier: MIT
 *
 * Waiting by futex(2), whose relative timeouts are monotonic. Other systems get a few places to
 * wait at, found by the address of the semaphore, as in the kernel. See semaphore.h.
 */
#include "system/semaphore.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "system/clock.h"
#include "system/platform.h"

#ifdef RD_LINUX
#include <linux/futex.h>
#include <sys/syscall.h>
#else
#include "system/condition.h"
#endif

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

#ifdef RD_LINUX

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

#else

enum { PLACES = 16, SLICE_MS = 100 };

/* The locks of the process, not of a server: waiting costs no memory in a semaphore. */
static struct rd_place {
    pthread_mutex_t lock;
    pthread_cond_t posted;
} places[PLACES];

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_places(void) {
    for (int i = 0; i < PLACES; i++) {
        pthread_mutex_init(&places[i].lock, NULL);
        rd_condition_init(&places[i].posted);
    }
}

/* A forked child begins anew: the threads that wait there, or hold a lock, are its parent's. */
static void init_places(void) {
    make_places();
    pthread_atfork(NULL, NULL, make_places);
}

static struct rd_place *place_of(const rd_semaphore *semaphore) {
    pthread_once(&once, init_places);
    return &places[((uintptr_t)semaphore >> 6) % PLACES];
}

void rd_semaphore_post(rd_semaphore *semaphore) {
    struct rd_place *place = place_of(semaphore);
    pthread_mutex_lock(&place->lock);
    atomic_fetch_add_explicit(&semaphore->count, 1, memory_order_release);
    pthread_cond_broadcast(&place->posted);
    pthread_mutex_unlock(&place->lock);
}

static struct timespec later(uint64_t ns) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    const uint64_t sum = (uint64_t)time.tv_nsec + ns;
    time.tv_sec += (time_t)(sum / 1000000000);
    time.tv_nsec = (long)(sum % 1000000000);
    return time;
}

/* A condition variable does not say that a signal handler has run. So each slice of time ends as if
 * one had. */
bool rd_semaphore_wait(rd_semaphore *semaphore, int64_t timeout_ns) {
    const uint64_t slice = (uint64_t)SLICE_MS * 1000000;
    const bool is_short = timeout_ns >= 0 && (uint64_t)timeout_ns < slice;
    const struct timespec until = later(is_short ? (uint64_t)timeout_ns : slice);
    struct rd_place *place = place_of(semaphore);
    bool in_time = true, taken;
    pthread_mutex_lock(&place->lock);
    while (!(taken = take(semaphore)) && in_time) {
        in_time = rd_condition_wait_until(&place->posted, &place->lock, &until);
    }
    pthread_mutex_unlock(&place->lock);
    return taken;
}

#endif
