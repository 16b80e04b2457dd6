/* SPDX-License-Identifier: MIT
 *
 * How a server stops: gracefully, with a limit in time, or at once. And listening sockets that
 * close for good while the server, or its siblings, go on at their address; see
 * transport/retirement.h.
 *
 *   RD_STOP_NOT ──▶ RD_STOP_DRAIN ──(drain_timeout_ms)──▶ RD_STOP_NOW
 *        │            nothing new begins; what has begun     ▲ all connections close
 *        └───────────────────────────────────────────────────┘
 *
 * Under the loop lock, but for rd_server_stop().
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
    atomic_int wanted; /* RD_STOP_* */
    int state;         /* RD_STOP_* as carried out so far */
    rd_timer timer;    /* when draining is over */
} rd_stop;

void rd_stop_init(struct rd_server *server);

/* Graceful with RD_STOP_DRAIN, at once with RD_STOP_NOW. Any thread, also a signal handler. */
void rd_server_stop(struct rd_server *server, int how);

/* Whether a stop is complete: nothing is in flight and no connection waits for its answer. */
bool rd_server_is_done(const struct rd_server *server);

/* Closes the listeners of the socket with this number (st_ino), in a moment and so that no client
 * notices. */
void rd_server_retire_socket(struct rd_server *server, uint64_t inode);

/* Whether there is more of a stop to be carried out: draining waits for listeners that retire. */
bool rd_stop_is_due(struct rd_server *server);

/* Begins a stop that was asked for. Part of every turn. */
void rd_stop_carry_out(struct rd_server *server);

#endif
