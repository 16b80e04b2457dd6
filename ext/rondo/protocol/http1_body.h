/* SPDX-License-Identifier: MIT
 *
 * The body of an incoming request: taken out of its framing, stored, watched by its deadlines,
 * until the application may have it. http1.c calls these functions with the bytes behind the head.
 * Under the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_BODY_H
#define RD_PROTOCOL_HTTP1_BODY_H

#include "protocol/http1_state.h"

/* The head is complete and announces a body. `more_came`: some bytes behind it have been
 * received. */
void rd_http1_begin_body(rd_conn *conn, bool more_came);

/* Reads the body. Returns how many of these bytes belong to it. Afterwards the body may be
 * complete, or may have failed. */
size_t rd_http1_read_body(rd_conn *conn, const char *bytes, size_t len);

/* All bytes of the body have come. The application gets the request once they are stored. */
void rd_http1_end_body(rd_conn *conn);

/* The request is complete: the application gets it, or is notified if it has the request
 * already. */
void rd_http1_body_complete(rd_conn *conn);

/* The body cannot be completed: refuses the request. If the application has the request already,
 * its next read fails. */
void rd_http1_fail_body(rd_conn *conn, int code);

/* Rows of rd_responder; request/responder.h describes them. */
int rd_http1_want_body(rd_request *request);
void rd_http1_give_up(rd_request *request);

#endif
