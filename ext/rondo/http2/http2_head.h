/* SPDX-License-Identifier: MIT
 *
 * The head of a request of HTTP/2 as it is decoded, field by field, into the text of an HTTP/1.1
 * head: the parser of HTTP/1.1 then checks it by the same rules and limits, and the rest of the
 * server reads the same spans (RFC 9113, section 8.3). Knows no frames. Under the loop lock.
 *
 *   begin ──▶ add, for each field ──▶ finish: the text, or RD_ERR_*
 *
 * A head that breaks a rule or a limit is decoded to its end, because the decoder needs it for the
 * heads that follow, but nothing more of it is kept.
 */
#ifndef RD_HTTP2_HTTP2_HEAD_H
#define RD_HTTP2_HTTP2_HEAD_H

#include "base/buffer.h"
#include "http/head.h"

/* A pseudo-field, in the buffer of pseudo-fields. */
typedef struct rd_http2_pseudo {
    rd_span span;
    bool is_there;
} rd_http2_pseudo;

#define RD_HTTP2_HEAD_BUFFERS 4

typedef struct rd_http2_head {
    rd_buffer pseudo;  /* values of pseudo-fields */
    rd_buffer text;    /* field lines */
    rd_buffer cookies; /* crumbs, joined (RFC 9113, section 8.2.3) */
    rd_buffer whole;   /* the result */
    rd_http2_pseudo method, scheme, authority, path, protocol;
    rd_span host; /* value of the first Host, in `text` */
    size_t size;  /* as in SETTINGS_MAX_HEADER_LIST_SIZE */
    uint32_t count;
    int error; /* the first one */
    bool has_host;
    bool has_cookie;
    bool has_priority; /* the client says how urgent the answer is (RFC 9218) */
    bool is_decoding;  /* between begin and finish */
} rd_http2_head;

/* Takes the buffers of a head that was put together before. */
void rd_http2_head_begin(rd_http2_head *head, rd_buffer spare[RD_HTTP2_HEAD_BUFFERS]);

void rd_http2_head_add(rd_http2_head *head, const rd_head_limits *limits, rd_slice name,
                       rd_slice value);

/* Returns 0 and the text, which is there until the head ends; or RD_ERR_*. */
int rd_http2_head_finish(rd_http2_head *head, rd_slice *text);

/* How urgent the value of a Priority field is: 0 is the most urgent. It is a dictionary of which
 * the server needs the key u (RFC 9218, section 4.1). */
uint8_t rd_http2_urgency(rd_slice priority);

/* Memory that it holds. */
size_t rd_http2_head_memory(const rd_http2_head *head);

/* The head is refused with this code, unless it is already: nothing more of it is kept. */
void rd_http2_head_fail(rd_http2_head *head, int code);

/* Frees what it holds. A head between two requests holds nothing but a few bytes. */
void rd_http2_head_clear(rd_http2_head *head);

/* The same. Small buffers become spare ones where these are missing. */
void rd_http2_head_end(rd_http2_head *head, rd_buffer spare[RD_HTTP2_HEAD_BUFFERS]);

/* Whether the head asks for another protocol on its stream (RFC 8441). */
static inline bool rd_http2_head_is_connect(const rd_http2_head *head) {
    return head->protocol.is_there;
}

#endif
