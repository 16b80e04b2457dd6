/* SPDX-License-Identifier: MIT
 *
 * The head of one request, as the parsers leave it and the layers above read it: spans into the
 * bytes of the head, never copies. Filled by protocol/http1_parser.c, for
 * HTTP/2 from the text of http2_head.c, turned into the Rack env by rack/. The bytes may move
 * between two calls, so everything is an offset from the first byte of the message. One owner, no
 * lock.
 */
#ifndef RD_HTTP_HEAD_H
#define RD_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/settings.h"
#include "base/slice.h"
#include "http/header_names.h"
#include "http/version.h"

/* Upper limits of a head and of the framing of a body. Sizes in bytes. */
typedef struct rd_head_limits {
    uint32_t head_bytes;            /* whole head, skipped empty lines included; else 431 */
    uint32_t target_bytes;          /* else 414 */
    uint32_t header_name_bytes;     /* else 431; more than 65535 is taken as 65535 */
    uint32_t header_value_bytes;    /* from colon to CR, blanks around the value included */
    uint32_t header_count;          /* fields, dropped ones included; same for trailers */
    uint32_t trailer_bytes;         /* whole trailer section of a chunked body */
    uint32_t chunk_line_bytes;      /* one chunk size line without its CRLF */
    uint32_t chunk_extension_bytes; /* all chunk extensions of one body */
    bool lenient_line_feeds;        /* a bare LF ends a line of a head */
    bool lenient_target_bytes;      /* bytes >= 0x80 and <>"\^`{|} in a target */
    bool lenient_duplicate_length;  /* several equal Content-Lengths */
    bool allow_underscore;          /* field names with '_' are kept */
    bool allow_connect;             /* CONNECT with an authority as target */
} rd_head_limits;

/* Sets the limits from the settings of a server. */
void rd_head_limits_init(rd_head_limits *limits, const rd_settings *settings);

/* Methods are case-sensitive; any other token is RD_METHOD_OTHER and the app decides. */
#define RD_METHODS(X)                                                                              \
    X(GET) X(HEAD) X(POST) X(PUT) X(PATCH) X(DELETE) X(OPTIONS) X(TRACE) X(CONNECT)

enum {
    RD_METHOD_OTHER,
#define RD_METHOD_ROW(name) RD_METHOD_##name,
    RD_METHODS(RD_METHOD_ROW)
#undef RD_METHOD_ROW
        RD_METHOD_COUNT
};

/* RFC 9112, section 3.2. */
enum { RD_TARGET_ORIGIN, RD_TARGET_ABSOLUTE, RD_TARGET_ASTERISK, RD_TARGET_AUTHORITY };

/* RD_FRAMING_STREAM: the body ends with its stream (HTTP/2). */
enum { RD_FRAMING_NONE, RD_FRAMING_LENGTH, RD_FRAMING_CHUNKED, RD_FRAMING_STREAM };

typedef struct rd_span {
    uint32_t at;
    uint32_t len;
} rd_span;

/* One field line. The value may be empty and has no blanks around it. */
typedef struct rd_header {
    uint32_t name_at;
    uint32_t value_at;
    uint32_t value_len;
    uint16_t name_len;
    uint16_t id; /* RD_HEADER_*; RD_HEADER_OTHER (0) for a name that is not in the table */
} rd_header;

enum { RD_HEAD_INLINE_HEADERS = 24 };

/*
 * Not in `headers`: fields whose name has an underscore (unless allowed), and Proxy, which would
 * become HTTP_PROXY. With allow_underscore a name with '_' is still dropped when it would get the
 * env key of a field with dashes that is present or that frames the message.
 *
 * `headers` may point to `first`: a head must not be moved once initialised.
 */
typedef struct rd_head {
    rd_span method;
    rd_span target;    /* as sent */
    rd_span path;      /* as sent, never decoded; empty means "/" (absolute-form only) */
    rd_span query;     /* without the '?' */
    rd_span authority; /* the effective host[:port]: of the absolute-form, else of Host; may be
                        * empty */
    rd_span host;      /* authority without the port; IPv6 keeps its brackets */
    uint64_t content_length; /* with RD_FRAMING_LENGTH */
    uint64_t seen[2];        /* bit id % 64 of word id / 64: a header with this id is present */
    uint64_t section;        /* rd_section.id of the fields if they were seen before; else 0 */
    uint32_t start;          /* first byte of the method: empty lines before it are skipped */
    uint32_t fields;         /* first byte behind the request line */
    uint32_t length;         /* all bytes of the head from offset 0, its empty line included */
    uint16_t port;           /* 0: not given */
    uint8_t method_id;       /* RD_METHOD_* */
    uint8_t version;         /* RD_HTTP_*; 1.2 and above count as 1.1 */
    uint8_t form;            /* RD_TARGET_* */
    uint8_t framing;         /* RD_FRAMING_* */
    bool keep_alive;         /* as the request wants it; the settings may overrule it */
    bool expect_continue;    /* 1.1, Expect: 100-continue and a body that is not empty */
    bool repeated;           /* a known name came twice: its values must be joined */
    bool doubtful;           /* a name has a '_', or such a field was dropped */
    uint16_t header_count;
    uint16_t header_capacity;
    rd_header *headers;
    rd_header first[RD_HEAD_INLINE_HEADERS];
} rd_head;

void rd_head_init(rd_head *head);

/* Prepares for the next request. Keeps the memory of a grown header array. */
void rd_head_reset(rd_head *head);

void rd_head_clear(rd_head *head);

void rd_head_grow(rd_head *head);

/* The next free header; grows the array if necessary. Valid until the next call. */
static inline rd_header *rd_head_next_header(rd_head *head) {
    if (head->header_count == head->header_capacity) rd_head_grow(head);
    return &head->headers[head->header_count];
}

/* The first header with this id, or NULL. To ask only whether it is present, use rd_head_has(). */
const rd_header *rd_head_find(const rd_head *head, unsigned id);

static inline bool rd_head_has(const rd_head *head, unsigned id) {
    return (head->seen[id / 64] >> (id % 64)) & 1;
}

/* Whether the request has a body whose length its head does not say. */
static inline bool rd_head_has_open_body(const rd_head *head) {
    return head->framing == RD_FRAMING_CHUNKED || head->framing == RD_FRAMING_STREAM;
}

/* Fields whose values are kept only with their request: secrets, and a field whose value never
 * repeats. */
bool rd_header_id_is_secret(unsigned id);

/* The first of them, or NULL. */
const rd_header *rd_head_secret(const rd_head *head);

static inline rd_slice rd_span_slice(rd_span span, const char *buf) {
    return (rd_slice){buf + span.at, span.len};
}

static inline rd_slice rd_header_name(const rd_header *header, const char *buf) {
    return (rd_slice){buf + header->name_at, header->name_len};
}

static inline rd_slice rd_header_value(const rd_header *header, const char *buf) {
    return (rd_slice){buf + header->value_at, header->value_len};
}

/* RD_METHOD_* of a method, RD_METHOD_OTHER for one that is not in the table. */
uint8_t rd_method_id(const char *name, size_t len);

#endif
