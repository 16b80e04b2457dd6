/* SPDX-License-Identifier: MIT
 *
 * Preloaded: a wall clock that is some seconds away from the kernel's (CLOCK_STEP), as it is for whoever read
 * it before a step. A wait until a time of that clock is too long by the step, or over at once. Compiled by
 * test/integration/clock_test.rb.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
    const char *step = getenv("CLOCK_STEP");
    const int result = (int)syscall(SYS_clock_gettime, id, now);
    if ((id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) && step) now->tv_sec += atol(step);
    return result;
}
