/* SPDX-License-Identifier: MIT
 *
 * The head of an answer on a stream of HTTP/2: names in lower case, without the fields that belong
 * to a connection of HTTP/1.1, with those that the server adds. Under the loop lock.
 */
#ifndef RD_HTTP2_HTTP2_ANSWER_H
#define RD_HTTP2_HTTP2_ANSWER_H

#include "request/responder.h"
#include "transport/conn.h"

/* Gives the library the head. Without a body it ends the stream. A status below 200 is followed by
 * another head. The stream may be closed when this returns. */
void rd_http2_send_head(rd_conn *conn, const rd_response_head *head, bool has_body);

#endif
