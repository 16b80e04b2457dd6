/* SPDX-License-Identifier: MIT
 *
 * HTTP/1.1 on one connection: http1.c reads, http1_responder.c answers, both on this state, which
 * stands inline behind the connection. Under the loop lock.
 *
 *            ┌───────────────────────── next request ────────────────────────┐
 *            ▼                                                               │
 *  PROXY ▶ HEAD ──▶ BODY ──▶ DONE (request with the application) ──finish──▶─┤
 *            │        │        ▲                                             │
 *            │        └────────┘ Expect: the application has it before the   │
 *            │                   body, and DONE comes while it works         │
 *            └── refused ──▶ OVER ◀── answer that ends the connection ◀──────┘
 */
#ifndef RD_PROTOCOL_HTTP1_H
#define RD_PROTOCOL_HTTP1_H

#include "http/handler.h"
#include "protocol/http1_chunked.h"
#include "protocol/http1_parser.h"
#include "transport/protocol.h"

typedef enum rd_http1_input {
    RD_HTTP1_PROXY,
    RD_HTTP1_HEAD,
    RD_HTTP1_BODY,
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
    uint64_t body_since_ms; /* when the client was free to send its body */
    uint64_t output_left;   /* bytes the promised content-length still wants */
    uint32_t served;
    uint8_t input;           /* rd_http1_input */
    uint8_t section;         /* place of the last header section in rd_http_shared.sections */
    bool delivered : 1;      /* the application has the request */
    bool head_deadline : 1;  /* runs for the head being read */
    bool wants_continue : 1; /* the client waits for 100 */
    bool started : 1;        /* the head of the answer is queued */
    bool close_after : 1;
    bool chunked_out : 1;
    bool length_out : 1; /* output_left counts */
    bool raw_out : 1;
    bool too_long : 1; /* the answer had more bytes than promised */
} rd_http1;

extern const rd_protocol rd_protocol_http1;
extern const rd_responder rd_http1_responder;

static inline rd_http1 *rd_http1_of(rd_conn *conn) {
    return rd_conn_state_of(conn);
}

/* The connection comes from another worker, where so many requests were served on it. */
void rd_http1_resume(rd_conn *conn, uint32_t served);

/* The only way to another state; it has to be in the picture. */
void rd_http1_set_input(rd_http1 *http, rd_http1_input input);

/* The connection goes on with another protocol: lets go of the request. */
void rd_http1_leave(rd_conn *conn);

/* The answer is complete: keeps the connection for the next request or ends it. */
void rd_http1_request_done(rd_conn *conn);

/* Queues the whole answer to a broken rule, whose code has a status. The connection has to be
 * finished afterwards. */
void rd_http1_queue_refusal(rd_conn *conn, int code, bool with_body);

/* What a client gets that cannot even become a connection, ready for the wire. */
extern const rd_slice rd_http1_busy;

#endif
