/* SPDX-License-Identifier: MIT
 *
 * How a server stops: gracefully within a time limit, or at once. Also how listening sockets close
 * for good while the server, or its siblings, still serve their address; see
 * listen/retirement.h.
 *
 *   RD_STOP_NOT ──▶ RD_STOP_DRAIN ──(drain_timeout_ms)──▶ RD_STOP_NOW
 *        │            nothing new begins; present work ends  ▲ all connections close
 *        └───────────────────────────────────────────────────┘
 *
 * Under the loop lock, except for rd_server_stop().
 */
#ifndef RD_SERVER_STOP_H
#define RD_SERVER_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/timer.h"

struct rd_server;

enum { RD_STOP_NOT, RD_STOP_DRAIN, RD_STOP_NOW };

typedef struct rd_stop {
    atomic_int wanted;  /* RD_STOP_* */
    int state;          /* RD_STOP_*, as carried out so far */
    bool leaves_queues; /* what waits in the queues of the sockets is not accepted */
    bool in_one_go;     /* drain_spread_ms does not count */
    rd_timer timer;     /* when draining is over */
} rd_stop;

void rd_stop_init(struct rd_server *server);

/* RD_STOP_DRAIN: gracefully; RD_STOP_NOW: at once. Any thread, also a signal handler. */
void rd_server_stop(struct rd_server *server, int how);

/* From now on, what waits in the queues of the sockets is not accepted. Right before a stop. */
void rd_server_leave_queues(struct rd_server *server);

/* Upgraded connections end at once: the address is not served again before this server has ended.
 * Right before a stop. */
void rd_server_end_in_one_go(struct rd_server *server);

/* Whether a stop is complete: nothing is in flight and no connection waits for its answer. */
bool rd_server_is_done(const struct rd_server *server);

/* Closes the listeners of the socket with this st_ino, soon, and without losing a client. */
void rd_server_retire_socket(struct rd_server *server, uint64_t inode);

/* Whether a stop has a next step that is due: draining waits for listeners that retire. */
bool rd_stop_is_due(struct rd_server *server);

/* Begins a stop that was asked for. Part of every turn. */
void rd_stop_carry_out(struct rd_server *server);

#endif
