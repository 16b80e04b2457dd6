/* SPDX-License-Identifier: MIT
 *
 * What a protocol (HTTP/1.1, WebSocket, a link to the hub) is to a connection: a table of
 * reactions and the size of its state, which lives inline behind the connection. All run on the
 * owner of the loop, under the loop lock; any of them may close the connection.
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
    /* Bytes in the shared receive buffer: valid only during the call. */
    void (*on_data)(rd_conn *conn, const char *bytes, size_t len);
    /* The peer will send no more; answers can still reach it. */
    void (*on_eof)(rd_conn *conn);
    /* The output queue fell from above the high to below the low watermark, or became empty while
     * tell_empty was set. */
    void (*on_drained)(rd_conn *conn);
    /* The deadline set by rd_conn_set_deadline() passed. */
    void (*on_timeout)(rd_conn *conn);
    /* The connection is closed; its state may be cleared, its memory goes later. Exactly once. */
    void (*on_close)(rd_conn *conn);
    /* Whether the connection owes nothing and has waited for its peer at least since then: for the
     * first thing it says, or, `kept`, for the next one. */
    bool (*is_spare)(rd_conn *conn, bool kept, uint64_t since_ms);
    /* The server stops: nothing new shall begin on this connection. */
    void (*on_shutdown)(rd_conn *conn);
    /* These two let another process go on with a connection; see packed.h. NULL: it stays where it
     * is. `pack` says whether the connection can go now, with a request that nobody answers yet or
     * between two, and adds the protocol's own part; deadline and input are there already. `unpack`
     * goes on from there, on a connection that was just opened, and may close it. */
    bool (*pack)(rd_conn *conn, bool request, struct rd_packed *packed);
    void (*unpack)(rd_conn *conn, const struct rd_packed *packed);
    /* It is reset next, because its peer takes nothing and others need the memory. Or NULL. */
    void (*on_stalled)(rd_conn *conn);
    /* The handshake of its transport is over, 0, or has failed, RD_ERR_*. NULL, but for the one
     * that such a connection begins with. */
    void (*on_handshake)(rd_conn *conn, int code);
} rd_protocol;

#endif
