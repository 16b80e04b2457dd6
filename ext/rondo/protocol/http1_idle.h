/* SPDX-License-Identifier: MIT
 *
 * An HTTP/1.1 connection between two requests: whether it can make room for others, how it ends
 * when the server stops, and how it goes on in another process. Under the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_IDLE_H
#define RD_PROTOCOL_HTTP1_IDLE_H

#include "protocol/http1.h"

/* Nothing of the next request has come. */
bool rd_http1_is_between_requests(const rd_http1 *http);

/* The same, or nothing has come of it at all and the PROXY header is not whole yet. */
bool rd_http1_is_idle(rd_conn *conn);

/* The connection is new here and comes from another process, where so many requests were served on
 * it and its PROXY header was read. */
void rd_http1_resume(rd_conn *conn, uint32_t served);

/* Functions of rd_protocol_http1. */
bool rd_http1_is_spare(rd_conn *conn, bool kept, uint64_t since_ms);
void rd_http1_on_shutdown(rd_conn *conn);
bool rd_http1_is_movable(rd_conn *conn);

#endif
