/* SPDX-License-Identifier: MIT
 *
 * One request: its head (spans over `bytes`), its body, and the way back to its client. Counted:
 * the protocol holds one reference until the answer is finished or the client has gone; the part
 * that answers it holds another. Head, bytes and a complete body do not change any more and need no
 * lock; everything else is under the loop lock.
 */
#ifndef RD_REQUEST_REQUEST_H
#define RD_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "request/body.h"
#include "http/head.h"
#include "request/line.h"
#include "request/responder.h"
#include "transport/conn.h"

#define RD_REQUEST_INLINE_BYTES 1024
#define RD_URGENCY_DEFAULT      3 /* RFC 9218, section 4.1 */

typedef struct rd_request_pool {
    rd_request *free;
    uint32_t count;
    uint32_t live;     /* with a client, or in a call */
    rd_ledger *ledger; /* counts what bodies hold */
    rd_spools spools;  /* their files */
} rd_request_pool;

/* A part that waits for something of a request: for its body, for room in the queue to its client,
 * for the end of the connection. Called once at the next change, under the loop lock. */
typedef struct rd_waiter {
    rd_list node;
    void (*wake)(struct rd_waiter *waiter);
} rd_waiter;

/* Where a request waits. It must leave that place when its client has gone. */
typedef enum rd_place {
    RD_PLACE_NONE,      /* held by its protocol only, or its call needs no seat */
    RD_PLACE_WAITING,   /* in a line, for the application */
    RD_PLACE_GUEST,     /* for the decision whether it moves to another worker */
    RD_PLACE_EXCESS,    /* to be refused */
    RD_PLACE_FILES,     /* in a line, for the static folder */
    RD_PLACE_SEATED,    /* with the application, on a seat of a line in which others wait */
    RD_PLACE_FORWARDED, /* with another worker, which answers it */
} rd_place;

/* The part of a request that belongs to the queues of the server. */
typedef struct rd_queued {
    rd_standing standing; /* while it is a line by itself, or has a seat of one */
    rd_line *line;        /* in which it waits, or whose seat it has; NULL: the request is a line
                           * by itself */
    rd_list by_age;       /* of the requests that wait for the application, the oldest first */
    rd_place place;
    uint8_t urgency; /* in its line: 0 is the most urgent (RFC 9218) */
    bool is_out;     /* SEATED: its seat is free, because its call holds no place */
} rd_queued;

typedef struct rd_request_times {
    uint64_t ready_ns;        /* when the request was ready for the application */
    uint64_t taken_ns;        /* when the application took it */
    uint64_t client_ns;       /* how long it has waited for its client since */
    uint64_t client_since_ns; /* since when it waits for its client now; 0: it does not */
} rd_request_times;

/* A site is an application with its listeners. That of the server is site 0; a listener with an
 * application of its own is another site. Its number goes from the listener to its connections, and
 * from these to their requests. A server with a single site looks at no number. */
struct rd_request {
    rd_list in_queue; /* waiting for the application, for a file, or inside */
    rd_queued queued;
    rd_list waiters; /* rd_waiter: called at the next change, and removed */
    rd_request_pool *pool;
    rd_request *next_free;
    rd_conn *conn; /* NULL once the client has gone or the answer is finished */
    const rd_responder *responder;
    rd_head head;
    uint32_t head_len;
    char *bytes;         /* the head's bytes: inline_bytes or allocated */
    size_t head_counted; /* how many of them the ledger counts */
    rd_body body;
    uint64_t bytes_out;               /* body bytes of the answer */
    struct rd_file_entry *file_entry; /* of the static folder; see static_file.h */
    uint32_t refs;
    uint16_t site; /* set if the server has several, see below */
    rd_request_times times;
    int body_error; /* RD_ERR_* when the body cannot be completed */
    int status;     /* of the answer; 0 before */
    int file_error;
    bool body_complete : 1;
    bool gone : 1;      /* the client left before the answer was finished */
    bool timed_out : 1; /* answered 503 because the application took too long */
    bool hung : 1;      /* inside for hard_request_timeout_ms without an answer */
    bool reported : 1;  /* it takes long, and the log says so already */
    bool drop_body : 1; /* HEAD, 204, 304 */
    bool detached : 1;
    bool kept : 1;    /* its call is over, but its answer continues */
    bool is_live : 1; /* counted in the pool's `live` */
    char inline_bytes[RD_REQUEST_INLINE_BYTES];
};

/* Returns a request with one reference. */
rd_request *rd_request_new(rd_request_pool *pool);
void rd_request_ref(rd_request *request);
void rd_request_unref(rd_request *request);

/* The call is over, and the one who keeps the request answers later. From now on it is live only as
 * long as its client is there. */
void rd_request_keep(rd_request *request);

/* The client left before the answer was finished. */
void rd_request_set_gone(rd_request *request);

/* The call does not end, and nothing waits for it any more: the request is not live. */
void rd_request_set_hung(rd_request *request);

/* Begins to wait for the client of a call. Under the loop lock, like the end of the wait, which
 * removes the waiter unless it was called already. */
void rd_request_begin_wait(rd_request *request, rd_waiter *waiter);
void rd_request_end_wait(rd_request *request, rd_waiter *waiter);

/* When the application would have got the request, if the time it waited for its client did not
 * count. Later after each wait. */
uint64_t rd_request_begun_ns(const rd_request *request, uint64_t now_ns);

/* Calls all waiters of the request. */
void rd_request_wake(rd_request *request);
void rd_request_pool_clear(rd_request_pool *pool);

/* In a child of a fork: closes the files of bodies, but not of those that the application can read
 * on: they are complete, and the call has not ended or is kept. */
void rd_request_pool_abandon(rd_request_pool *pool);

/* Keeps the head's bytes; the spans point into this copy from now on. Returns false, although the
 * bytes are kept, when requests of all clients together use too much memory. */
bool rd_request_keep_head(rd_request *request, const char *bytes, size_t len);

/* Whether the request, as it was received, can be given to another process: the whole body is in
 * memory, and was not decoded. */
static inline bool rd_request_can_start_over(const rd_request *request) {
    if (!request->body_complete || request->body.spool != NULL) return false;
    return request->body.size == 0 ? request->head.framing != RD_FRAMING_CHUNKED
                                   : request->head.framing == RD_FRAMING_LENGTH ||
                                         request->head.framing == RD_FRAMING_STREAM;
}

/* Whether the method is GET or HEAD. */
static inline bool rd_request_reads(const rd_request *request) {
    return request->head.method_id == RD_METHOD_GET || request->head.method_id == RD_METHOD_HEAD;
}

/* The first request of the FIFO's element with this node. */
static inline rd_request *rd_standing_first(rd_list *node) {
    rd_standing *standing = RD_CONTAINER(node, rd_standing, node);
    if (!standing->is_line) return RD_CONTAINER(standing, rd_request, queued.standing);
    const rd_line *line = RD_CONTAINER(standing, rd_line, standing);
    return RD_CONTAINER(line->waiting.next, rd_request, in_queue);
}

/* Joins a line, behind those that are as urgent. */
void rd_request_join_line(rd_request *request, rd_line *line);

/* A request that waits in a line changes its place there. */
void rd_request_set_urgency(rd_request *request, uint8_t urgency);

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
