/* SPDX-License-Identifier: MIT
 *
 * The state of TLS connections, and ciphertext between the socket and OpenSSL, which never sees the
 * socket. Ciphertext is received into the buffer of the loop. What is encrypted is gathered and
 * leaves with one send(2). What the socket does not take stays in the state of the connection.
 *
 * OpenSSL's queue of errors belongs to the thread, and the application uses it as well: each call
 * begins and ends with an empty one. Under the loop lock.
 */
#ifndef RD_TLS_TLS_FLOW_H
#define RD_TLS_TLS_FLOW_H

#include <stdatomic.h>

#include <openssl/ssl.h>

#include "tls/tls_context.h"
#include "tls/tls_hello.h"
#include "transport/conn.h"

#define RD_TLS_RECORD_BYTES 16344 /* of plain text: four such records fit into what is gathered */
#define RD_TLS_RECORD_MAX   16384
#define RD_TLS_GATHERED     65536 /* bytes for one send(2) */
#define RD_TLS_KEPT         128   /* connections of a context whose buffers OpenSSL keeps */
#define RD_TLS_KEPT_IDLE_MS 1000  /* then another connection may have the place */

/* A connection whose two buffers, for 16 KiB each, OpenSSL keeps from one call to the next. To
 * allocate them is a part of what a small request costs. The buffers of all others are freed as
 * soon as they are empty, because most connections are idle. */
typedef struct rd_tls_keeper {
    struct rd_tls *tls; /* NULL: the place is free */
    uint64_t used_ms;
} rd_tls_keeper;

/* What one call has received and not decrypted, has encrypted and not sent. */
typedef struct rd_tls_flow {
    rd_conn *conn; /* the connection of the call */
    const char *came;
    size_t came_len;
    char *out;
    size_t out_len, out_capacity;
    char *plain; /* room for pieces that share a record, or are read from a file */
    rd_tls_keeper keepers[RD_TLS_KEPT];
    uint32_t next_keeper; /* the one that is looked at next */
} rd_tls_flow;

/* What the connections of a listener, or outgoing ones, share: the certificates they show, the keys
 * of their tickets, and the room in which a call works. The connections of one loop only. */
typedef struct rd_tls_context {
    rd_transport transport; /* rd_tls_transport, with owners */
    atomic_uint refs;
    rd_tls_sets *sets;
    rd_ticket_keys *keys;
    SSL_CTX *rules; /* of outgoing connections, which have neither of these */
    BIO_METHOD *method;
    rd_tls_flow flow;
} rd_tls_context;

typedef struct rd_tls {
    SSL *ssl;           /* NULL: the ClientHello is not whole, or the handshake has failed */
    rd_buffer ahead;    /* ciphertext that was received and not decrypted */
    rd_buffer unsent;   /* ciphertext */
    const char *reason; /* why the handshake has failed, in OpenSSL's words; or NULL */
    char *server_name;  /* what the client asked for, with the setting tls_env, or what we ask for;
                         * or NULL */
    uint64_t extra_since_ms;
    rd_tls_hello hello;
    uint32_t shaken; /* bytes that came for the handshake */
    uint16_t extra;  /* messages that cost work and carry nothing, since then */
    uint16_t keeper; /* one more than its index; 0: none */
    bool is_held;    /* `unsent` waits for the rest of its packet, not for the socket */
    bool has_shaken;
    bool has_ended;  /* the peer's close_notify has come */
    bool has_failed; /* what has come is not what the peer sent, or too much of it */
} rd_tls;

static inline rd_tls *rd_tls_of(rd_conn *conn) {
    return rd_conn_transport_state(conn);
}

static inline rd_tls_context *rd_tls_context_of(rd_conn *conn) {
    return RD_CONTAINER((char *)(uintptr_t)conn->transport, rd_tls_context, transport);
}

static inline rd_tls_flow *rd_tls_flow_of(rd_conn *conn) {
    return &rd_tls_context_of(conn)->flow;
}

/* Prepares the flow and the method of a context, and gives them back. */
void rd_tls_flow_init(rd_tls_context *context);
void rd_tls_flow_clear(rd_tls_context *context);

/* Around every call of OpenSSL that may note an error; the bytes are what it may read. With
 * `worked` it has noted none, and the queue need not be looked at. */
rd_tls_flow *rd_tls_enter(rd_conn *conn, const char *came, size_t len);
void rd_tls_leave(rd_tls_flow *flow, bool worked);

/* The connection ends, and another may have its place among those whose buffers are kept. */
void rd_tls_give_up_keeper(rd_conn *conn);

/* Ciphertext that came before, else from the socket: what read(2) returns. */
ssize_t rd_tls_receive(rd_conn *conn, char *bytes, size_t size);

size_t rd_tls_unsent(rd_conn *conn);

/* Sends what is unsent. Returns 0, or -1 with errno. */
int rd_tls_flush(rd_conn *conn);

/* Keeps what was encrypted. With `held` it leaves with what is written next, or with a flush. */
void rd_tls_keep_out(rd_conn *conn, bool held);

/* Sends what was encrypted, and keeps what the socket does not take. False if there is any. An
 * error comes again with the next flush. */
bool rd_tls_send_out(rd_conn *conn);

/* Before something is encrypted: what is held goes first, into the same packet. False with errno:
 * the socket is full, or broken. */
bool rd_tls_begin_out(rd_conn *conn);

#endif
