/* SPDX-License-Identifier: MIT
 *
 * What a server reports about itself as JSON: Puma's keys, for the tools that read those, and the
 * whole scoreboard under "rondo". Reads only shared memory; what no process keeps up to date, the
 * memory of processes and the queues of listening sockets, the kernel is asked for before. Any
 * thread.
 */
#ifndef RD_CONTROL_STATS_H
#define RD_CONTROL_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "control/accept_queue.h"
#include "control/certificates.h"
#include "cluster/scoreboard.h"

/* What the reports are made of. */
typedef struct rd_report {
    const rd_scoreboard *board;
    rd_accept_queue *queues; /* measured, as is the memory */
    size_t queue_count;
    const rd_certificate_list *certificates; /* or NULL */
    const char *versions;                    /* a JSON object, or NULL */
    const char *about;                       /* labels of rondo_build_info, or NULL */
    int64_t started_s;                       /* since the epoch */
    uint64_t master_bytes;                   /* memory of processes that have no row */
    uint64_t mold_bytes;
    uint64_t refused; /* requests of the control server itself, with 403 */
    bool cluster;
    uint32_t room; /* most workers: rows i and i + room belong to one worker, while a new process of
                    * it takes over */
} rd_report;

/* The number of the worker in a row of the scoreboard. */
static inline uint32_t rd_report_worker(const rd_report *report, uint32_t row) {
    return row % report->room;
}

/* Whether a newer process of the same worker than the one in this row exists. */
bool rd_report_is_leaving(const rd_report *report, uint32_t row);

/* Rows in this state; RD_SCORE_STATE_COUNT counts every row with a process. */
unsigned rd_report_count(const rd_report *report, rd_score_state state);

/* Whether every ready worker has something to do and none of them was seen in Ruby for this long:
 * the application hangs, and only a new process helps. */
bool rd_report_is_stuck(const rd_report *report, uint64_t within_ms);

/* Measures for the next report. Each row of the scoreboard gets the memory of its process. */
void rd_report_measure(rd_report *report);

/* Appends the JSON object of /stats. */
void rd_report_stats(const rd_report *report, rd_buffer *text);

/* The time below which `permille` of 1000 measurements lie. Within a bucket they count as spread
 * evenly between its bounds. 0 without measurements. */
uint64_t rd_histogram_percentile(const uint64_t counts[RD_HISTOGRAM_BUCKETS], unsigned permille);

#endif
