/* SPDX-License-Identifier: MIT
 *
 * One request: its head (spans over `bytes`), its body, the way back to its client. It is counted:
 * the protocol holds one reference until the answer is finished or the client gone, whoever
 * answers it holds another. Everything but head, bytes and a complete body (which nobody changes
 * any more) is under the loop lock.
 */
#ifndef RD_HTTP_REQUEST_H
#define RD_HTTP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "http/body.h"
#include "http/head.h"
#include "http/responder.h"
#include "transport/conn.h"

#define RD_REQUEST_INLINE_BYTES 1024

typedef struct rd_request_pool {
    rd_request *free;
    uint32_t count;
    uint32_t live;
} rd_request_pool;

/* Somebody who waits for a request: for its body, for room in the queue to its client, for the end
 * of the connection. Told once of the next change, under the loop lock. */
typedef struct rd_waiter {
    rd_list node;
    void (*wake)(struct rd_waiter *waiter);
} rd_waiter;

struct rd_request {
    rd_list in_queue; /* waiting for the application */
    rd_list waiters;  /* rd_waiter: told of the next change, and taken out */
    rd_request_pool *pool;
    rd_request *next_free;
    rd_conn *conn; /* NULL once the client has gone or the answer is finished */
    const rd_responder *responder;
    rd_head head;
    uint32_t head_len;
    char *bytes; /* the head's bytes: inline_bytes or allocated */
    rd_body body;
    uint64_t bytes_out; /* body bytes of the answer */
    uint32_t refs;
    uint64_t ready_ns; /* when it could have been given to the application */
    uint64_t taken_ns; /* when it was */
    int body_error;    /* RD_ERR_* once the body cannot be completed */
    int status;        /* of the answer, 0 before */
    bool body_complete : 1;
    bool gone : 1;      /* the client left before the answer was finished */
    bool timed_out : 1; /* answered 503, because the application took too long */
    bool reported : 1;  /* it takes long, and whoever keeps the log was told */
    bool drop_body : 1; /* HEAD, 204, 304 */
    bool detached : 1;
    char inline_bytes[RD_REQUEST_INLINE_BYTES];
};

/* A request with one reference. */
rd_request *rd_request_new(rd_request_pool *pool);
void rd_request_ref(rd_request *request);
void rd_request_unref(rd_request *request);

/* Tells everybody who waits for it. */
void rd_request_wake(rd_request *request);
void rd_request_pool_clear(rd_request_pool *pool);

/* Keeps the head's bytes: what the spans point into from now on. */
void rd_request_keep_head(rd_request *request, const char *bytes, size_t len);

/* Whether it asks for what is there: GET or HEAD. */
static inline bool rd_request_reads(const rd_request *request) {
    return request->head.method_id == RD_METHOD_GET || request->head.method_id == RD_METHOD_HEAD;
}

static inline rd_slice rd_request_slice(const rd_request *request, rd_span span) {
    return rd_span_slice(span, request->bytes);
}

static inline rd_slice rd_request_header_name(const rd_request *request, const rd_header *header) {
    return rd_header_name(header, request->bytes);
}

static inline rd_slice rd_request_header_value(const rd_request *request, const rd_header *header) {
    return rd_header_value(header, request->bytes);
}

#endif
