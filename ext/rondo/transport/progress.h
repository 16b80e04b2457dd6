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

/* The socket took less than it was offered, or the last part of an answer before a linger: the
 * checks begin. */
void rd_progress_begin(rd_conn *conn);

/* Moves the write deadline if the peer has read something since the last check. */
void rd_progress_look(rd_conn *conn);

/* When to check next, ms; UINT64_MAX: there is nothing to check. */
uint64_t rd_progress_due(const rd_conn *conn);

/* At the deadline of a connection that lingers: whether the peer has read some of the last answer
 * since the last check, but not all of it. */
bool rd_progress_while_lingering(rd_conn *conn);

#endif
