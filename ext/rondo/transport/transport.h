/* SPDX-License-Identifier: MIT
 *
 * How bytes get from and to the peer, and never an `if` upstream. Functions that read and write
 * answer what read(2) and write(2) answer: a count, 0 at the end, -1 with errno (EAGAIN: later).
 *
 * A plain transport is a socket, and its descriptor is all there is. Any other one is a layer (TLS,
 * say, or the streams of a connection that carries others): it has state of its own, may begin with
 * a handshake, may hold bytes that it has not sent and bytes that it has decoded already. A plain
 * transport leaves the members for layers empty, and its connections pay nothing for them. A layer
 * leaves empty what it has no use for.
 */
#ifndef RD_TRANSPORT_TRANSPORT_H
#define RD_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/slice.h"

typedef struct rd_conn rd_conn;

typedef struct rd_transport {
    const char *scheme; /* in the URL of a listener, "http" */
    bool is_secure;     /* its bytes are encrypted on the way: the scheme of requests is https */
    ssize_t (*read)(rd_conn *conn, char *bytes, size_t len);
    /* `more`: the rest of a packet comes with the next call. A layer may keep what it takes, up to
     * a limit of its own, until flush(). */
    ssize_t (*write)(rd_conn *conn, const struct iovec *iov, int count, bool more);
    ssize_t (*send_file)(rd_conn *conn, int fd, off_t offset, size_t len);
    void (*shutdown_write)(rd_conn *conn);
    /* Closes the descriptor, if there is one, and frees what the state of a layer holds. */
    void (*close)(rd_conn *conn);
    /* The connection is closed next, and its peer must not take that for the end of an answer. */
    void (*reset)(rd_conn *conn);
    /* Bytes sent that the peer has not taken yet; 0 when that cannot be known. */
    uint32_t (*count_unread)(rd_conn *conn);
    /* The descriptor alone carries the bytes, as they are: whoever has it has the connection. */
    bool is_plain;
    /* The descriptor is all there is: opened on it in the middle of the bytes, in another process,
     * the transport goes on. */
    bool can_move;

    /* ---- of layers ---- */

    size_t state_size; /* of its state on a connection: rd_conn_transport_state(), zeroed */
    /* Once, before all else: these bytes have been read from the descriptor already. */
    void (*begin)(rd_conn *conn, const char *ahead, size_t len);
    /* Goes on with the handshake: reads what has come and sends what there is to say. 1: it is
     * over; 0: it waits for the peer; RD_ERR_*: it has failed. */
    int (*handshake)(rd_conn *conn);
    /* The protocol that the handshake agreed upon, from rd_conn_set.offer(); empty: none. */
    rd_slice (*agreed)(rd_conn *conn);
    /* Bytes that it has taken and not sent. They count as something to send. */
    size_t (*unsent)(rd_conn *conn);
    /* Sends them, as far as the socket takes them. 0, or -1 with errno. */
    int (*flush)(rd_conn *conn);
    /* Whether read() has something to hand out that no readiness will tell of. */
    bool (*has_pending)(rd_conn *conn);
    /* Nothing more will be written: puts a last message behind what is unsent. Once. */
    void (*finish)(rd_conn *conn);
} rd_transport;

extern const rd_transport rd_transport_tcp;

#ifdef RD_TEST_TRANSPORTS
/* For tests, in builds with assertions only: plain bytes of which it says that they are secure. */
extern const rd_transport rd_transport_claims_secure;
#endif

#endif
