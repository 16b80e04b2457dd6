/* SPDX-License-Identifier: MIT
 *
 * Shared memory behind a descriptor, and access by name; see scoreboard.h.
 */
#include "cluster/scoreboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/fd.h"

#define FIRST_BOUND  16 /* us; each further bucket reaches twice as far */
#define HEADER_BYTES 64

typedef struct rd_scoreboard_header {
    uint64_t magic;
    uint64_t row_bytes;
    uint64_t row_count;
} rd_scoreboard_header;

const rd_score_info rd_score_table[] = {
#define fact                            RD_SCORE_FACT
#define gauge                           RD_SCORE_GAUGE
#define counter                         RD_SCORE_COUNTER
#define RD_SCORE(name, kind, unit, doc) {#name, kind, unit, doc, offsetof(rd_score_row, name)},
#include "cluster/scoreboard.def"
#undef RD_SCORE
#undef fact
#undef gauge
#undef counter
};

const size_t rd_score_count = sizeof(rd_score_table) / sizeof(rd_score_table[0]);

/* A hash (FNV-1a) of the names of the rows and their order. It differs for the scoreboard of
 * another version. */
static uint64_t magic(void) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < rd_score_count; i++) {
        for (const char *c = rd_score_table[i].name; c == rd_score_table[i].name || c[-1] != 0;
             c++) {
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        }
    }
    return hash;
}

const char *rd_score_state_name(uint64_t state) {
    static const char *const names[RD_SCORE_STATE_COUNT] = {"empty", "booting", "ready",
                                                            "draining"};
    return state < RD_SCORE_STATE_COUNT ? names[state] : "unknown";
}

/* ---- the memory ---- */

static size_t bytes_of(uint64_t rows) {
    return HEADER_BYTES + sizeof(rd_journal) + rows * sizeof(rd_score_row);
}

static int map(rd_scoreboard *board, int fd, size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return -1;
    board->bytes = bytes;
    board->fd = fd;
    board->journal = (rd_journal *)(void *)((char *)memory + HEADER_BYTES);
    board->rows = (rd_score_row *)(void *)(board->journal + 1);
    return 0;
}

static rd_scoreboard_header *header_of(const rd_scoreboard *board) {
    return (rd_scoreboard_header *)(void *)((char *)board->journal - HEADER_BYTES);
}

int rd_scoreboard_create(rd_scoreboard *board, uint32_t rows) {
    if (rows == 0 || rows > RD_SCOREBOARD_ROWS_MAX) {
        errno = EINVAL;
        return -1;
    }
    bool can_be_sealed;
    int fd = rd_fd_nameless("rondo scoreboard", &can_be_sealed);
    if (fd < 0) return -1;
    size_t bytes = bytes_of(rows);
    if (rd_fd_size(fd, bytes, can_be_sealed) != 0 || map(board, fd, bytes) != 0) {
        rd_close_keeping_errno(fd);
        return -1;
    }
    board->row_count = rows;
    *header_of(board) = (rd_scoreboard_header){magic(), sizeof(rd_score_row), rows};
    return 0;
}

int rd_scoreboard_open(rd_scoreboard *board, int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0) return -1;
    if ((size_t)file.st_size < bytes_of(1)) {
        errno = EINVAL;
        return -1;
    }
    if (map(board, fd, (size_t)file.st_size) != 0) return -1;
    rd_scoreboard_header header = *header_of(board);
    bool fits = header.magic == magic() && header.row_bytes == sizeof(rd_score_row) &&
                header.row_count <= RD_SCOREBOARD_ROWS_MAX &&
                bytes_of(header.row_count) == board->bytes;
    if (!fits) {
        munmap(header_of(board), board->bytes);
        errno = EINVAL;
        return -1;
    }
    board->row_count = (uint32_t)header.row_count;
    return 0;
}

void rd_scoreboard_close(rd_scoreboard *board) {
    munmap(header_of(board), board->bytes);
    close(board->fd);
    board->rows = NULL;
    board->journal = NULL;
    board->row_count = 0;
    board->fd = -1;
}

/* ---- numbers ---- */

static _Atomic uint64_t *number(const rd_score_row *row, const rd_score_info *info) {
    return (_Atomic uint64_t *)(void *)((char *)(uintptr_t)row + info->offset);
}

uint64_t rd_score_get(const rd_score_row *row, const rd_score_info *info) {
    return atomic_load_explicit(number(row, info), memory_order_relaxed);
}

void rd_score_set(rd_score_row *row, const rd_score_info *info, uint64_t value) {
    atomic_store_explicit(number(row, info), value, memory_order_relaxed);
}

const rd_score_info *rd_score_find(const char *name, size_t len) {
    for (size_t i = 0; i < rd_score_count; i++) {
        const rd_score_info *info = &rd_score_table[i];
        if (strlen(info->name) == len && memcmp(info->name, name, len) == 0) return info;
    }
    return NULL;
}

static void clear_histogram(rd_histogram *histogram) {
    for (unsigned i = 0; i < RD_HISTOGRAM_BUCKETS; i++) atomic_store(&histogram->buckets[i], 0);
    atomic_store(&histogram->sum_us, 0);
}

static void remember(rd_score_left *left, const rd_score_row *row) {
    atomic_store(&left->generation, atomic_load(&row->generation));
    atomic_store(&left->started_ms, atomic_load(&row->started_ms));
    atomic_store(&left->ready_ms, atomic_load(&row->ready_ms));
    atomic_store(&left->was_told, atomic_load(&row->state) == RD_SCORE_DRAINING);
    atomic_store(&left->pid, atomic_load(&row->pid)); /* last: who sees it has the rest */
}

void rd_score_clear(rd_score_row *row) {
    if (atomic_load(&row->pid) != 0) remember(&row->left, row);
    for (size_t i = 0; i < rd_score_count; i++) rd_score_set(row, &rd_score_table[i], 0);
    clear_histogram(&row->wait);
    clear_histogram(&row->duration);
    rd_view_clear(&row->view);
}

/* ---- histograms ---- */

uint64_t rd_histogram_bound_us(unsigned bucket) {
    return bucket + 1 >= RD_HISTOGRAM_BUCKETS ? UINT64_MAX : (uint64_t)FIRST_BOUND << bucket;
}

static unsigned bucket_of(uint64_t us) {
    if (us <= FIRST_BOUND) return 0;
    unsigned bucket = 64 - (unsigned)__builtin_clzll((us - 1) / FIRST_BOUND);
    return bucket < RD_HISTOGRAM_BUCKETS ? bucket : RD_HISTOGRAM_BUCKETS - 1;
}

/* A plain load and store: there is no other writer here, and a locked add costs ten times as
 * much. */
static void add(_Atomic uint64_t *number, uint64_t value) {
    uint64_t before = atomic_load_explicit(number, memory_order_relaxed);
    atomic_store_explicit(number, before + value, memory_order_relaxed);
}

void rd_histogram_add(rd_histogram *histogram, uint64_t us) {
    add(&histogram->buckets[bucket_of(us)], 1);
    add(&histogram->sum_us, us);
}
