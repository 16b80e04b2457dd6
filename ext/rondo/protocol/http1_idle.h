/* SPDX-License-Identifier: MIT
 *
 * An HTTP/1.1 connection between two requests: whether it can make room for others, how it ends
 * when the server stops, and how it goes on in another process, there also with a request that
 * nobody has answered. Under the loop lock.
 */
#ifndef RD_PROTOCOL_HTTP1_IDLE_H
#define RD_PROTOCOL_HTTP1_IDLE_H

#include "protocol/http1.h"
#include "transport/packed.h"

/* Nothing of the next request has come. */
bool rd_http1_is_between_requests(const rd_http1 *http);

/* The same of a connection. */
bool rd_http1_is_idle(rd_conn *conn);

/* Functions of rd_protocol_http1. */
bool rd_http1_is_spare(rd_conn *conn, bool kept, uint64_t since_ms);
void rd_http1_on_shutdown(rd_conn *conn);
bool rd_http1_pack(rd_conn *conn, bool request, rd_packed *packed);
void rd_http1_unpack(rd_conn *conn, const rd_packed *packed);

#endif
