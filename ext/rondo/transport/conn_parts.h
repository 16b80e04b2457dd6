/* SPDX-License-Identifier: MIT
 *
 * What conn.c (life) offers to conn_send.c (sending), and both to conn_read.c (reading, readiness,
 * deadlines). Under the loop lock.
 */
#ifndef RD_TRANSPORT_CONN_PARTS_H
#define RD_TRANSPORT_CONN_PARTS_H

#include "transport/conn.h"

/* Only along the picture in conn.h. */
void rd_conn_set_state(rd_conn *conn, rd_conn_state state);

/* After a deadline has changed. The wheel is touched only when one moves forward in time order; one
 * that moves away is found too early once and set again then. So a request costs no timer
 * operation. */
void rd_conn_arm(rd_conn *conn);

/* Asks the poller for what the connection waits for now. */
void rd_conn_update_interest(rd_conn *conn);

/* A fresh connection goes to the poller only after its first read, because many are over then. */
void rd_conn_ensure_registered(rd_conn *conn);

/* The socket takes more: sends, or stands in the line of long sends. */
void rd_conn_send_or_wait(rd_conn *conn);

#endif
