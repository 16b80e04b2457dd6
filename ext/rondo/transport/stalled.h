/* SPDX-License-Identifier: MIT
 *
 * Connections whose clients do not read what is queued for them, the longest stalled first. What
 * they hold together has a budget, with what their transports have taken and not sent. When it is
 * spent, the first ones are closed. Uses the queue and the ledger; conn_send.c calls it when a
 * flush has left something. Under the loop lock.
 */
#ifndef RD_TRANSPORT_STALLED_H
#define RD_TRANSPORT_STALLED_H

#include "transport/conn.h"

/* Call it after a flush if something is left, or if the connection was stalled before. `progress`:
 * the socket took some of it. */
void rd_stalled_note(rd_conn *conn, bool progress);

/* Closes the connections that have stalled longest, a few at a time, when all together hold more
 * than seven eighths of the limit. It spares those that have read something in the last half
 * second, unless all hold more than nine eighths. If all of them read something, it closes only
 * one, and only beyond the limit. Do not call it from within a callback of a connection. */
void rd_stalled_relieve(rd_conn_set *set);

#endif
