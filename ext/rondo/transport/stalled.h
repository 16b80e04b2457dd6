/* SPDX-License-Identifier: MIT
 *
 * Connections whose clients do not take what is queued for them, the one that has taken nothing
 * for longest first. What they hold together has a budget. When it is spent, the first ones are
 * closed. Knows the queue and the ledger; conn_send.c says when a flush has left something. Under
 * the loop lock.
 */
#ifndef RD_TRANSPORT_STALLED_H
#define RD_TRANSPORT_STALLED_H

#include "transport/conn.h"

/* After a flush: something is left, or the connection was stalled before. `progress`: the socket
 * took some of it. */
void rd_stalled_note(rd_conn *conn, bool progress);

/* Closes those that have stalled longest, a few at a time, from seven eighths of what all together
 * may hold. None that took something half a second ago, but beyond nine eighths. Only one, and only
 * beyond the limit, where all of them take something. Not from within a callback of a connection.
 */
void rd_stalled_relieve(rd_conn_set *set);

#endif
