/* SPDX-License-Identifier: MIT
 *
 * The last lines of the log of all processes of a server, in the memory that they share, for
 * somebody who watches from outside. Any process may write; a writer waits for nobody, and one that
 * dies loses only its line. The log itself is elsewhere, and has every line whole.
 */
#ifndef RD_CLUSTER_JOURNAL_H
#define RD_CLUSTER_JOURNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RD_JOURNAL_LINES    512
#define RD_JOURNAL_TEXT_MAX 480

typedef enum rd_journal_level {
    RD_JOURNAL_INFO,
    RD_JOURNAL_WARN,
    RD_JOURNAL_ERROR,
    RD_JOURNAL_LEVEL_COUNT
} rd_journal_level;

/* A line. */
typedef struct rd_journal_line {
    uint64_t number;  /* from 1 on */
    uint64_t time_ms; /* CLOCK_MONOTONIC */
    uint32_t pid;
    int16_t worker; /* its number; -1: of the process itself */
    uint8_t level;
    bool is_cut;
    uint16_t len;
    char text[RD_JOURNAL_TEXT_MAX];
} rd_journal_line;

#define RD_JOURNAL_WORDS ((sizeof(rd_journal_line) + 7) / 8)

typedef struct rd_journal_entry {
    _Atomic uint64_t number; /* 0: it is being written */
    _Atomic uint64_t sum;    /* of the words: two writers may have met here */
    _Atomic uint64_t words[RD_JOURNAL_WORDS];
} rd_journal_entry;

/* In shared memory; zeroed: there are no lines. */
typedef struct rd_journal {
    _Alignas(64) _Atomic uint64_t last; /* number of the newest line, which may still be written */
    rd_journal_entry entries[RD_JOURNAL_LINES];
} rd_journal;

/* "info", "warn", "error"; "unknown" for anything else. */
const char *rd_journal_level_name(unsigned level);

/* Writes a line. Text beyond RD_JOURNAL_TEXT_MAX bytes is left out, in front of a character that
 * would be cut. Any thread of any process. */
void rd_journal_add(rd_journal *journal, rd_journal_level level, int worker, const char *text,
                    size_t len);

/* Reads the line of that number. False: it is not there any more, or not yet. */
bool rd_journal_read(const rd_journal *journal, uint64_t number, rd_journal_line *line);

/* The number of the newest line, 0 if there is none, and of the oldest that may be there. */
uint64_t rd_journal_newest(const rd_journal *journal);
uint64_t rd_journal_oldest(const rd_journal *journal);

#endif
