/* SPDX-License-Identifier: MIT
 *
 * What is on its way to a client of HTTP/2; see http2_flight.h.
 */
#include "http2/http2_flight.h"

#define LEAST_BYTES 98304          /* that may always be on their way */
#define PARTS       4              /* a PING for each of so many parts of the limit */
#define ALONE       8              /* as much, for a client that asks for nothing else */
#define SHARED_MS   1000           /* after it did so */
#define FRESH_NS    10000000000ULL /* the shortest round trip is not older */

void rd_http2_flight_init(rd_http2_flight *flight) {
    *flight = (rd_http2_flight){.limit = LEAST_BYTES, .least_ns = UINT64_MAX};
}

void rd_http2_flight_share(rd_http2_flight *flight, uint64_t now_ms) {
    flight->shared_until_ms = now_ms + SHARED_MS;
}

static uint64_t limit_of(const rd_http2_flight *flight, uint64_t now_ms) {
    return now_ms < flight->shared_until_ms ? flight->limit : flight->limit * ALONE;
}

bool rd_http2_flight_must_ask(const rd_http2_flight *flight, uint64_t now_ms) {
    const uint64_t limit = flight->measures ? LEAST_BYTES : limit_of(flight, now_ms);
    return flight->sent - flight->asked >= limit / PARTS &&
           flight->next - flight->first < RD_HTTP2_PROBES;
}

void rd_http2_flight_ask(rd_http2_flight *flight, uint64_t now_ns) {
    const bool is_alone = flight->next == flight->first;
    flight->probes[flight->next % RD_HTTP2_PROBES] =
        (rd_http2_probe){.sent = flight->sent,
                         .sent_ns = now_ns,
                         .arrived = flight->arrived,
                         .arrived_ns = is_alone ? now_ns : flight->arrived_ns,
                         .is_alone = is_alone && flight->sent - flight->arrived < LEAST_BYTES};
    flight->asked = flight->sent;
    flight->next++;
}

/* Behind a full line no round trip is short. From time to time one is measured behind little,
 * because the way to the client may have become longer. */
static void see_round_trip(rd_http2_flight *flight, const rd_http2_probe *probe, uint64_t now_ns) {
    const uint64_t took_ns = now_ns - probe->sent_ns;
    if (took_ns < flight->least_ns || (flight->measures && probe->is_alone)) {
        flight->least_ns = took_ns;
        flight->least_since_ns = now_ns;
        flight->measures = false;
    } else if (now_ns - flight->least_since_ns > FRESH_NS) {
        flight->measures = true;
    }
}

/* What the line needs, by what arrived since the last answer before the PING left. That is a round
 * trip at least. An application that has less to send says nothing of the line, so the limit
 * falls slowly. */
static void set_limit(rd_http2_flight *flight, const rd_http2_probe *probe, uint64_t now_ns) {
    const uint64_t took_ns = now_ns - probe->arrived_ns;
    const double a_trip = took_ns > 0 ? (double)flight->least_ns / (double)took_ns : 1;
    const uint64_t needs = (uint64_t)(2 * a_trip * (double)(probe->sent - probe->arrived));
    const uint64_t kept = flight->limit - flight->limit / 8;
    flight->limit = needs > kept ? needs : kept;
    if (flight->limit < LEAST_BYTES) flight->limit = LEAST_BYTES;
}

bool rd_http2_flight_arrive(rd_http2_flight *flight, uint32_t number, uint64_t now_ns) {
    if (flight->next - number - 1 >= flight->next - flight->first) return false;
    const rd_http2_probe *probe = &flight->probes[number % RD_HTTP2_PROBES];
    flight->first = number + 1;
    see_round_trip(flight, probe, now_ns);
    set_limit(flight, probe, now_ns);
    flight->arrived = probe->sent;
    flight->arrived_ns = now_ns;
    return true;
}

bool rd_http2_flight_is_full(const rd_http2_flight *flight, uint64_t now_ms) {
    if (flight->measures) return flight->next != flight->first;
    return flight->sent - flight->arrived >= limit_of(flight, now_ms);
}
