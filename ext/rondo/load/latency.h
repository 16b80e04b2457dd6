/* SPDX-License-Identifier: MIT
 *
 * Waits as a histogram: 64 buckets for each power of two of nanoseconds, so that a percentile is
 * right to 1.6 % whatever its size. Belongs to load.c and to the clients of bench/. Any thread.
 */
#ifndef RD_LOAD_LATENCY_H
#define RD_LOAD_LATENCY_H

#include <stdint.h>

enum { RD_LATENCY_SUB_BITS = 6, RD_LATENCY_BUCKETS = 64 << RD_LATENCY_SUB_BITS };

typedef struct rd_latency {
    uint64_t count, sum_ns, longest_ns;
    uint64_t buckets[RD_LATENCY_BUCKETS];
} rd_latency;

void rd_latency_add(rd_latency *latency, uint64_t nanoseconds);

/* The microseconds that `share` (0 to 1) of the waits did not exceed; 0 without any waits. */
double rd_latency_percentile_us(const rd_latency *latency, double share);

#endif
