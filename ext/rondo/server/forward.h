/* SPDX-License-Identifier: MIT
 *
 * Requests that another worker answers although their connections cannot move there, because their
 * transport has state in this process. When this worker is stuck, its watch thread sends such a
 * request to a sibling, with one end of a socket pair in place of the connection (a forward). The
 * sibling answers it as any request, in HTTP/1.1, and this worker writes that answer into the
 * client's connection (protocol/forwarding.h).
 *
 *   client ══ TLS ══▶ stuck worker ── message: pair, head, body ──▶ sibling
 *          ◀═════════ watch thread ◀──── answer, by the pair ─────── application
 *
 * Requests on streams of HTTP/2 are forwarded one by one, whatever else their connection does, but
 * of one connection at most as many at a time as it has seats (request/line.h).
 *
 * At most RD_FORWARDS_MAX run at a time; the other requests wait in the queue, as if there were no
 * forwards. A request is forwarded at most once and never repeated, because the sibling may have
 * begun it, or may have ended because of it. Each end of the pair closes when the other one is
 * closed, so a client that leaves is gone for the sibling's application, too. A slow client holds
 * up the sibling: what is between the two is at most output_high_bytes at each end and what a
 * socket pair holds. The reasons are in docs/decisions/0028-requests-are-forwarded.md. Under the
 * loop lock.
 */
#ifndef RD_SERVER_FORWARD_H
#define RD_SERVER_FORWARD_H

#include "request/request.h"

#define RD_FORWARDS_MAX 64

struct rd_server;

typedef struct rd_forwards {
    uint32_t running;
    uint64_t out, in; /* requests so far: given to siblings, taken from them */
} rd_forwards;

/* Whether the request can be forwarded now. */
bool rd_forward_can_begin(const struct rd_server *server, const rd_request *request);

/* Takes the request, which waits for the application, out of the queue, and sends it to worker
 * `to`. False: nothing has changed. */
bool rd_forward_begin(struct rd_server *server, rd_request *request, int64_t to);

/* The protocol lets go of a forwarded request. */
void rd_forward_leave(struct rd_server *server, rd_request *request);

#endif
