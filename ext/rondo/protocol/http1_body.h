/* SPDX-License-Identifier: MIT
 *
 * The body of an incoming request: taken out of its framing, stored, watched by its deadlines,
 * until the application may have it. http1.c calls these functions with the bytes behind the head.
 * Under the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_BODY_H
#define RD_PROTOCOL_HTTP1_BODY_H

#include "protocol/http1.h"

/* The head is complete and announces a body. `more_came`: some bytes behind it have been
 * received. */
void rd_http1_begin_body(rd_conn *conn, bool more_came);

/* Reads the body. Returns how many of these bytes belong to it. Afterwards the body may be
 * complete, or may have failed. */
size_t rd_http1_read_body(rd_conn *conn, const char *bytes, size_t len);

/* The request is complete: the application gets it, or is notified if it has the request
 * already. */
void rd_http1_body_complete(rd_conn *conn);

/* The body cannot be completed: refuses the request. If the application has the request already,
 * its next read fails. */
void rd_http1_fail_body(rd_conn *conn, int code);

/* The application no longer waits for the body of a request that it has already. */
void rd_http1_give_up_body(rd_conn *conn);

/* The application has the body of the request, or will not get it. Does nothing if it was not
 * called before its body. */
void rd_http1_end_early_call(rd_http1 *http);

#endif
