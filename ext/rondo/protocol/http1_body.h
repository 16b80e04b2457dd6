/* SPDX-License-Identifier: MIT
 *
 * The body of a request on its way in: taken out of its framing, stored, watched by its deadlines,
 * until the application may have it. http1.c calls it with what comes behind the head. Under the
 * loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_BODY_H
#define RD_PROTOCOL_HTTP1_BODY_H

#include "protocol/http1.h"

/* The head is complete and has a framing. `more_came`: bytes behind it are here already. */
void rd_http1_begin_body(rd_conn *conn, bool more_came);

/* How many of these bytes belong to the body; it may be over, or have failed, by then. */
size_t rd_http1_read_body(rd_conn *conn, const char *bytes, size_t len);

/* Nothing of the request is missing: the application gets it, or is told if it has it. */
void rd_http1_body_complete(rd_conn *conn);

/* The body cannot be completed: refuses the request, or tells the application that has it, which
 * hears of it when it reads. */
void rd_http1_fail_body(rd_conn *conn, int code);

/* Nobody waits any longer for the body of a request that the application has already. */
void rd_http1_give_up_body(rd_conn *conn);

/* The application has the body of the request, or will not get it. Does nothing when it was not
 * called before its body. */
void rd_http1_end_early_call(rd_http1 *http);

#endif
