/* SPDX-License-Identifier: MIT
 *
 * Listening sockets that close for good while the server, or its siblings, go on at their address;
 * see transport/retirement.h. Under the loop lock.
 */
#ifndef RD_SERVER_RETIRE_H
#define RD_SERVER_RETIRE_H

#include "server/server.h"

/* Closes the listeners of the socket with this number (st_ino), in a moment and so that no client
 * notices. */
void rd_retire_socket(rd_server *server, uint64_t inode);

/* The stop that is to be carried out by now: draining waits for such listeners. */
int rd_retire_stop_due(rd_server *server);

#endif
