/* SPDX-License-Identifier: MIT
 *
 * How bytes get from and to the peer. No other code needs an `if` for it. Functions that read and
 * write return what read(2) and write(2) return: a count, 0 at the end, -1 with errno (EAGAIN:
 * later).
 *
 * A plain transport is a socket, and the descriptor is its whole state. Any other transport is a
 * layer (for example TLS, or the streams of a connection that carries others). A layer has its own
 * state, may begin with a handshake, may hold bytes that it has not sent and bytes that it has
 * already decoded. A plain transport leaves the members for layers empty, and its connections pay
 * nothing for them. A layer leaves empty what it does not need.
 */
#ifndef RD_TRANSPORT_TRANSPORT_H
#define RD_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/slice.h"

typedef struct rd_conn rd_conn;
typedef struct rd_transport rd_transport;
typedef struct rd_identity rd_identity;

struct rd_transport {
    const char *scheme; /* in the URL of a listener, "http" */
    bool is_secure;     /* its bytes are encrypted: the scheme of requests is https */
    ssize_t (*read)(rd_conn *conn, char *bytes, size_t len);
    /* `more`: the rest of a packet comes with the next call. A layer may hold back what it takes,
     * up to its own limit, until flush(). */
    ssize_t (*write)(rd_conn *conn, const struct iovec *iov, int count, bool more);
    ssize_t (*send_file)(rd_conn *conn, int fd, off_t offset, size_t len);
    void (*shutdown_write)(rd_conn *conn);
    /* Closes the descriptor, if there is one, and frees what a layer's state holds. */
    void (*close)(rd_conn *conn);
    /* The connection is closed next; its peer must not mistake that for the end of an answer. */
    void (*reset)(rd_conn *conn);
    /* Bytes sent that the peer has not acknowledged; 0: that is not known. */
    uint32_t (*count_unread)(rd_conn *conn);
    /* Of a transport that was made for a listener: it has one owner more, or one fewer. NULL: it is
     * there for as long as the program. */
    void (*ref)(const rd_transport *transport);
    void (*unref)(const rd_transport *transport);
    /* The descriptor carries the bytes as they are, so it can replace the connection. */
    bool is_plain;
    /* The descriptor is the whole state: another process can open the transport on it between any
     * two bytes. Of a layer: when its handshake is over and it holds no bytes either way. The other
     * process calls neither begin() nor handshake(). */
    bool can_move;

    /* ---- of layers ---- */

    size_t state_size; /* of its state in a connection: rd_conn_transport_state(), zeroed */
    /* Called once, first: these bytes were already read from the descriptor. It comes with a
     * handshake(), or neither is there. */
    void (*begin)(rd_conn *conn, const char *ahead, size_t len);
    /* Of outgoing connections, before begin(): the name of the peer, which it has to prove. */
    void (*name_peer)(rd_conn *conn, const char *name);
    /* Continues the handshake: reads what has come and sends its next messages. Returns 1: it is
     * over; 0: it waits for the peer; RD_ERR_*: it has failed. */
    int (*handshake)(rd_conn *conn);
    /* The protocol that the handshake agreed upon, from rd_conn_set.offer() or, of a raw
     * connection, from what its layer was given; empty: none. */
    rd_slice (*agreed)(rd_conn *conn);
    /* Why the handshake has failed, in the words of its library, which are there for ever; or NULL.
     */
    const char *(*reason)(rd_conn *conn);
    /* What it knows of its peer. Called if its handshake gave the layer a number for that. */
    void (*identify)(rd_conn *conn, rd_identity *identity);
    /* Whether what it has shown to its peer stands for this host, so that requests for it may come
     * this way. NULL: for any. */
    bool (*stands_for)(rd_conn *conn, rd_slice host);
    /* Bytes that the layer has taken and not sent. They count as output that is to be sent. */
    size_t (*unsent)(rd_conn *conn);
    /* Sends the unsent bytes, as many as the socket takes. Returns 0, or -1 with errno. */
    int (*flush)(rd_conn *conn);
    /* Whether read() has something to return that no readiness will announce. */
    bool (*has_pending)(rd_conn *conn);
    /* Bytes that were read from the descriptor and not handed out, decoded or not. The ledger
     * counts them: those of all clients together have a limit. */
    size_t (*read_ahead)(rd_conn *conn);
    /* Nothing more will be written: adds a last message after what is unsent. Once. */
    void (*finish)(rd_conn *conn);
};

extern const rd_transport rd_transport_tcp;

/* The kernel asks a TCP peer that was silent for so many seconds whether it is still there, and
 * ends the connection if it is not. Connections of a listening socket inherit it. 0: changes
 * nothing. */
void rd_tcp_keep_alive(int fd, unsigned silence_s);

/* A transport has to be there for as long as a connection that has it: whoever opens connections is
 * an owner. */
static inline const rd_transport *rd_transport_ref(const rd_transport *transport) {
    if (transport->ref != NULL) transport->ref(transport);
    return transport;
}

static inline void rd_transport_unref(const rd_transport *transport) {
    if (transport->unref != NULL) transport->unref(transport);
}

#endif
