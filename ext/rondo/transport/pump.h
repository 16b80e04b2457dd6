/* SPDX-License-Identifier: MIT
 *
 * A full hijack of a connection whose descriptor does not carry the bytes as they are: the
 * application gets one end of a pair of sockets, and the loop pumps between the other end and the
 * connection, both ways. Each way has a queue up to output_high_bytes and ends alone; a client that
 * takes nothing has the deadline of writing, an application that takes nothing has none. When the
 * server stops, the application reads the end and can still write. Under the loop lock.
 */
#ifndef RD_TRANSPORT_PUMP_H
#define RD_TRANSPORT_PUMP_H

#include "transport/conn.h"

/* The application's end, a descriptor for the caller. The connection's protocol is told that the
 * connection is closed, and has nothing to do with it any more. -1 with errno: nothing happened. */
int rd_pump_begin(rd_conn *conn);

#endif
