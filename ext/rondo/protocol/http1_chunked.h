/* SPDX-License-Identifier: MIT
 *
 * Takes the chunked transfer coding off a body (RFC 9112, section 7.1), byte by byte if it must.
 * Keeps nothing of the bytes: extensions and trailers are checked and dropped. Called by
 * protocol/http1.c with whatever came behind the head. Holder of the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_CHUNKED_H
#define RD_PROTOCOL_HTTP1_CHUNKED_H

#include "base/error.h"
#include "base/slice.h"
#include "http/head.h"

typedef struct rd_http1_chunked {
    uint64_t left;     /* bytes the current chunk still has; its size as far as read */
    uint64_t total;    /* data bytes handed out */
    uint64_t overhead; /* bytes of chunk lines and line ends */
    uint32_t line;     /* bytes of the current chunk line or trailer part */
    uint32_t extensions;
    uint32_t trailers; /* bytes */
    uint16_t fields;
    uint8_t digits;
    uint8_t state;
} rd_http1_chunked;

enum {
    RD_CHUNKED_MORE, /* all of buf is used, the body goes on */
    RD_CHUNKED_DATA, /* `data` is a piece of the body; call again with what is behind `used` */
    RD_CHUNKED_DONE  /* the body is complete; what is behind `used` is the next request */
};

void rd_http1_chunked_init(rd_http1_chunked *chunked);

/*
 * Returns one of the above or a negative error, and how many bytes of `buf` it took (the piece of
 * data included). After DONE or an error: not again.
 */
int rd_http1_chunked_next(rd_http1_chunked *chunked, const rd_head_limits *limits, const char *buf,
                          size_t len, size_t *used, rd_slice *data);

/*
 * What the body has announced so far, handed out or not: a limit can refuse a chunk as soon as its
 * size line is complete. (`left` alone is only half a number while that line is being read.)
 */
uint64_t rd_http1_chunked_announced(const rd_http1_chunked *chunked);

#endif
