/* SPDX-License-Identifier: MIT
 *
 * A stream of events (WHATWG HTML, section 9.2) on a connection that came as HTTP/1.1 or 1.0. The
 * body ends with the connection: without the chunked coding an event is the same bytes for every
 * subscriber, and whoever loses the end loses nothing, since an event counts once it is complete.
 * Nothing is expected from the client. Under the loop lock.
 *
 *   OPEN ──close(), or the client's end──▶ closing: what is queued leaves ──▶ closed
 */
#ifndef RD_ENDPOINT_SSE_H
#define RD_ENDPOINT_SSE_H

#include "http/push.h"
#include "http/request.h"
#include "endpoint/sse_field.h"
#include "transport/protocol.h"

extern const rd_protocol rd_protocol_sse;

/* Whether the request asks for a stream of events. */
bool rd_sse_is_asked(const rd_request *request);

/* Answers with 200 and `fields` (without those that are the server's here), and makes the
 * connection a stream of events. A reference for the caller, or NULL when the client has gone. */
rd_push *rd_sse_upgrade(rd_request *request, const rd_field *fields, size_t count);

#endif
