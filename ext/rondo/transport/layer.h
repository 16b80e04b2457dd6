/* SPDX-License-Identifier: MIT
 *
 * What a connection does in addition if its transport is not plain (`conn->layered`): it waits for
 * its handshake, says whether anything is unsent, and stands in line if its transport has decoded
 * input that was not read. conn_read.c, conn_send.c, packed.c and protocol/opening.c call this, and
 * only for such connections. transport.h says what each part of a transport does. Closes only what
 * has to make room for other handshakes. Under the loop lock.
 */
#ifndef RD_TRANSPORT_LAYER_H
#define RD_TRANSPORT_LAYER_H

#include "transport/conn.h"

/* Other bytes come before the transport's own: until rd_layer_begin() bytes are read and written as
 * they are. */
void rd_layer_hold(rd_conn *conn);

/* Begins the transport, with these bytes that were already read. Its handshake stands in line from
 * now on. The protocol's on_handshake is called when it is over. False: all clients together have
 * no room for the bytes, and the transport has not begun. */
bool rd_layer_begin(rd_conn *conn, const char *ahead, size_t len);

/* Whether bytes of the protocol can be read. If not, the handshake is put in line. */
bool rd_layer_may_read(rd_conn *conn);

/* Continues the handshake: see rd_transport.handshake. */
int rd_layer_handshake(rd_conn *conn);

/* For a transport, in its handshake: this will take memory until it is over. Such handshakes of all
 * clients together have a limit. Beyond it, the one whose peer has been silent longest is reset.
 * False: all of them wait for us, so this one stands in line again. */
bool rd_layer_admit(rd_conn *conn);

/* All clients together have no room for its handshake, or for what it has read ahead: resets it. */
void rd_layer_refuse(rd_conn *conn, int code);

bool rd_layer_is_shaking(rd_conn *conn);

/* Why the handshake has failed, in the words of its library; or NULL. */
const char *rd_layer_reason(rd_conn *conn);

/* The protocol that the handshake agreed upon: see rd_transport.agreed. Empty: none. */
rd_slice rd_layer_agreed(rd_conn *conn);

/* Whether the handshake stands in line: then it does not wait for the peer. */
bool rd_layer_is_in_line(rd_conn *conn);

/* After a read, or when reading resumes: joins the line if the transport has input. */
void rd_layer_note_pending(rd_conn *conn);

/* For a transport: how many records of input it may decode now. They may be tiny, and cost far more
 * than their bytes. Each read gets a few, however many were decoded in this turn of the loop. */
unsigned rd_layer_records(const rd_conn *conn);

/* For a transport: it has decoded this many. */
void rd_layer_count_records(rd_conn *conn, unsigned count);

/* Call it when the transport has read. False: all clients together have no room for what it has
 * read ahead. A connection that is ending reads no more, so nothing is refused. */
bool rd_layer_count_ahead(rd_conn *conn);

/* Whether the transport has begun, its handshake is over, and it holds no bytes either way. */
bool rd_layer_is_at_rest(rd_conn *conn);

/* Sends what is unsent. Returns 0, or -1 with errno. */
int rd_layer_flush(rd_conn *conn);

/* Whether its last message was queued. */
bool rd_layer_has_finished(rd_conn *conn);

/* Nothing more will be written: queues the last message, once. */
void rd_layer_finish(rd_conn *conn);

/* What was written is not all that was promised. The last message would say that it is (RFC 8446,
 * section 6.1), so there is none. */
void rd_layer_cut(rd_conn *conn);

#endif
