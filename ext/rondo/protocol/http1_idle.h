/* SPDX-License-Identifier: MIT
 *
 * An HTTP/1.1 connection between two requests: whether it can make room for others, how it ends
 * when the server stops, and how it moves to another process. There it may continue with a request
 * that has not been answered. Under the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_IDLE_H
#define RD_PROTOCOL_HTTP1_IDLE_H

#include "protocol/http1_state.h"
#include "transport/packed.h"

/* Whether nothing of the next request has been received. */
bool rd_http1_is_between_requests(const rd_http1 *http);

/* The same of a connection. */
bool rd_http1_is_idle(rd_conn *conn);

/* Callbacks of rd_protocol_http1. */
bool rd_http1_is_spare(rd_conn *conn, bool kept, uint64_t since_ms);
void rd_http1_on_shutdown(rd_conn *conn);
bool rd_http1_pack(rd_conn *conn, bool request, rd_packed *packed);
void rd_http1_unpack(rd_conn *conn, const rd_packed *packed);

#endif
