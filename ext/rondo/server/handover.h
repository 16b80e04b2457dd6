/* SPDX-License-Identifier: MIT
 *
 * Connections that change their worker while both serve. A new connection goes to the worker with
 * the fewest. A connection whose request waits behind a busy application goes to a worker that has
 * less to do: as a descriptor, with the bytes that were read and not answered. siblings.h carries
 * the messages; departure.h is about workers that stop. Under the loop lock.
 *
 * A connection that came with a request is a guest. With a later request it moves on to a worker
 * that has clearly fewer connections and has not been stuck for a while.
 *
 * A request whose connection cannot move goes alone: see forward.h.
 *
 * Between requests, a connection moves if no part of an answer is still to be sent and its
 * transport and protocol can move (packed.h). The sender forgets the connection only when the
 * message is in the inbox. A worker that dies leaves its inbox to the next worker. Reasons are in
 * docs/decisions/0008-connections-change-workers.md.
 */
#ifndef RD_SERVER_HANDOVER_H
#define RD_SERVER_HANDOVER_H

#include "request/request.h"
#include "server/siblings.h"

#define RD_HANDOVER_AWAY_NS 3000000 /* a leader away for longer is stuck, or waits for a CPU */

struct rd_server;

/* Gives a connection that was just accepted to the worker with the fewest connections, if this
 * worker would have two more than that one. The message has the name of its listener. Nothing has
 * been read of the connection, so it can move with any transport. True: the descriptor is gone. */
bool rd_handover_accepted(struct rd_server *server, int fd, const rd_address *peer,
                          rd_slice listener);

/* Sends a packed connection to worker `to`. True: it is in that worker's inbox, and the loop does
 * not know the descriptor any more; the caller detaches and closes the connection. `flags` and
 * `time` are those of rd_handover_header. */
bool rd_handover_give(struct rd_server *server, int64_t to, rd_conn *conn, const rd_packed *packed,
                      int flags, uint32_t time);

/* Notes whether this worker is stuck. If it is, sends connections whose requests wait to workers
 * that have less to do. For the watch thread. */
void rd_handover_queued(struct rd_server *server);

/* Guests make the number of connections uneven. True: there is a worker with fewer connections that
 * has not been stuck for a while. */
bool rd_handover_returns(const struct rd_server *server);

/* Moves the next request of a guest to that worker, out of the queue. False: the request stays. */
bool rd_handover_move_guest(struct rd_server *server, rd_request *request);

/* Takes the connections that are in the inbox. */
void rd_handover_receive(struct rd_server *server);

#endif
