/* SPDX-License-Identifier: MIT
 *
 * What the client of a connection of HTTP/2 takes of its answers. Complete answers that it does not
 * take, and heads that wait inside the library, count together. While there are too many, no
 * request of the connection is taken. Under the loop lock.
 */
#ifndef RD_HTTP2_HTTP2_TAKING_H
#define RD_HTTP2_HTTP2_TAKING_H

#include "http2/http2_session.h"

/* So many bytes of a complete answer wait for the client. */
void rd_http2_add_untaken(rd_http2 *http2, uint32_t len);

/* They wait no more. */
void rd_http2_remove_untaken(rd_http2 *http2, uint32_t len);

/* The library has a head more, with so many bytes of names and values. */
void rd_http2_add_head(rd_http2 *http2, size_t len);

/* It has sent this one, or dropped it. */
void rd_http2_remove_head(rd_http2 *http2, const nghttp2_frame *frame, bool is_sent);

/* No request of the connection reaches the application any more. */
void rd_http2_take_no_more(rd_http2 *http2);

#endif
