/* SPDX-License-Identifier: MIT
 *
 * What all clients of a server hold together, by kind, and how much of it they may hold. Something
 * that belongs to a client is taken from the ledger before it is allocated and given back when it
 * is freed. Each caller that is refused has an answer of its own. Owned by the server's
 * rd_conn_set. Under the loop lock.
 */
#ifndef RD_BASE_LEDGER_H
#define RD_BASE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum rd_ledger_kind {
#define RD_LEDGER(NAME, name, unit, doc) RD_LEDGER_##NAME,
#include "base/ledger.def"
#undef RD_LEDGER
    RD_LEDGER_KINDS
} rd_ledger_kind;

/* Memory that every client may have, however much the others hold: small requests and messages are
 * served while a budget is full. Only what is beyond it is counted. */
#define RD_LEDGER_FREE 16384

typedef struct rd_ledger_row {
    uint64_t held, limit;
    uint64_t refused;   /* how often there was no room */
    uint64_t logged_ms; /* when it was last logged; 0: never */
} rd_ledger_row;

typedef struct rd_ledger {
    rd_ledger_row rows[RD_LEDGER_KINDS];
    uint64_t body_files_kept; /* descriptors that only files of bodies may have */
    bool changed;             /* since the scoreboard was written */
} rd_ledger;

/* Nothing is held and nothing is limited. */
void rd_ledger_init(rd_ledger *ledger);

static inline void rd_ledger_limit(rd_ledger *ledger, rd_ledger_kind kind, uint64_t limit) {
    ledger->rows[kind].limit = limit;
}

static inline bool rd_ledger_has_room(const rd_ledger *ledger, rd_ledger_kind kind,
                                      uint64_t amount) {
    const rd_ledger_row *row = &ledger->rows[kind];
    return row->held <= row->limit && amount <= row->limit - row->held;
}

/* Adds without checking the limit, for what exists already. */
static inline void rd_ledger_add(rd_ledger *ledger, rd_ledger_kind kind, uint64_t amount) {
    ledger->rows[kind].held += amount;
    ledger->changed = true;
}

/* Returns false, and counts a refusal, when there is no room for all of it. */
bool rd_ledger_reserve(rd_ledger *ledger, rd_ledger_kind kind, uint64_t amount);

void rd_ledger_release(rd_ledger *ledger, rd_ledger_kind kind, uint64_t amount);

/* Something of a client takes `size` bytes of memory from now on. `counted` is the ledger's
 * account of it, 0 at first. Returns false and leaves the account as it was when there is no
 * room for more. */
bool rd_ledger_resize(rd_ledger *ledger, rd_ledger_kind kind, size_t *counted, size_t size);

/* The short way: most things are small and stay small. */
static inline bool rd_ledger_keep(rd_ledger *ledger, rd_ledger_kind kind, size_t *counted,
                                  size_t size) {
    if (size <= RD_LEDGER_FREE && *counted == 0) return true;
    return rd_ledger_resize(ledger, kind, counted, size);
}

/* The same for what exists already: it cannot be refused. */
void rd_ledger_recount(rd_ledger *ledger, rd_ledger_kind kind, size_t *counted, size_t size);

/* Counts a refusal that the caller decided on. */
void rd_ledger_refuse(rd_ledger *ledger, rd_ledger_kind kind);

/* Takes one descriptor for a body. It counts both as a descriptor and as a body file. */
bool rd_ledger_reserve_body_file(rd_ledger *ledger);
void rd_ledger_release_body_file(rd_ledger *ledger);

/* Whether connections and sent files have used up all descriptors that they may have. */
bool rd_ledger_lacks_descriptors(const rd_ledger *ledger);

/* Whether to log a refusal now: at most once a second. */
bool rd_ledger_may_log(rd_ledger *ledger, rd_ledger_kind kind, uint64_t now_ms);

#endif
