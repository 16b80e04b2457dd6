/* SPDX-License-Identifier: MIT
 *
 * A condition variable that is waited for by the monotonic clock. Any thread.
 */
#ifndef RD_SYSTEM_CONDITION_H
#define RD_SYSTEM_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

void rd_condition_init(pthread_cond_t *condition);

/* Waits, with the mutex held, until it is signalled or CLOCK_MONOTONIC reaches `until`. Returns
 * false when that time has come. */
bool rd_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock,
                             const struct timespec *until);

#endif
