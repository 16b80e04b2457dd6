/* SPDX-License-Identifier: MIT
 *
 * How bytes get from and to the peer: plain sockets now, TLS later, never an `if` upstream.
 * Every function answers what read(2) and write(2) answer: a count, 0 at the end, -1 with errno
 * (EAGAIN: later). `handshake` answers 1 when done, 0 when it wants `*interest`, -1 to close.
 */
#ifndef RD_TRANSPORT_TRANSPORT_H
#define RD_TRANSPORT_TRANSPORT_H

#include <sys/types.h>
#include <sys/uio.h>

typedef struct rd_conn rd_conn;

typedef struct rd_transport {
    const char *name;
    const char *scheme; /* what the application is told, "http" or "https" */
    int (*handshake)(rd_conn *conn, unsigned *interest);
    ssize_t (*read)(rd_conn *conn, char *bytes, size_t len);
    ssize_t (*write)(rd_conn *conn, const struct iovec *iov, int count);
    ssize_t (*send_file)(rd_conn *conn, int fd, off_t offset, size_t len);
    void (*shutdown_write)(rd_conn *conn);
    void (*close)(rd_conn *conn);
} rd_transport;

extern const rd_transport rd_transport_tcp;

#endif
