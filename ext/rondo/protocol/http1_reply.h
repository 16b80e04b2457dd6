/* SPDX-License-Identifier: MIT
 *
 * The answer to a forwarded request, as another worker of this server writes it: HTTP/1.1, with the
 * lines of http1_responder.c. Stricter than a client: what this server never writes is an error. It
 * can stop at any byte and continues there. The result depends only on the bytes, never on how they
 * were cut. protocol/forwarding.c has the connection. Under the loop lock.
 *
 *   head (100) ──▶ the application took the connection: raw bytes from here on
 *   head (1xx) ──▶ another head
 *   head ──▶ no body │ length │ chunked │ raw bytes until the end
 */
#ifndef RD_PROTOCOL_HTTP1_REPLY_H
#define RD_PROTOCOL_HTTP1_REPLY_H

#include "protocol/http1_chunked.h"
#include "request/responder.h"

#define RD_REPLY_HEAD_MAX   1048576
#define RD_REPLY_FIELDS_MAX 4160 /* of the application, and those that the server adds */

/* A head of its own, before any other: the application has taken the connection (full hijack), and
 * what follows is not HTTP. No answer has this status, because a request that expects it is never
 * forwarded. */
#define RD_REPLY_TAKEN        "HTTP/1.1 100 Continue\r\n\r\n"
#define RD_REPLY_TAKEN_STATUS 100

typedef enum rd_reply_body {
    RD_REPLY_NONE,    /* there is none */
    RD_REPLY_LENGTH,  /* it has a content-length */
    RD_REPLY_CHUNKED, /* its end is marked */
    RD_REPLY_RAW,     /* not HTTP, until the end of the connection */
} rd_reply_body;

typedef struct rd_http1_reply {
    uint32_t line;     /* begins here */
    uint32_t searched; /* bytes before this one are no end of the line */
    uint32_t count;    /* field lines */
    int status;
    int64_t length; /* -1: not given */
    uint64_t left;  /* of a body with a length */
    uint8_t body;   /* rd_reply_body, when the head is complete */
    bool to_head;   /* it answers a HEAD */
    bool is_chunked;
    bool closes; /* it asks for the end of the client's connection */
    bool has_date;
    rd_http1_chunked chunked;
} rd_http1_reply;

void rd_http1_reply_init(rd_http1_reply *reply, bool to_head);

/* `buf` is the head from its first byte; the bytes of earlier calls must be unchanged, but may have
 * moved. Returns > 0: the head is complete and took this many bytes; 0: more is needed; < 0:
 * RD_ERR_*. */
int rd_http1_reply_head(rd_http1_reply *reply, const char *buf, size_t len);

/* Whether another head follows this one. */
static inline bool rd_http1_reply_is_interim(const rd_http1_reply *reply) {
    return reply->status < 200 && reply->status != 101 && reply->status != RD_REPLY_TAKEN_STATUS;
}

/* The fields of the complete head that are for the client. Those that frame the body are not,
 * unless the body is raw. `fields` has room for `count` of them. Returns how many there are. */
size_t rd_http1_reply_fields(const rd_http1_reply *reply, const char *buf, rd_field *fields);

enum {
    RD_REPLY_MORE, /* all of buf is used, the body continues */
    RD_REPLY_DATA, /* `data` is a piece of the body; call again with the rest behind `used` */
    RD_REPLY_DONE  /* the body is complete */
};

/* Reads the body, unless it is raw. Returns one of the above or a negative error. `used` is how
 * many bytes of `buf` it took, including the piece of data. */
int rd_http1_reply_body(rd_http1_reply *reply, const char *buf, size_t len, size_t *used,
                        rd_slice *data);

#endif
