/* SPDX-License-Identifier: MIT
 *
 * Around a fork of the process, by the thread that forks: hold before it, then release in the
 * parent and abandon in the child. The child has copies of all descriptors. Kept open there, a
 * client would wait for the end of its connection, and new ones would be queued for a server that
 * has ended, as long as the child lives. So it closes them: a walk over all connections, but in the
 * child, where nobody waits for the lock. The lock is held across the fork, so the child finds
 * everything whole, and the lock free afterwards. See decision 16.
 */
#ifndef RD_SERVER_FORK_H
#define RD_SERVER_FORK_H

#include "server/server.h"

void rd_server_hold(rd_server *server);
void rd_server_release(rd_server *server);

/* Closes the descriptors of clients, of listeners and of the hub's link. What is left is memory. */
void rd_server_abandon(rd_server *server);

#endif
