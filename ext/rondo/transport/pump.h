/* SPDX-License-Identifier: MIT
 *
 * A full hijack of a connection whose descriptor does not carry the bytes as they are: the
 * application gets one end of a socket pair, and the loop copies between the other end and the
 * connection, in both directions. Each direction has a queue of up to output_high_bytes, and ends
 * by itself. A client that reads nothing is subject to the write deadline; an application that
 * reads nothing is not, until it ends its writing. When the server stops, the application reads the
 * end of the input and can still write. Under the loop lock.
 *
 * A connection that has another way to say the head of its answer gets that from the first bytes of
 * the application, by rd_pump_head.
 */
#ifndef RD_TRANSPORT_PUMP_H
#define RD_TRANSPORT_PUMP_H

#include "transport/conn.h"

/* For the bytes with which the application begins, all that have come. Returns how many of them are
 * the head, which `conn` has said then; 0: more are needed; < 0: RD_ERR_*, they are none. */
typedef int (*rd_pump_head)(rd_conn *conn, const char *bytes, size_t len);

/* Returns the application's end, a descriptor that the caller owns. The on_close of the
 * connection's protocol is called, and the protocol is not used any more. -1 with errno: nothing
 * has changed. What was read ahead of the client goes to the application. `head` may be NULL: all
 * bytes go through as they are. Otherwise the connection is reset, and the log says
 * RD_ERR_TAKEN_HEAD, if the application ends without a head or begins with something else. */
int rd_pump_begin(rd_conn *conn, rd_pump_head head);

/* The same with a socket pair that is there already: `inner` is the end in this process, made by
 * rd_conn_open_inner(), and its protocol is not used any more either. What was read ahead of the
 * client goes to the other end. */
void rd_pump_join(rd_conn *conn, rd_conn *inner);

#endif
