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
    const char *scheme; /* in the URL of a listener, "http" */
    ssize_t (*read)(rd_conn *conn, char *bytes, size_t len);
    /* `more`: the rest of a packet comes with the next call. */
    ssize_t (*write)(rd_conn *conn, const struct iovec *iov, int count, bool more);
    ssize_t (*send_file)(rd_conn *conn, int fd, off_t offset, size_t len);
    void (*shutdown_write)(rd_conn *conn);
    void (*close)(rd_conn *conn);
    /* The descriptor is all there is: another process can go on with it. */
    bool can_move;
    /* Bytes sent that the peer has not taken yet; 0 when that cannot be known. */
    uint32_t (*count_unread)(rd_conn *conn);
} rd_transport;

extern const rd_transport rd_transport_tcp;

#endif
