/* SPDX-License-Identifier: MIT
 *
 * Upgraded connections that a server which stops ends one by one, in random order, over a span of
 * time. So their clients do not come back all at once. The span is divided into slots, and each
 * connection waits in a random one. When its slot is due, its on_shutdown is called once more. Few
 * are called in a turn, so other clients do not wait for that.
 *
 *   on_shutdown ─▶ in a slot (served as before) ─▶ on_shutdown
 *
 * A connection that waits is not in `conns` or `carried` of its set but in its slot. It leaves that
 * by closing, too. Under the loop lock.
 */
#ifndef RD_TRANSPORT_PARTING_H
#define RD_TRANSPORT_PARTING_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/conn.h"

#define RD_PARTING_SLOTS    1024
#define RD_PARTING_PER_TURN 32

/* One at a time; `span_ms` 0: nothing waits. */
void rd_parting_begin(rd_conn_set *set, uint64_t span_ms);

/* Nothing waits any more: the connections are in their lists again, and nobody has told them. Does
 * nothing if none has begun. */
void rd_parting_end(rd_conn_set *set);

/* Lets the connection wait, which does not yet. False: nothing waits, or the span is over. */
bool rd_parting_add(rd_conn *conn);

/* Whether it has waited, and its on_shutdown runs because of that. */
bool rd_parting_is_ending(const rd_conn *conn);

/* Whether a connection that is not over waits. */
bool rd_parting_is_in_use(const rd_conn_set *set);

#endif
