/* SPDX-License-Identifier: MIT
 *
 * What a server tells about itself as JSON: Puma's keys, for the tools that read those, and
 * everything on the scoreboard under "rondo". Reads only what is shared; any thread.
 */
#ifndef RD_CONTROL_STATS_H
#define RD_CONTROL_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "control/accept_queue.h"
#include "cluster/scoreboard.h"

/* Where the reports come from. */
typedef struct rd_report {
    const rd_scoreboard *board;
    const rd_accept_queue *queues; /* measured by the caller */
    size_t queue_count;
    const char *versions;  /* a JSON object, or NULL */
    const char *about;     /* labels of rondo_build_info, or NULL */
    int64_t started_s;     /* since the epoch */
    uint64_t master_bytes; /* memory of processes that are on no board; measured by the caller */
    uint64_t mold_bytes;
    bool cluster;
    uint32_t
        room; /* for workers: rows i and i + room are of one, while it takes over from itself */
} rd_report;

/* The number of the worker in a row of the board. */
static inline uint32_t rd_report_worker(const rd_report *report, uint32_t row) {
    return row % report->room;
}

/* Whether another process of the same worker was started after the one in this row. */
bool rd_report_is_leaving(const rd_report *report, uint32_t row);

/* Slots in that state; RD_SCORE_STATE_COUNT for every slot with a process. */
unsigned rd_report_count(const rd_report *report, rd_score_state state);

/* Whether every ready worker has something to do and none of them was seen in Ruby for that long:
 * the application hangs, and only a new process helps. */
bool rd_report_is_stuck(const rd_report *report, uint64_t within_ms);

/* Appends the JSON object of /stats. */
void rd_report_stats(const rd_report *report, rd_buffer *text);

/* The time below which `permille` of 1000 measurements lie, between the bounds of its bucket as if
 * they were spread evenly there; 0 without any. */
uint64_t rd_histogram_percentile(const uint64_t counts[RD_HISTOGRAM_BUCKETS], unsigned permille);

#endif
