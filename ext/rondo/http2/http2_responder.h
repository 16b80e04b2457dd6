/* SPDX-License-Identifier: MIT
 *
 * The answering side of a stream of HTTP/2, and refusals. Bodies are what the stream's connection
 * has queued, without any framing. Under the loop lock.
 */
#ifndef RD_HTTP2_HTTP2_RESPONDER_H
#define RD_HTTP2_HTTP2_RESPONDER_H

#include "http2/http2_session.h"
#include "request/responder.h"

extern const rd_responder rd_http2_responder;

/* Answers a broken rule on a stream whose request the application does not have. */
void rd_http2_refuse(rd_conn *conn, int code);

#endif
