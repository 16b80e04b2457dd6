/* SPDX-License-Identifier: MIT
 *
 * A connection whose bytes mean something to the application alone. A listener accepts it, a
 * request became it (`upgrade.tcp`), the application gave its descriptor, or asked for it. What
 * arrives is given to the application in pieces of at most RD_RAW_MESSAGE_MAX bytes. Where one ends
 * means nothing. Under the loop lock.
 *
 *   OPEN ──the client's end──▶ ending: the application gets what came before, and may answer
 *     └──────close()─────────────▶ closing: what is queued leaves ──▶ closed
 *
 * While it is unclaimed, the application does not know it: then no event is left behind when it
 * breaks. If it has ended in good order, what it sent is still given to the application.
 */
#ifndef RD_ENDPOINT_RAW_H
#define RD_ENDPOINT_RAW_H

#include "endpoint/endpoint.h"
#include "request/request.h"
#include "transport/protocol.h"

enum { RD_RAW_MESSAGE_MAX = 65536 };

extern const rd_protocol rd_protocol_raw;

/* A connection of rd_protocol_raw is there because a listener accepted it: the application finds
 * what makes its handler by this number. */
void rd_raw_set_maker(rd_conn *conn, uint32_t number);

/* Opens a connection on a descriptor that is connected, for an application that has a handler for
 * it. Takes the descriptor over. Returns a reference for the caller, which then reads:
 * rd_conn_read_now(). */
rd_endpoint *rd_raw_open(rd_conn_set *set, int fd, const rd_address *peer);

/* For a connection that is still to be made (protocol/outgoing.h). Returns the protocol's
 * reference. */
rd_endpoint *rd_raw_dialing(struct rd_http_shared *shared);

/* Whether the connection of this request can become a raw one: nothing else uses its descriptor,
 * and the whole request has been read. */
bool rd_raw_is_possible(const rd_request *request);

/* Answers with this status and `fields`, without those that frame a body. What the client sends
 * after its request are the first bytes of the raw connection. Returns a reference for the caller,
 * or NULL when the client has gone, or its connection cannot become a raw one. */
rd_endpoint *rd_raw_upgrade(rd_request *request, int status, const rd_field *fields, size_t count);

#endif
