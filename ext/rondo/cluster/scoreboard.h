/* SPDX-License-Identifier: MIT
 *
 * The scoreboard: memory that all processes of a server share, one row for each process that
 * serves. A worker writes its own row and all processes read all rows: for balance, hang
 * detection, metrics. A few numbers have other writers: siblings count `arriving`; the master
 * writes pid, generation, state and their times; the hub's thread writes what it relayed; rss_bytes
 * is measured by the process that shows it, which also says that somebody watches. There are no
 * locks: every number is independent and is read and written whole.
 *
 * A master keeps two rows for each slot of its cluster (each row is a seat in lib/rondo), because
 * two workers serve a slot while one takes over from the other.
 *
 * The memory is behind a descriptor, so that a process started by exec can map it again.
 */
#ifndef RD_CLUSTER_SCOREBOARD_H
#define RD_CLUSTER_SCOREBOARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/journal.h"
#include "cluster/view.h"

#define RD_SCOREBOARD_ROWS_MAX 512
#define RD_HISTOGRAM_BUCKETS   24 /* the last one counts everything above */

typedef enum rd_score_state {
    RD_SCORE_EMPTY,
    RD_SCORE_BOOTING,
    RD_SCORE_READY,
    RD_SCORE_DRAINING,
    RD_SCORE_STATE_COUNT
} rd_score_state;

/* Times in microseconds. Bucket i counts times up to rd_histogram_bound_us(i). */
typedef struct rd_histogram {
    _Atomic uint64_t buckets[RD_HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum_us;
} rd_histogram;

/* The process that was in a row before, for who shows lives: it may have begun and ended between
 * two looks. */
typedef struct rd_score_left {
    _Atomic uint64_t pid; /* 0: there was none */
    _Atomic uint64_t generation, started_ms, ready_ms;
    _Atomic uint64_t was_told; /* whether it had been told to end */
} rd_score_left;

typedef struct rd_score_row {
#define RD_SCORE(name, kind, unit, doc) _Atomic uint64_t name;
#include "cluster/scoreboard.def"
#undef RD_SCORE
    rd_histogram wait;     /* from readable to the application */
    rd_histogram duration; /* in the application */
    rd_score_left left;    /* which rd_score_clear() remembers */
    rd_shared_view view;   /* written while somebody watches, see watched_ms */
    _Alignas(64) char end[64];
} rd_score_row;

typedef struct rd_scoreboard {
    int fd; /* owned */
    uint32_t row_count;
    rd_score_row *rows;
    rd_journal *journal; /* of all processes */
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

/* Creates a scoreboard, all zero. Returns 0, or -1 with errno set. The descriptor is
 * close-on-exec. */
int rd_scoreboard_create(rd_scoreboard *board, uint32_t rows);

/* Maps a scoreboard that another process created, and takes the descriptor over on success. Returns
 * 0, or -1 with errno set: EINVAL when another version wrote it. */
int rd_scoreboard_open(rd_scoreboard *board, int fd);

void rd_scoreboard_close(rd_scoreboard *board);

/* A number of a row, for who shows it: nothing else depends on it. */
static inline uint64_t rd_score_load(const _Atomic uint64_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* Reads any number of a row by its row. */
uint64_t rd_score_get(const rd_score_row *row, const rd_score_info *info);
void rd_score_set(rd_score_row *row, const rd_score_info *info, uint64_t value);
const rd_score_info *rd_score_find(const char *name, size_t len);

/* Zeroes a row with its histograms and its view. */
void rd_score_clear(rd_score_row *row);

/* The upper bound of a bucket; UINT64_MAX for the last one. */
uint64_t rd_histogram_bound_us(unsigned bucket);

/* One writer at a time. */
void rd_histogram_add(rd_histogram *histogram, uint64_t us);

#endif
