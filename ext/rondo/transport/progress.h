/* SPDX-License-Identifier: MIT
 *
 * Whether a peer takes what the kernel has of a connection. send(2) does not tell: it takes more
 * only when a third of the socket's buffer is free, which is megabytes for some, and minutes for a
 * slow reader. So while a socket is full, what the peer has not acknowledged is compared from time
 * to time. conn_read.c and conn_send.c call this. Under the loop lock.
 */
#ifndef RD_TRANSPORT_PROGRESS_H
#define RD_TRANSPORT_PROGRESS_H

#include "transport/conn.h"

/* The socket took less than it was offered, or the last of an answer before a linger: from here on
 * the peer is looked at. */
void rd_progress_begin(rd_conn *conn);

/* Moves the write deadline when the peer has taken something since the last look. */
void rd_progress_look(rd_conn *conn);

/* When to look next, ms; UINT64_MAX while there is nothing to look at. */
uint64_t rd_progress_due(const rd_conn *conn);

/* At the deadline of a connection that lingers: whether its peer has taken some of its last answer
 * since the last look, and has not got all of it. */
bool rd_progress_while_lingering(rd_conn *conn);

#endif
