/* SPDX-License-Identifier: MIT
 *
 * How much is on its way (http2/http2_flight.c), on a line that is played: bytes leave while it is
 * not full, arrive at a rate, and the answer of a PING comes back a round trip later.
 */
#include "http2/http2_flight.h"

#include "check.h"

#define MS    1000000ULL
#define LEAST 98304

typedef struct line {
    rd_http2_flight flight;
    uint64_t now_ns, trip_ns, free_ns; /* when the line has carried what it has */
    double bytes_per_ns;
    struct {
        uint32_t number;
        uint64_t due_ns;
    } answers[64];
    unsigned first, next;
    uint64_t longest; /* on its way at the same time */
} line;

static line new_line(double bytes_per_s, uint64_t trip_ns) {
    line made = {.now_ns = 1000 * MS, .trip_ns = trip_ns, .bytes_per_ns = bytes_per_s / 1e9};
    rd_http2_flight_init(&made.flight);
    rd_http2_flight_share(&made.flight, made.now_ns / MS + 1000000);
    return made;
}

static void carry(line *on, uint64_t bytes) {
    if (on->free_ns < on->now_ns) on->free_ns = on->now_ns;
    on->free_ns += (uint64_t)((double)bytes / on->bytes_per_ns);
    on->flight.sent += bytes;
    const uint64_t way = on->flight.sent - on->flight.arrived;
    if (way > on->longest) on->longest = way;
}

static void ask(line *on) {
    if (!rd_http2_flight_must_ask(&on->flight, on->now_ns / MS)) return;
    on->answers[on->next % 64].number = on->flight.next;
    on->answers[on->next++ % 64].due_ns =
        (on->free_ns > on->now_ns ? on->free_ns : on->now_ns) + on->trip_ns;
    rd_http2_flight_ask(&on->flight, on->now_ns);
}

/* A long answer for so long: sends while it may, then waits for the next answer of a PING. */
static void run(line *on, uint64_t for_ns) {
    const uint64_t end_ns = on->now_ns + for_ns;
    on->longest = 0;
    while (on->now_ns < end_ns) {
        if (!rd_http2_flight_is_full(&on->flight, on->now_ns / MS)) {
            carry(on, 16384);
            ask(on);
            on->now_ns += 1000;
        } else if (CHECK(on->first != on->next)) {
            const uint64_t due_ns = on->answers[on->first % 64].due_ns;
            if (due_ns > on->now_ns) on->now_ns = due_ns;
        } else {
            return;
        }
        while (on->first != on->next && on->answers[on->first % 64].due_ns <= on->now_ns) {
            CHECK(rd_http2_flight_arrive(&on->flight, on->answers[on->first++ % 64].number,
                                         on->now_ns));
        }
    }
}

/* Fast enough, and no more on its way than twice what the line needs and a bit. */
static void check_line(double bytes_per_s, uint64_t trip_ns) {
    line on = new_line(bytes_per_s, trip_ns);
    run(&on, 30 * trip_ns);
    const uint64_t before = on.flight.sent, since_ns = on.now_ns;
    run(&on, 100 * trip_ns);
    const double rate = (double)(on.flight.sent - before) / (double)(on.now_ns - since_ns) * 1e9;
    const double needs = bytes_per_s * (double)trip_ns / 1e9;
    CHECK_SAYS(rate > 0.9 * bytes_per_s, "%g of %g", rate, bytes_per_s);
    CHECK_SAYS((double)on.longest < 3 * needs + 2 * LEAST, "%g, needed %g", (double)on.longest,
               needs);
}

static void test_lines(void) {
    check_line(1e6, 100 * MS);
    check_line(10e6, 20 * MS);
    check_line(100e6, MS);
    check_line(100e6, 50 * MS);
    check_line(500e6, MS / 20);
}

/* The round trip becomes ten times as long, and short again. */
static void test_a_way_that_changes(void) {
    line on = new_line(20e6, 10 * MS);
    run(&on, 1000 * MS);
    on.trip_ns = 100 * MS;
    run(&on, 12000 * MS);
    run(&on, 12000 * MS);
    const uint64_t before = on.flight.sent, since_ns = on.now_ns;
    run(&on, 5000 * MS);
    CHECK((double)(on.flight.sent - before) > 0.8 * 0.02 * (double)(on.now_ns - since_ns));
    on.trip_ns = 10 * MS;
    run(&on, 30000 * MS);
    run(&on, 1000 * MS);
    CHECK_SAYS(on.longest < 800000, "%llu", (unsigned long long)on.longest);
}

static void test_a_line_that_is_not_shared(void) {
    rd_http2_flight flight;
    rd_http2_flight_init(&flight);
    flight.sent = 2 * LEAST;
    CHECK(!rd_http2_flight_is_full(&flight, 5000));
    rd_http2_flight_share(&flight, 5000);
    CHECK(rd_http2_flight_is_full(&flight, 5000));
    CHECK(rd_http2_flight_is_full(&flight, 5999));
    CHECK(!rd_http2_flight_is_full(&flight, 6000));
}

static void test_numbers(void) {
    rd_http2_flight flight;
    rd_http2_flight_init(&flight);
    flight.first = flight.next = UINT32_MAX - 1;
    CHECK(!rd_http2_flight_arrive(&flight, UINT32_MAX - 1, 1));
    for (unsigned i = 0; i < RD_HTTP2_PROBES; i++) {
        flight.sent += LEAST;
        CHECK(rd_http2_flight_must_ask(&flight, 0) == (flight.sent - flight.asked >= 2 * LEAST));
        rd_http2_flight_ask(&flight, 10 + i);
    }
    flight.sent += 100 * LEAST;
    CHECK(!rd_http2_flight_must_ask(&flight, 0)); /* enough are on their way */
    CHECK(!rd_http2_flight_arrive(&flight, UINT32_MAX - 2, 20));
    CHECK(!rd_http2_flight_arrive(&flight, 6, 20));
    CHECK(rd_http2_flight_arrive(&flight, 1, 20)); /* with those before it */
    CHECK(!rd_http2_flight_arrive(&flight, 0, 21));
    CHECK(!rd_http2_flight_arrive(&flight, UINT32_MAX, 21));
    CHECK(rd_http2_flight_arrive(&flight, 5, 22));
    CHECK(!rd_http2_flight_arrive(&flight, 5, 23));
}

int main(void) {
    test_lines();
    test_a_way_that_changes();
    test_a_line_that_is_not_shared();
    test_numbers();
    return check_summary();
}
