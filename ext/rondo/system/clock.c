/* SPDX-License-Identifier: MIT
 *
 * Clocks by clock_gettime, which the vDSO answers without a system call; see clock.h.
 */
#include "system/clock.h"

#include <time.h>

static struct timespec read_clock(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return now;
}

uint64_t rd_clock_ns(void) {
    struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t rd_clock_ms(void) {
    return rd_clock_ns() / 1000000u;
}

int64_t rd_clock_wall_us(void) {
    struct timespec now = read_clock(CLOCK_REALTIME);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t rd_clock_wall_seconds(void) {
#ifdef CLOCK_REALTIME_COARSE
    return read_clock(CLOCK_REALTIME_COARSE).tv_sec;
#else
    return read_clock(CLOCK_REALTIME).tv_sec;
#endif
}
