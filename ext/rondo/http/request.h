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
#include "http/line.h"
#include "http/responder.h"
#include "transport/conn.h"

#define RD_REQUEST_INLINE_BYTES 1024

typedef struct rd_request_pool {
    rd_request *free;
    uint32_t count;
    uint32_t live;      /* with a client, or in the hands of a call */
    rd_ledger *ledger;  /* counts what bodies hold */
    const char *folder; /* of their files */
} rd_request_pool;

/* Somebody who waits for a request: for its body, for room in the queue to its client, for the end
 * of the connection. Told once of the next change, under the loop lock. */
typedef struct rd_waiter {
    rd_list node;
    void (*wake)(struct rd_waiter *waiter);
} rd_waiter;

/* Where a request waits. It has to leave that place when its client is gone. */
typedef enum rd_place {
    RD_PLACE_NONE,    /* with its protocol alone, or the call needs no seat */
    RD_PLACE_WAITING, /* in a line, for the application */
    RD_PLACE_GUEST,   /* for the decision whether it goes on to another worker */
    RD_PLACE_EXCESS,  /* to be turned away */
    RD_PLACE_FILES,   /* in a line, for the static folder */
    RD_PLACE_SEATED,  /* with the application, on a seat of a line that others wait in */
} rd_place;

/* What the queues of a server know of a request. */
typedef struct rd_queued {
    rd_standing standing; /* while it is a line by itself */
    rd_line *line;        /* in which it waits, or whose seat it has; NULL: it is one by itself */
    rd_list by_age;       /* of those that wait for the application, the oldest first */
    rd_place place;
} rd_queued;

struct rd_request {
    rd_list in_queue; /* waiting for the application, for a file, or inside */
    rd_queued queued;
    rd_list waiters; /* rd_waiter: told of the next change, and taken out */
    rd_request_pool *pool;
    rd_request *next_free;
    rd_conn *conn; /* NULL once the client has gone or the answer is finished */
    const rd_responder *responder;
    rd_head head;
    uint32_t head_len;
    char *bytes;         /* the head's bytes: inline_bytes or allocated */
    size_t head_counted; /* of them, in the ledger */
    rd_body body;
    uint64_t bytes_out;               /* body bytes of the answer */
    struct rd_file_entry *file_entry; /* of the static folder; see static_file.h */
    uint32_t refs;
    uint64_t ready_ns;        /* when it could have been given to the application */
    uint64_t taken_ns;        /* when it was */
    uint64_t client_ns;       /* for so long it has waited for its client since */
    uint64_t client_since_ns; /* and still does; 0: it does not */
    int body_error;           /* RD_ERR_* once the body cannot be completed */
    int status;               /* of the answer, 0 before */
    int file_error;
    bool body_complete : 1;
    bool gone : 1;      /* the client left before the answer was finished */
    bool timed_out : 1; /* answered 503, because the application took too long */
    bool hung : 1;      /* inside for hard_request_timeout_ms without an answer */
    bool reported : 1;  /* it takes long, and whoever keeps the log was told */
    bool drop_body : 1; /* HEAD, 204, 304 */
    bool detached : 1;
    bool kept : 1;    /* its call is over, but its answer goes on */
    bool is_live : 1; /* counted in the pool's `live` */
    char inline_bytes[RD_REQUEST_INLINE_BYTES];
};

/* A request with one reference. */
rd_request *rd_request_new(rd_request_pool *pool);
void rd_request_ref(rd_request *request);
void rd_request_unref(rd_request *request);

/* The call is over, and whoever keeps the request answers later. From then on it is live only as
 * long as its client is there. */
void rd_request_keep(rd_request *request);

/* The client left before the answer was finished. */
void rd_request_set_gone(rd_request *request);

/* The call does not end, and nobody waits for it any more: it is not live. */
void rd_request_set_hung(rd_request *request);

/* A call waits for its client. Under the loop lock, as the end of it, which takes the waiter out
 * unless it was told already. */
void rd_request_begin_wait(rd_request *request, rd_waiter *waiter);
void rd_request_end_wait(rd_request *request, rd_waiter *waiter);

/* When the application would have got it, had it never waited for its client. Where it does,
 * that is later each time. */
uint64_t rd_request_begun_ns(const rd_request *request, uint64_t now_ns);

/* Tells everybody who waits for it. */
void rd_request_wake(rd_request *request);
void rd_request_pool_clear(rd_request_pool *pool);

/* Keeps the head's bytes: what the spans point into from now on. False, and they are kept all the
 * same, when requests of all clients together take too much memory. */
bool rd_request_keep_head(rd_request *request, const char *bytes, size_t len);

/* Whether it asks for what is there: GET or HEAD. */
static inline bool rd_request_reads(const rd_request *request) {
    return request->head.method_id == RD_METHOD_GET || request->head.method_id == RD_METHOD_HEAD;
}

/* The first request of what stands in a FIFO with this node. */
static inline rd_request *rd_standing_first(rd_list *node) {
    rd_standing *standing = RD_CONTAINER(node, rd_standing, node);
    if (!standing->is_line) return RD_CONTAINER(standing, rd_request, queued.standing);
    const rd_line *line = RD_CONTAINER(standing, rd_line, standing);
    return RD_CONTAINER(line->waiting.next, rd_request, in_queue);
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
