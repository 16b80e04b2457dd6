/* SPDX-License-Identifier: MIT
 *
 * What goes along with the descriptor of a connection when another process goes on with it. The
 * transport says whether the descriptor is all that it needs (can_move), the protocol says what of
 * its own state is worth keeping (pack) and goes on from there (unpack). How the packed connection
 * travels is the server's business. Under the loop lock.
 */
#ifndef RD_TRANSPORT_PACKED_H
#define RD_TRANSPORT_PACKED_H

#include "base/slice.h"
#include "transport/conn.h"

enum {
    RD_PACKED_HEAD,  /* of a request that begins anew */
    RD_PACKED_BODY,  /* all of it */
    RD_PACKED_INPUT, /* what was read behind them, or between two requests */
    RD_PACKED_PARTS
};

typedef struct rd_packed {
    uint32_t served;  /* requests so far */
    uint32_t left_ms; /* of the protocol's deadline; UINT32_MAX: it has none */
    bool begun; /* what comes once, at the beginning of a connection, was read: a PROXY header */
    rd_slice parts[RD_PACKED_PARTS]; /* bytes that were read and not answered, in their order */
} rd_packed;

/* Whether another process can ever go on with the connection. */
bool rd_conn_may_move(rd_conn *conn);

/* Whether another process can go on with the connection now: nothing of an answer is on its way.
 * With `request` there is one that nobody answers yet, and it begins anew in the other process. The
 * parts point into the connection and its request. */
bool rd_conn_pack(rd_conn *conn, bool request, rd_packed *packed);

/* The connection was just opened, on a descriptor from another process: goes on as it was packed.
 * May close it. */
void rd_conn_unpack(rd_conn *conn, const rd_packed *packed);

size_t rd_packed_len(const rd_packed *packed);

#endif
