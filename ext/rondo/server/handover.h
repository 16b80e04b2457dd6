/* SPDX-License-Identifier: MIT
 *
 * Connections that change their worker while both serve. A new one goes to the worker with the
 * fewest; one whose request waits behind a busy application goes to a worker that has less to do,
 * as a descriptor with the bytes that were read and not answered. How they get there is in
 * siblings.h, what a worker that stops gives away in departure.h. Under the loop lock.
 *
 * A connection that came with a request is a guest: with a later one it goes on to a worker that
 * has clearly fewer and has been well for a while.
 *
 * In the middle of its requests a connection moves when nothing of an answer is on its way and its
 * transport and protocol can (packed.h). The sender forgets the connection only
 * when the message is in the inbox; a worker that dies leaves its inbox to the next one. Reasons
 * are in docs/decisions/0008-connections-change-workers.md.
 */
#ifndef RD_SERVER_HANDOVER_H
#define RD_SERVER_HANDOVER_H

#include "http/request.h"
#include "server/siblings.h"

#define RD_HANDOVER_AWAY_NS 3000000 /* of the leader: stuck, unless it waits for a CPU */

struct rd_server;

/* Gives a connection that was just accepted to the worker with the fewest, if this one would have
 * two more than that. It goes with the name of its listener, and nothing has been read of it: so it
 * goes whatever its transport is. True: the descriptor has gone. */
bool rd_handover_accepted(struct rd_server *server, int fd, const rd_address *peer,
                          rd_slice listener);

/* Sends a connection, as it was packed, to that worker. True: it is in the inbox there, and the
 * loop does not know the descriptor any more; the caller detaches and closes it. `flags` and `time`
 * are those of rd_handover_header. */
bool rd_handover_give(struct rd_server *server, int64_t to, rd_conn *conn, const rd_packed *packed,
                      int flags, uint32_t time);

/* Notes whether this worker is stuck; if so, connections whose requests wait go to workers that
 * have less to do. For the watch thread. */
void rd_handover_queued(struct rd_server *server);

/* Connections that came because their worker was busy make the count uneven. True when there is a
 * worker with fewer that has been well for a while. */
bool rd_handover_returns(const struct rd_server *server);

/* The next request of a guest goes on to that worker, and leaves the queue. False: it stays. */
bool rd_handover_move_guest(struct rd_server *server, rd_request *request);

/* Takes what is in the inbox. */
void rd_handover_receive(struct rd_server *server);

#endif
