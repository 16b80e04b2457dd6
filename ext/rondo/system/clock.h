/* SPDX-License-Identifier: MIT
 *
 * The two clocks: monotonic for deadlines and measuring, wall time for people. Any thread.
 */
#ifndef RD_SYSTEM_CLOCK_H
#define RD_SYSTEM_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Monotonic time in nanoseconds. */
uint64_t rd_clock_ns(void);

/* Monotonic time in milliseconds. */
uint64_t rd_clock_ms(void);

/* A point in time, or a duration, in the form that system calls take. */
static inline struct timespec rd_clock_timespec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

/* Microseconds since the epoch. */
int64_t rd_clock_wall_us(void);

/* Seconds since the epoch. May still return the old second for some milliseconds. */
int64_t rd_clock_wall_seconds(void);

#endif
