/* SPDX-License-Identifier: MIT
 *
 * What a worker that stops does with its connections: it moves them to other workers. It sends the
 * descriptor, and what was read of the next request. Clients do not notice: what a client sends
 * meanwhile reaches the other worker.
 *
 *   stop ──▶ MOVING ──────────────────────────────────────▶ none left
 *     │        │  (no worker takes them any more, or half     ▲
 *     │        │   of drain_timeout_ms is over)               │
 *     └────────┴──▶ ANNOUNCING: the next answer is the last ──┘
 *                   one; idle ones are closed after idle_grace_ms
 *
 * While connections move, the server still answers. A connection moves when its answer has left.
 * Only a few move in a turn, so that requests do not wait longer. A connection that cannot move
 * (its transport or protocol says so: upgraded connections, TLS) is announced to at once, but an
 * upgraded one ends later, by drain_spread_ms (transport/parting.h). Under the loop lock. Reasons
 * are in docs/decisions/0022-idle-connections-move.md and 0073-draining.md.
 */
#ifndef RD_SERVER_DEPARTURE_H
#define RD_SERVER_DEPARTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct rd_server;

typedef struct rd_departure {
    uint64_t due_ms;      /* connections that are still here then are announced to */
    uint32_t left;        /* connections of this round that have not been examined, or more */
    const rd_list *first; /* the one that the round began with; it may be gone. Or NULL */
    bool blocked;         /* the siblings have no room at present */
} rd_departure;

/* The server begins to stop. */
void rd_departure_begin(struct rd_server *server);

/* Moves a few connections. Call it when answers have left, while `conns.moving`. */
void rd_departure_continue(struct rd_server *server);

/* Whether the next turn must continue at once, while `conns.moving`. */
static inline bool rd_departure_is_busy(const rd_departure *departure) {
    return departure->left > 0;
}

#endif
