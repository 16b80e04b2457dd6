/* SPDX-License-Identifier: MIT
 *
 * The two clocks: monotonic for deadlines and measuring, wall time for people. Any thread.
 */
#ifndef RD_SYSTEM_CLOCK_H
#define RD_SYSTEM_CLOCK_H

#include <stdint.h>

/* Monotonic time in nanoseconds. */
uint64_t rd_clock_ns(void);

/* Monotonic time in milliseconds. */
uint64_t rd_clock_ms(void);

/* Microseconds since the epoch. */
int64_t rd_clock_wall_us(void);

/* Seconds since the epoch; a new one may be some milliseconds late. */
int64_t rd_clock_wall_seconds(void);

#endif
