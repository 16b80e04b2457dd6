/* SPDX-License-Identifier: MIT
 *
 * Whether a peer reads what the kernel still has to send. send(2) does not tell: it takes more only
 * when a third of the socket's buffer is free. That can be megabytes, and minutes for a slow
 * reader. So while a socket is full, this checks from time to time how much the peer has not
 * acknowledged. conn_read.c and conn_send.c call this. Under the loop lock.
 */
#ifndef RD_TRANSPORT_PROGRESS_H
#define RD_TRANSPORT_PROGRESS_H

#include "transport/conn.h"

/* The stall of the connection, which is made when there is none. */
rd_stall *rd_stall_of(rd_conn *conn);

/* The peer has its time from now on to take some of what is queued. */
void rd_progress_set_deadline(rd_conn *conn);

/* Nothing waits for the peer any more. There must be a stall. */
void rd_progress_end(rd_conn *conn);

/* The socket took less than it was offered, or the last part of an answer before a linger: the
 * checks begin. */
void rd_progress_begin(rd_conn *conn);

/* Moves that deadline if the peer has read something since the last check. */
void rd_progress_look(rd_conn *conn);

/* When to check next, ms; UINT64_MAX: there is nothing to check. */
uint64_t rd_progress_due(const rd_conn *conn);

/* At the deadline of a connection that lingers: whether the peer has read some of the last answer
 * since the last check, but not all of it. */
bool rd_progress_while_lingering(rd_conn *conn);

#endif
