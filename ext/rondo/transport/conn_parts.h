/* SPDX-License-Identifier: MIT
 *
 * What conn.c (life) offers to stalled.c and conn_send.c (sending), and both to conn_read.c
 * (reading, readiness, deadlines). Under the loop lock.
 */
#ifndef RD_TRANSPORT_CONN_PARTS_H
#define RD_TRANSPORT_CONN_PARTS_H

#include "transport/conn.h"

/* Only the steps in the picture of conn.h are allowed. */
void rd_conn_set_state(rd_conn *conn, rd_conn_state state);

/* Call it after a deadline has changed. The timer is set anew only if the deadline comes earlier.
 * If it comes later, the timer runs too early once, and is then set again. So a request costs no
 * timer operation. */
void rd_conn_arm(rd_conn *conn);

/* A new connection is registered with the poller only after its first read, because many have ended
 * by then. */
void rd_conn_ensure_registered(rd_conn *conn);

/* Nothing waits for the peer any more. */
void rd_conn_end_stall(rd_conn *conn);

/* The socket takes more: sends, or joins the line of long sends. */
void rd_conn_send_or_wait(rd_conn *conn);

#endif
