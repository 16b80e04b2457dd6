/* SPDX-License-Identifier: MIT
 *
 * Removes the chunked transfer coding from a body (RFC 9112, section 7.1), byte by byte if
 * necessary. Keeps none of the bytes: extensions and trailers are checked and dropped. Called by
 * protocol/http1_body.c with the bytes behind the head. Under the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_CHUNKED_H
#define RD_PROTOCOL_HTTP1_CHUNKED_H

#include "base/error.h"
#include "base/slice.h"
#include "http/head.h"

typedef struct rd_http1_chunked {
    uint64_t left;     /* bytes that the current chunk still has; while its size line is read,
                        * the size so far */
    uint64_t total;    /* data bytes returned */
    uint64_t overhead; /* bytes of chunk lines and line ends */
    uint32_t line;     /* bytes of the current chunk line or trailer part */
    uint32_t extensions;
    uint32_t trailers; /* bytes */
    uint16_t fields;
    uint8_t digits;
    uint8_t state;
} rd_http1_chunked;

enum {
    RD_CHUNKED_MORE, /* all of buf is used, the body continues */
    RD_CHUNKED_DATA, /* `data` is a piece of the body; call again with the rest behind `used` */
    RD_CHUNKED_DONE  /* the body is complete; the next request begins behind `used` */
};

void rd_http1_chunked_init(rd_http1_chunked *chunked);

/*
 * Returns one of the above or a negative error. `used` is how many bytes of `buf` it took
 * (including the piece of data). Must not be called again after DONE or an error.
 */
int rd_http1_chunked_next(rd_http1_chunked *chunked, const rd_head_limits *limits, const char *buf,
                          size_t len, size_t *used, rd_slice *data);

/*
 * How many bytes the body has announced so far, returned or not. So a limit can refuse a chunk as
 * soon as its size line is complete. (`left` is incomplete while that line is being read.)
 */
uint64_t rd_http1_chunked_announced(const rd_http1_chunked *chunked);

#endif
