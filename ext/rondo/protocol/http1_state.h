/* SPDX-License-Identifier: MIT
 *
 * The state of HTTP/1.1 on one connection, inline behind the connection. http1_responder.c answers,
 * http1_body.c reads bodies, http1_idle.c takes care of the time between requests; http1.c, above
 * them, goes from request to request. Under the loop lock.
 *
 *            ┌──────────────────────────── next request ────────────────────────────┐
 *            ▼                                                                      │
 *          HEAD ──▶ BODY ──▶ STORING ──▶ DONE (with the application) ──finish──────▶┤
 *            │        │          │                                                  │
 *            └────────┴─ refused ┴─▶ OVER ◀── answer that ends the connection ◀─────┘
 *
 * A body whose file is still being written at its last byte goes through STORING to DONE, other
 * bodies go there directly. With Expect the application has the request before the body, and DONE
 * comes while it works. If its answer is finished before that, STORING counts as DONE.
 */
#ifndef RD_PROTOCOL_HTTP1_STATE_H
#define RD_PROTOCOL_HTTP1_STATE_H

#include "request/handler.h"
#include "protocol/http1_chunked.h"
#include "protocol/http1_parser.h"
#include "transport/protocol.h"

typedef enum rd_http1_input {
    RD_HTTP1_HEAD,
    RD_HTTP1_BODY,
    RD_HTTP1_STORING, /* the body is complete, the rest of it is being written */
    RD_HTTP1_DONE,
    RD_HTTP1_OVER,
} rd_http1_input;

typedef struct rd_http1 {
    rd_request *request; /* being read or being answered */
    union {
        rd_http1_parser parser;   /* HEAD */
        rd_http1_chunked chunked; /* BODY */
        uint64_t length_left;     /* BODY */
    };
    uint64_t body_since_ms; /* when the client was free to send its body; while the disk is
                             * behind: for how long it was free */
    uint64_t output_left;   /* bytes that are missing from the promised content-length */
    uint32_t served;
    uint8_t input;           /* rd_http1_input */
    uint8_t section;         /* index of the last header section in rd_http_shared.sections */
    bool delivered : 1;      /* the application has the request */
    bool head_deadline : 1;  /* the deadline is that of the head */
    bool wants_continue : 1; /* the client waits for 100 */
    bool started : 1;        /* the head of the answer is queued */
    bool close_after : 1;
    bool chunked_out : 1;
    bool length_out : 1; /* output_left is valid */
    bool raw_out : 1;
    bool too_long : 1;    /* the answer had more bytes than promised */
    bool disk_behind : 1; /* reading pauses until more of the body is written */
    bool early : 1;       /* counted in rd_http_shared.early_calls */
    bool is_stream : 1;   /* the request came to another worker, on a stream of HTTP/2 */
} rd_http1;

static inline rd_http1 *rd_http1_of(rd_conn *conn) {
    return rd_conn_state_of(conn);
}

static inline const rd_settings *rd_http1_settings(const rd_conn *conn) {
    return conn->set->settings;
}

static inline void rd_http1_set_timeout(rd_conn *conn, int64_t timeout_ms) {
    rd_conn_set_deadline(conn, conn->set->loop->now_ms + (uint64_t)timeout_ms);
}

/* Whether the request has been received completely. */
static inline bool rd_http1_has_read(const rd_http1 *http) {
    return http->input == RD_HTTP1_DONE || http->input == RD_HTTP1_STORING;
}

/* The connection that the answer goes to, or NULL when there is no client to answer. */
static inline rd_conn *rd_http1_client(const rd_request *request) {
    rd_conn *conn = request->conn;
    return conn != NULL && rd_conn_is_open(conn) ? conn : NULL;
}

/* The only way to change the state; the change must be in the picture. */
void rd_http1_set_input(rd_http1 *http, rd_http1_input input);

/* The application has the body of the request, or will not get it. Does nothing if it was not
 * called before its body. */
void rd_http1_end_early_call(rd_http1 *http);

/* Lets go of the request, if there is one: it is answered or refused, or its client has gone. */
void rd_http1_drop_request(rd_http1 *http);

#endif
