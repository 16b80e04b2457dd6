/* SPDX-License-Identifier: MIT
 *
 * What a worker that stops does with the connections it has: they go on in another worker, as a
 * descriptor with what was read of the next request. Nobody notices; a client that sends just then
 * has sent it there.
 *
 *   stop ──▶ MOVING ──────────────────────────────────────▶ nobody left
 *     │        │  (nobody takes them any more, or half of     ▲
 *     │        │   drain_timeout_ms is over)                  │
 *     └────────┴──▶ ANNOUNCING: the next answer is the last ──┘
 *                   one; who is idle is closed after idle_grace_ms
 *
 * While it moves them the server answers as ever; a connection goes when its answer has left. A few
 * at a time, so that others wait no longer. What cannot move (transport and protocol say so:
 * upgraded connections, TLS) is told at once. Under the loop lock. Reasons are in
 * docs/decisions/0022-idle-connections-move.md.
 */
#ifndef RD_SERVER_DEPARTURE_H
#define RD_SERVER_DEPARTURE_H

#include <stdbool.h>
#include <stdint.h>

struct rd_server;

typedef struct rd_departure {
    uint64_t due_ms; /* what is still here then is told */
    uint32_t left;   /* connections to be looked at before this round is over */
    bool blocked;    /* the siblings have no room just now */
} rd_departure;

/* The server begins to stop. */
void rd_departure_begin(struct rd_server *server);

/* A few connections go. To be called when answers have left, while `conns.moving`. */
void rd_departure_continue(struct rd_server *server);

/* Whether the next turn has to go on at once, while `conns.moving`. */
static inline bool rd_departure_is_busy(const rd_departure *departure) {
    return departure->left > 0;
}

#endif
