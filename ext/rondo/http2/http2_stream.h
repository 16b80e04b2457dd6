/* SPDX-License-Identifier: MIT
 *
 * A stream of HTTP/2 as a connection that another one carries: its transport. The protocol that it
 * begins with is in http2_request.h, and any other may follow. Under the loop lock.
 */
#ifndef RD_HTTP2_HTTP2_STREAM_H
#define RD_HTTP2_HTTP2_STREAM_H

#include "http2/http2_session.h"

/* Opens a connection for the stream with this number. */
rd_conn *rd_http2_stream_new(rd_http2 *http2, int32_t id, const rd_protocol *protocol);

/* A body comes on it. */
void rd_http2_stream_open_window(rd_conn *conn);

/* More has come for the stream. */
void rd_http2_stream_take(rd_conn *conn, const char *bytes, size_t len);

/* The client sends no more on the stream, because it has ended it or because it is gone. */
void rd_http2_stream_end_input(rd_conn *conn, bool is_whole);

/* The library has closed the stream. */
void rd_http2_stream_closed(rd_conn *conn);

/* Of the library: gives it bytes of the answer. */
ssize_t rd_http2_give(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t len,
                      uint32_t *flags, nghttp2_data_source *source, void *data);

#endif
