/* SPDX-License-Identifier: MIT
 *
 * The worker that has the client of a forwarded request: reads the answer of the other worker from
 * a socket pair, and gives it to the responder of the request. Knows neither queue nor siblings;
 * those are server/forward.c. Under the loop lock.
 *
 *   pair ──▶ http1_reply.c ──▶ responder of the request ──▶ client
 *
 * The pair closes when the request is answered or its client has gone. If the pair closes first,
 * the client gets 502, or sees that its answer is not complete. An application of the other worker
 * that takes the connection (hijack) gets it: both become one pump.
 */
#ifndef RD_PROTOCOL_FORWARDING_H
#define RD_PROTOCOL_FORWARDING_H

#include "request/request.h"

/* Whether another process can answer the request, but not take over its connection. */
bool rd_forwarding_is_possible(const rd_request *request);

/* Takes over `fd`, this process's end of the pair. The place of the request, which must be in none,
 * is RD_PLACE_FORWARDED from now on. */
void rd_forwarding_begin(rd_request *request, int fd);

/* The protocol lets go of the request: it leaves that place, and the pair is closed. */
void rd_forwarding_end(rd_request *request);

#endif
