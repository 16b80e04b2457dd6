/* SPDX-License-Identifier: MIT
 *
 * A stream of HTTP/2 as a connection that another one carries: its transport, and the protocol that
 * it begins with. A request on it is one of HTTP/1.1 in all but its framing, and can become what
 * any request can become. Under the loop lock.
 */
#ifndef RD_HTTP2_HTTP2_STREAM_H
#define RD_HTTP2_HTTP2_STREAM_H

#include "http2/http2_session.h"

/* The head of a request is complete: opens its stream. `text` is the head, or empty if it was
 * refused with this code, RD_ERR_*. `ends`: there is no body. */
void rd_http2_stream_open(rd_http2 *http2, int32_t id, rd_slice text, int code, bool ends);

/* More has come for the stream. */
void rd_http2_stream_take(rd_conn *conn, const char *bytes, size_t len);

/* The client sends no more on the stream, because it has ended it or because it is gone. */
void rd_http2_stream_end_input(rd_conn *conn, bool is_whole);

/* The client has sent a PRIORITY_UPDATE (RFC 9218, section 7.1). The library has read it, too. */
void rd_http2_stream_reprioritize(rd_conn *conn, rd_slice priority);

/* The library has closed the stream. */
void rd_http2_stream_closed(rd_conn *conn);

#endif
