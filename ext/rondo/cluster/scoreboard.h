/* SPDX-License-Identifier: MIT
 *
 * The scoreboard: a piece of memory that all processes of a server share, one slot for each process
 * that serves. A worker writes its own slot, everybody reads all of them: for balance, hang
 * detection, metrics. A few numbers of it have other writers: siblings count `arriving`, the master
 * says pid, generation, state and when they changed, the hub's thread what it relayed, whoever
 * shows rss_bytes measures it. No locks: every number stands for itself and is read and written
 * whole.
 *
 * A master keeps two of these slots for each place in its cluster (a `seat` in lib/rondo), because
 * two workers have it while one takes over from the other.
 *
 * It lies behind a descriptor, so that a process that was started by exec finds it again.
 */
#ifndef RD_CLUSTER_SCOREBOARD_H
#define RD_CLUSTER_SCOREBOARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RD_SCOREBOARD_SLOTS_MAX 512
#define RD_HISTOGRAM_BUCKETS    24 /* the last one is everything above */

typedef enum rd_score_state {
    RD_SCORE_EMPTY,
    RD_SCORE_BOOTING,
    RD_SCORE_READY,
    RD_SCORE_DRAINING,
    RD_SCORE_STATE_COUNT
} rd_score_state;

/* Times in microseconds; bucket i counts those up to rd_histogram_bound_us(i). */
typedef struct rd_histogram {
    _Atomic uint64_t buckets[RD_HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum_us;
} rd_histogram;

typedef struct rd_score_slot {
#define RD_SCORE(name, kind, unit, doc) _Atomic uint64_t name;
#include "cluster/scoreboard.def"
#undef RD_SCORE
    rd_histogram wait;     /* from readable to the application */
    rd_histogram duration; /* in the application */
    _Alignas(64) char end[64];
} rd_score_slot;

typedef struct rd_scoreboard {
    int fd; /* owned */
    uint32_t slot_count;
    rd_score_slot *slots;
    size_t bytes;
} rd_scoreboard;

typedef enum rd_score_kind { RD_SCORE_FACT, RD_SCORE_GAUGE, RD_SCORE_COUNTER } rd_score_kind;

typedef struct rd_score_info {
    const char *name;
    rd_score_kind kind;
    const char *unit;
    const char *doc;
    size_t offset;
} rd_score_info;

extern const rd_score_info rd_score_table[];
extern const size_t rd_score_count;

/* "empty", "booting", "ready", "draining"; "unknown" for anything else. */
const char *rd_score_state_name(uint64_t state);

/* A new one, all zero; 0, or -1 with errno set. The descriptor is close-on-exec. */
int rd_scoreboard_create(rd_scoreboard *board, uint32_t slots);

/* Maps one that another process created; takes the descriptor over if it succeeds. 0, or -1 with
 * errno set: EINVAL when what lies behind it was written by another version. */
int rd_scoreboard_open(rd_scoreboard *board, int fd);

void rd_scoreboard_close(rd_scoreboard *board);

/* Any number of a slot by its row. */
uint64_t rd_score_get(const rd_score_slot *slot, const rd_score_info *row);
void rd_score_set(rd_score_slot *slot, const rd_score_info *row, uint64_t value);
const rd_score_info *rd_score_find(const char *name, size_t len);

/* Zeroes a slot, its histograms included. */
void rd_score_clear(rd_score_slot *slot);

/* The upper bound of a bucket; UINT64_MAX for the last one. */
uint64_t rd_histogram_bound_us(unsigned bucket);

/* One writer at a time. */
void rd_histogram_add(rd_histogram *histogram, uint64_t us);

#endif
