/* SPDX-License-Identifier: MIT
 *
 * A protocol (HTTP/1.1, WebSocket, a link to the hub) as a connection sees it: a table of callbacks
 * and the size of its state, which follows the connection in memory. The owner of the loop calls
 * all of them, under the loop lock. Any of them may close the connection.
 */
#ifndef RD_TRANSPORT_PROTOCOL_H
#define RD_TRANSPORT_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rd_conn rd_conn;
struct rd_packed;

typedef struct rd_protocol {
    size_t state_size;
    void (*on_open)(rd_conn *conn);
    /* The bytes are in the shared receive buffer, valid only during the call. */
    void (*on_data)(rd_conn *conn, const char *bytes, size_t len);
    /* The peer will send no more, but answers can still reach it. */
    void (*on_eof)(rd_conn *conn);
    /* The output queue has fallen from above the high watermark to below the low one, or has become
     * empty while notify_drained was set. */
    void (*on_drained)(rd_conn *conn);
    /* The deadline of rd_conn_set_deadline() has passed. */
    void (*on_timeout)(rd_conn *conn);
    /* Everything that was queued before rd_conn_finish() is sent, and the connection lingers: what
     * the peer still sends is dropped. Or NULL. */
    void (*on_sent)(rd_conn *conn);
    /* The connection is closed. Its state may be cleared; its memory goes later. Exactly once. */
    void (*on_close)(rd_conn *conn);
    /* Whether the connection has nothing to send and has waited for its peer since since_ms or
     * longer: for the first message or, with `kept`, for the next one. */
    bool (*is_spare)(rd_conn *conn, bool kept, uint64_t since_ms);
    /* The server stops: nothing new must begin on this connection. */
    void (*on_shutdown)(rd_conn *conn);
    /* These two let another process continue a connection; see packed.h. NULL: it cannot move.
     * `pack` says whether the connection can move now, with a request that is not being answered
     * yet or between two requests, and adds the protocol's own part; deadline and input are already
     * packed. `unpack` continues the connection, which was just opened, and may close it. */
    bool (*pack)(rd_conn *conn, bool request, struct rd_packed *packed);
    void (*unpack)(rd_conn *conn, const struct rd_packed *packed);
    /* The connection is reset next, because its peer reads nothing and others need the memory. Or
     * NULL. */
    void (*on_stalled)(rd_conn *conn);
    /* The connection is reset next: all clients together have no room for its handshake, or for
     * what its transport has read ahead, RD_ERR_*. Or NULL. */
    void (*on_refused)(rd_conn *conn, int code);
    /* The handshake of its transport is over (0) or has failed (RD_ERR_*): then the protocol
     * finishes or closes the connection. NULL, except in the protocol that such a connection begins
     * with. */
    void (*on_handshake)(rd_conn *conn, int code);
    bool is_silent; /* the handshake of its transport agrees upon none of those of the server */
} rd_protocol;

#endif
