/* SPDX-License-Identifier: MIT
 *
 * The answering side of a stream of HTTP/2: heads as fields for the library, refusals. Bodies are
 * what the stream's connection has queued, without any framing. Under the loop lock.
 */
#ifndef RD_HTTP2_HTTP2_RESPONDER_H
#define RD_HTTP2_HTTP2_RESPONDER_H

#include "http2/http2_session.h"
#include "request/responder.h"

extern const rd_responder rd_http2_responder;

/* Answers a broken rule on a stream whose request the application does not have. */
void rd_http2_refuse(rd_conn *conn, int code);

/* Of the library: gives it bytes of the answer. */
ssize_t rd_http2_give(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t len,
                      uint32_t *flags, nghttp2_data_source *source, void *data);

#endif
