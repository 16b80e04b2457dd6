/* SPDX-License-Identifier: MIT
 *
 * How bytes get from and to the peer: plain sockets, and never an `if` upstream. Every function
 * answers what read(2) and write(2) answer: a count, 0 at the end, -1 with errno (EAGAIN: later).
 * TLS needs more than this table: a handshake that can want to read or to write, a word for bytes
 * that are decrypted already (no readiness will tell of them), room for its state behind the
 * connection, and `scheme` for the application from the connection instead of the listener's URL.
 */
#ifndef RD_TRANSPORT_TRANSPORT_H
#define RD_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct rd_conn rd_conn;

typedef struct rd_transport {
    size_t state_size; /* of its own state on a connection, see rd_conn_transport_state(); zeroed */
    const char *scheme; /* in the URL of a listener, "http" */
    bool is_secure;     /* its bytes are encrypted on the way: the scheme of requests is https */
    ssize_t (*read)(rd_conn *conn, char *bytes, size_t len);
    /* `more`: the rest of a packet comes with the next call. */
    ssize_t (*write)(rd_conn *conn, const struct iovec *iov, int count, bool more);
    ssize_t (*send_file)(rd_conn *conn, int fd, off_t offset, size_t len);
    void (*shutdown_write)(rd_conn *conn);
    void (*close)(rd_conn *conn);
    /* The connection is closed next, and its peer must not take that for the end of an answer. */
    void (*reset)(rd_conn *conn);
    /* The descriptor alone carries the bytes, as they are: whoever has it has the connection. Any
     * other transport is a layer, and its connections have an rd_layer (conn.h). */
    bool is_plain;
    bool can_move; /* another process can go on with the descriptor */
    /* Bytes sent that the peer has not taken yet; 0 when that cannot be known. */
    uint32_t (*count_unread)(rd_conn *conn);
} rd_transport;

extern const rd_transport rd_transport_tcp;

#endif
