/* SPDX-License-Identifier: MIT
 *
 * What another process needs, besides the descriptor, to continue a connection. The transport says
 * whether the descriptor is all that it needs (can_move). The protocol says what to keep of its own
 * state (pack), and continues with that (unpack). The server sends packed connections. Under the
 * loop lock.
 */
#ifndef RD_TRANSPORT_PACKED_H
#define RD_TRANSPORT_PACKED_H

#include "base/slice.h"
#include "transport/conn.h"

enum {
    RD_PACKED_HEAD,  /* of a request that starts over */
    RD_PACKED_BODY,  /* its whole body */
    RD_PACKED_INPUT, /* what was read after them, or between two requests */
    RD_PACKED_PARTS
};

typedef struct rd_packed {
    uint32_t served;  /* requests so far */
    uint32_t left_ms; /* until the protocol's deadline; UINT32_MAX: it has none */
    bool begun;       /* what comes only at the beginning, a PROXY header, was already read */
    bool is_stream;   /* a request alone, which came on a stream of HTTP/2 */
    rd_slice parts[RD_PACKED_PARTS]; /* bytes that were read and not answered, in order */
} rd_packed;

/* Whether another process can ever continue the connection. */
bool rd_conn_may_move(rd_conn *conn);

/* Whether another process can continue the connection now: no part of an answer is still to be
 * sent. With `request` there is a request that is not being answered yet; it starts over in the
 * other process. The parts point into the connection and its request. */
bool rd_conn_pack(rd_conn *conn, bool request, rd_packed *packed);

/* Continues a packed connection, which was just opened on the descriptor from the other process.
 * May close it. */
void rd_conn_unpack(rd_conn *conn, const rd_packed *packed);

size_t rd_packed_len(const rd_packed *packed);

#endif
