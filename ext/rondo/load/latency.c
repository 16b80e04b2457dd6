/* SPDX-License-Identifier: MIT
 *
 * The histogram of waits, see latency.h. */
#include "load/latency.h"

static unsigned bucket_of(uint64_t nanoseconds) {
    if (nanoseconds < (1u << RD_LATENCY_SUB_BITS)) return (unsigned)nanoseconds;
    unsigned power = 63u - (unsigned)__builtin_clzll(nanoseconds);
    unsigned shift = power - RD_LATENCY_SUB_BITS;
    return ((shift + 1) << RD_LATENCY_SUB_BITS) +
           (unsigned)((nanoseconds >> shift) - (1u << RD_LATENCY_SUB_BITS));
}

static uint64_t bucket_middle(unsigned bucket) {
    if (bucket < (1u << RD_LATENCY_SUB_BITS)) return bucket;
    unsigned shift = (bucket >> RD_LATENCY_SUB_BITS) - 1;
    uint64_t low =
        ((uint64_t)(bucket & ((1u << RD_LATENCY_SUB_BITS) - 1)) + (1u << RD_LATENCY_SUB_BITS))
        << shift;
    return low + ((1ull << shift) >> 1);
}

void rd_latency_add(rd_latency *latency, uint64_t nanoseconds) {
    latency->buckets[bucket_of(nanoseconds)]++;
    latency->count++;
    latency->sum_ns += nanoseconds;
    if (nanoseconds > latency->longest_ns) latency->longest_ns = nanoseconds;
}

double rd_latency_percentile_us(const rd_latency *latency, double share) {
    uint64_t rank = (uint64_t)((double)latency->count * share), seen = 0;
    uint64_t found = latency->longest_ns; /* no wait was longer, whatever its bucket could hold */
    for (unsigned i = 0; i < RD_LATENCY_BUCKETS; i++) {
        seen += latency->buckets[i];
        if (seen <= rank) continue;
        if (bucket_middle(i) < found) found = bucket_middle(i);
        break;
    }
    return (double)found / 1000.0;
}
