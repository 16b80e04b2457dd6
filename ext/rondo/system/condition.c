/* SPDX-License-Identifier: MIT
 *
 * By pthread_condattr_setclock(3), which macOS lacks: it waits for a span of time instead. See
 * condition.h.
 */
#include "system/condition.h"

#include <errno.h>

#ifdef __APPLE__

void rd_condition_init(pthread_cond_t *condition) {
    pthread_cond_init(condition, NULL);
}

bool rd_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock,
                             const struct timespec *until) {
    struct timespec left;
    clock_gettime(CLOCK_MONOTONIC, &left);
    left.tv_sec = until->tv_sec - left.tv_sec;
    left.tv_nsec = until->tv_nsec - left.tv_nsec;
    if (left.tv_nsec < 0) {
        left.tv_sec--;
        left.tv_nsec += 1000000000;
    }
    if (left.tv_sec < 0) return false;
    return pthread_cond_timedwait_relative_np(condition, lock, &left) != ETIMEDOUT;
}

#else

void rd_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool rd_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock,
                             const struct timespec *until) {
    return pthread_cond_timedwait(condition, lock, until) != ETIMEDOUT;
}

#endif
