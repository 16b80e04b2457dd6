/* SPDX-License-Identifier: MIT
 *
 * Connections that change their worker. A new one goes to the worker with the fewest; one whose
 * request waits behind a busy application goes to a worker that has less to do, as a descriptor
 * with the bytes that were read and not answered. Each worker has an inbox, a socket that keeps
 * whole messages; its siblings hold the other end. Under the loop lock.
 *
 *   worker 0: accept / queued request ── sendmsg(descriptor, header, bytes) ──▶ inbox of worker 1
 *
 * A connection that came with a request is a guest: with a later one it goes on to a worker that
 * has clearly fewer and has been well for a while.
 *
 * Only plain HTTP/1.1 without an answer on its way moves. The sender forgets the connection only
 * when the message is in the inbox; a worker that dies leaves its inbox to the next one. Reasons
 * are in docs/decisions/0008-connections-change-workers.md.
 */
#ifndef RD_SERVER_HANDOVER_H
#define RD_SERVER_HANDOVER_H

#include "loop/loop.h"
#include "server/scoreboard.h"
#include "transport/address.h"

#define RD_HANDOVER_BYTES_MAX 32768
#define RD_HANDOVER_AWAY_NS   3000000 /* of the leader: stuck, unless it waits for a CPU */

struct rd_server;

/* A server's place among its siblings. */
typedef struct rd_siblings {
    const rd_scoreboard *board; /* NULL: there are none */
    uint32_t own;               /* its slot */
    int *outboxes;   /* owned; by slot, -1 where there is none; the descriptors are not */
    rd_source inbox; /* not owned; fd -1: none, or left */
} rd_siblings;

void rd_siblings_init(rd_siblings *siblings);

/* Takes part from now on. `outboxes` (by slot, as many as the board has) is copied; all descriptors
 * stay the caller's and must be open as long as the server. 0, or -1 with errno. */
int rd_siblings_join(struct rd_server *server, const rd_scoreboard *board, uint32_t own, int inbox,
                     const int *outboxes);

/* A server that stops: siblings send nothing more, and when nothing is on its way the inbox is left
 * to whoever comes after. To be called until rd_siblings_expect() says no. */
void rd_siblings_leave(struct rd_server *server);
bool rd_siblings_expect(const struct rd_server *server);

void rd_siblings_clear(struct rd_server *server);

/* Gives a connection that was just accepted to the worker with the fewest, if this one would have
 * two more than that. True: the descriptor has gone. */
bool rd_handover_accepted(struct rd_server *server, int fd, const rd_address *peer);

/* Notes whether this worker is stuck; if so, connections whose requests wait go to workers that
 * have less to do. For the watch thread. */
void rd_handover_queued(struct rd_server *server);

/* Connections that came because their worker was busy make the count uneven. True when there is a
 * worker with fewer that has been well for a while. */
bool rd_handover_returns(const struct rd_server *server);

/* Their next requests go on to that worker, or into the queue of this one. */
void rd_handover_guests(struct rd_server *server);

/* Takes what is in the inbox. */
void rd_handover_receive(struct rd_server *server);

#endif
