/* SPDX-License-Identifier: MIT
 *
 * What a connection does besides when its transport is no plain one (`conn->layered`): it waits for
 * its handshake, says whether anything is unsent, and stands in line when its transport has decoded
 * more than it has handed out. conn_read.c and conn_send.c ask, and only for such connections;
 * transport.h says what each part of a transport does. Closes nothing. Under the loop lock.
 */
#ifndef RD_TRANSPORT_LAYER_H
#define RD_TRANSPORT_LAYER_H

#include "transport/conn.h"

/* Bytes that have nothing to do with the transport come first: until rd_layer_begin() they are read
 * and written as they are. */
void rd_layer_hold(rd_conn *conn);

/* The transport begins, with these bytes that were read already. Its handshake stands in line from
 * now on; the protocol's on_handshake tells when it is over. */
void rd_layer_begin(rd_conn *conn, const char *ahead, size_t len);

/* Whether bytes of the protocol can be read. If not, its handshake can go on: it stands in line. */
bool rd_layer_may_read(rd_conn *conn);

/* Goes on with the handshake: see rd_transport.handshake. */
int rd_layer_handshake(rd_conn *conn);

bool rd_layer_is_shaking(rd_conn *conn);

/* Whether its handshake stands in line: it is not the peer's fault that it is not over. */
bool rd_layer_is_in_line(rd_conn *conn);

/* After a read, or when reading goes on: stands in line if there is something to hand out. */
void rd_layer_note_pending(rd_conn *conn);

/* Whether the transport has begun, its handshake is over, and it holds no bytes of either side. */
bool rd_layer_is_at_rest(rd_conn *conn);

/* 0, or -1 with errno. */
int rd_layer_flush(rd_conn *conn);

/* Nothing more will be written: the last message, once. */
void rd_layer_finish(rd_conn *conn);

#endif
