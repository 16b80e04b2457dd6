/* SPDX-License-Identifier: MIT
 *
 * What all protocols of upgraded connections share: the answer to the request, the switch to the
 * new protocol, the events of every connection, the limit of queued bytes. The state of such a
 * connection begins with a pointer to its rd_endpoint. Under the loop lock.
 */
#ifndef RD_ENDPOINT_ENDPOINT_CONN_H
#define RD_ENDPOINT_ENDPOINT_CONN_H

#include "endpoint/endpoint.h"
#include "request/request.h"
#include "transport/protocol.h"

/* The answer to a request that is upgraded. */
typedef struct rd_endpoint_answer {
    int status;
    const rd_slice *dropped; /* names, in lower case, that the application may not set */
    size_t dropped_count;
    const rd_field *own; /* the server's fields; the application's field of the same name
                          * replaces one */
    size_t own_count;
} rd_endpoint_answer;

/* Answers with the application's `fields` and the server's own. Returns 0, or RD_ERR_CLOSED. */
int rd_endpoint_answer_send(rd_request *request, const rd_endpoint_answer *answer,
                            const rd_field *fields, size_t count);

/* The request is answered and HTTP is over: its connection has `protocol` from now on. The state is
 * `endpoint`, otherwise zeroed, and the protocol gets the bytes that were read ahead. Returns a
 * reference for the caller. */
rd_endpoint *rd_endpoint_begin(rd_request *request, rd_endpoint *endpoint,
                               const rd_protocol *protocol);

/* The connection that this process has made is there: it has `protocol` from now on, and the
 * endpoint gets its OPEN. */
void rd_endpoint_connected(rd_endpoint *endpoint, rd_conn *conn, const rd_protocol *protocol);

static inline rd_endpoint *rd_endpoint_of(rd_conn *conn) {
    return *(rd_endpoint **)rd_conn_state_of(conn);
}

/* Whether the application may queue a message. If more than max_pending_bytes wait after everything
 * was sent that the socket takes, closes the connection and returns false. */
bool rd_endpoint_may_write(rd_endpoint *endpoint);

/* The application has queued a message, which leaves with the next flush. */
void rd_endpoint_queued(rd_endpoint *endpoint);

/* Sends what is queued, then ends. */
void rd_endpoint_finish(rd_endpoint *endpoint, bool linger);

/* Implements `close` of rd_endpoint_ops where the protocol has no words for an end. */
void rd_endpoint_close(rd_endpoint *endpoint, unsigned code, rd_slice reason);

/* Whether reading was paused and can go on: the application has taken half of `backlog` bytes. */
bool rd_endpoint_can_read_on(const rd_endpoint *endpoint, size_t backlog);

/* Implements `overflow` of rd_endpoint_ops: too much waits, for the client or for the application.
 */
void rd_endpoint_overflow(rd_endpoint *endpoint);

/* Callbacks of an rd_protocol. */
void rd_endpoint_on_open(rd_conn *conn);
void rd_endpoint_on_drained(rd_conn *conn);
void rd_endpoint_on_sent(rd_conn *conn); /* the application does not wait for the linger */
void rd_endpoint_on_close(rd_conn *conn);
bool rd_endpoint_is_spare(rd_conn *conn, bool kept, uint64_t since_ms);
void rd_endpoint_on_shutdown(rd_conn *conn);

/* For an on_shutdown: whether there is nothing to do, because another call comes later, by
 * drain_spread_ms, or has come. */
bool rd_endpoint_ends_later(rd_conn *conn);
void rd_endpoint_on_stalled(rd_conn *conn);

#endif
