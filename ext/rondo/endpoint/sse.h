/* SPDX-License-Identifier: MIT
 *
 * An event stream (WHATWG HTML, section 9.2) on a connection that began as HTTP/1.1 or 1.0. The
 * body ends with the connection. Without the chunked coding an event is the same bytes for every
 * subscriber, and a lost end does no harm, because an event counts once it is complete. The client
 * sends nothing. Under the loop lock.
 *
 *   OPEN ──close(), or the client's end──▶ closing: what is queued leaves ──▶ closed
 */
#ifndef RD_ENDPOINT_SSE_H
#define RD_ENDPOINT_SSE_H

#include "endpoint/endpoint.h"
#include "request/request.h"
#include "endpoint/sse_field.h"
#include "transport/protocol.h"

extern const rd_protocol rd_protocol_sse;

/* Whether the request asks for an event stream. */
bool rd_sse_is_asked(const rd_request *request);

/* Answers with 200 and `fields` (except those that the server sets itself), and makes the
 * connection an event stream. Returns a reference for the caller, or NULL when the client has
 * gone. */
rd_endpoint *rd_sse_upgrade(rd_request *request, const rd_field *fields, size_t count);

#endif
