/* SPDX-License-Identifier: MIT
 *
 * The protocol that a stream of HTTP/2 begins with: one request, in all but its framing that of
 * HTTP/1.1, whose state it uses (http1_state.h). Under the loop lock.
 */
#ifndef RD_HTTP2_HTTP2_REQUEST_H
#define RD_HTTP2_HTTP2_REQUEST_H

#include "http2/http2_session.h"

/* The head of a request is complete: opens its stream. `text` is the head, or empty if it was
 * refused with this code, RD_ERR_*. `ends`: there is no body. */
void rd_http2_request_open(rd_http2 *http2, int32_t id, rd_slice text, int code, bool ends);

/* The client has sent a PRIORITY_UPDATE (RFC 9218, section 7.1). The library has read it, too. */
void rd_http2_request_reprioritize(rd_conn *conn, rd_slice priority);

#endif
