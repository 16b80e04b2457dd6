/* SPDX-License-Identifier: MIT
 *
 * How much is on its way to the client of a connection of HTTP/2. What a long answer has ahead of
 * it in sockets and routers, a short one on another stream has ahead of it, too: without a limit,
 * several megabytes. So long answers wait while more is on its way than the line needs to stay
 * full: twice what arrives in the shortest round trip, as BBR does it. PINGs between what is sent
 * measure both: their answers say what the client itself has read, not only its kernel.
 * Knows neither library nor connection.
 */
#ifndef RD_HTTP2_HTTP2_FLIGHT_H
#define RD_HTTP2_HTTP2_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

enum { RD_HTTP2_PROBES = 8 }; /* a power of two */

/* A PING that is on its way. */
typedef struct rd_http2_probe {
    uint64_t sent, sent_ns;       /* bytes before it; when it left */
    uint64_t arrived, arrived_ns; /* what was known then */
    bool is_alone;                /* little was on its way */
} rd_http2_probe;

typedef struct rd_http2_flight {
    uint64_t sent;       /* bytes, in all */
    uint64_t arrived;    /* of these, those of which it is known */
    uint64_t arrived_ns; /* when that was learned */
    uint64_t asked;      /* of those sent, when the last PING left */
    uint64_t limit;      /* of bytes on their way */
    uint64_t least_ns;   /* the shortest round trip, or UINT64_MAX */
    uint64_t least_since_ns;
    uint64_t shared_until_ms; /* the client has asked for something else not long ago */
    bool measures;            /* waits for a round trip behind little */
    uint32_t first, next;     /* PINGs: answered, sent */
    rd_http2_probe probes[RD_HTTP2_PROBES]; /* by their numbers */
} rd_http2_flight;

void rd_http2_flight_init(rd_http2_flight *flight);

/* The client asks for something while something else is on its way. */
void rd_http2_flight_share(rd_http2_flight *flight, uint64_t now_ms);

/* Whether a PING is due. */
bool rd_http2_flight_must_ask(const rd_http2_flight *flight, uint64_t now_ms);

/* The PING of the number `next` leaves. */
void rd_http2_flight_ask(rd_http2_flight *flight, uint64_t now_ns);

/* The PING of this number is answered, and so are those before it. False: there is none. */
bool rd_http2_flight_arrive(rd_http2_flight *flight, uint32_t number, uint64_t now_ns);

/* Whether long answers must wait for rd_http2_flight_arrive(). */
bool rd_http2_flight_is_full(const rd_http2_flight *flight, uint64_t now_ms);

#endif
