/* SPDX-License-Identifier: MIT
 *
 * Memory that each request of HTTP/2 needs for a moment, kept for the next one of any connection of
 * the server. It is there while the server has sessions. Under the loop lock.
 */
#ifndef RD_HTTP2_HTTP2_SPARE_H
#define RD_HTTP2_HTTP2_SPARE_H

#include "http2/http2_blocks.h"
#include "http2/http2_head.h"
#include "request/handler.h"

typedef struct rd_http2_spare {
    rd_http2_blocks blocks; /* of the library */
    rd_buffer head[RD_HTTP2_HEAD_BUFFERS];
    rd_http_shared *shared;
    uint32_t refs;
} rd_http2_spare;

rd_http2_spare *rd_http2_spare_ref(rd_http_shared *shared);
void rd_http2_spare_unref(rd_http2_spare *spare);

#endif
