/* SPDX-License-Identifier: MIT
 *
 * Many clients that do not read what they asked for: together they hold no more than
 * total_output_bytes. The one that has taken nothing for longest is closed; those that read stay.
 */
#include "transport/stalled.h"

#include "base/error.h"
#include "endpoint/websocket.h"
#include "server/events.h"
#include "serving.h"

#define HANDSHAKE                                                                                  \
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                   \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

enum { CROWD = 20, LARGE = 400000, TOTAL = 1 << 20, JUDGED_MS = 500 };

static char large[LARGE];
static int crowd[CROWD];
static rd_endpoint *endpoints[CROWD];
static unsigned push_count;

static rd_ledger_row *row(void) {
    return &server->conns.ledger.rows[RD_LEDGER_OUTPUT];
}

static void answer_large(rd_request *request) {
    const rd_slice path = rd_request_slice(request, request->head.path);
    if (path.len == 2 && path.ptr[1] == 's') {
        answer_path(request);
    } else {
        answer_with(request, large, sizeof(large));
    }
}

static void gather_each(void (*application)(rd_request *), const char *request, uint64_t ms) {
    settings.total_output_bytes = TOTAL;
    start(application);
    for (int i = 0; i < CROWD; i++) {
        say(crowd[i] = join(), request);
        turns(2);
        pass_ms(ms);
    }
}

static void gather(void (*application)(rd_request *), const char *request) {
    gather_each(application, request, JUDGED_MS);
}

static void leave_all(void) {
    for (int i = 0; i < CROWD; i++) close(crowd[i]);
    turns(3);
    CHECK_INT(row()->held, 0);
    CHECK(rd_list_is_empty(&server->conns.stalled));
    end();
}

/* How many of these clients are still connected, in the order of arrival. */
static int count_open(int from, int to) {
    int open = 0;
    for (int i = from; i < to; i++) {
        ssize_t part;
        while ((part = recv(crowd[i], got, sizeof(got), 0)) > 0) {
        }
        open += part < 0 && errno == EAGAIN;
    }
    return open;
}

static void test_the_longest_stalled_goes(void) {
    gather(answer_large, GET("/large"));
    const int closed = (int)row()->refused;
    CHECK(row()->held <= TOTAL);
    CHECK(closed > 0 && closed < CROWD);
    CHECK_INT(server->conns.count, CROWD - closed);
    CHECK(server->incidents.count > 0 && server->incidents.count <= (unsigned)closed);
    CHECK_INT(server->incidents.kept[0].code, RD_ERR_OUTPUT_FULL);
    CHECK_INT(atomic_load(&server->score->output_bytes_refused), closed);
    int other = join();
    CHECK(!ask(other, GET("/s")) && ends(got, "/s"));
    close(other);
    CHECK_INT(count_open(0, closed), 0); /* the first clients */
    CHECK_INT(count_open(closed, CROWD), CROWD - closed);
    leave_all();
}

/* Slow is not stalled: a client that takes bytes now and then is closed after those that take none.
 */
static void test_a_reader_stays(void) {
    settings.total_output_bytes = TOTAL;
    start(answer_large);
    int reader = join(), taken = 0;
    say(reader, GET("/large"));
    turns(2);
    for (int i = 0; i < CROWD; i++) crowd[i] = join();
    for (int i = 0; i < 10; i++) {
        say(crowd[i], GET("/large"));
        later(JUDGED_MS);
        ssize_t part = recv(reader, got, 33000, 0); /* far fewer bytes than the kernel waits for */
        CHECK(part > 0);
        taken += (int)part;
    }
    CHECK(row()->refused > 0);
    for (ssize_t part; taken < LARGE; taken += (int)part) {
        part = recv(reader, got, sizeof(got), 0);
        if (!CHECK(part > 0)) break;
        turns(2);
    }
    close(reader);
    leave_all();
}

static void take(int client, int parts) {
    for (; parts > 0; parts--) CHECK(recv(client, got, 33000, 0) > 0);
}

/* If all of them read, a turn closes only one: the one that has taken least. */
static void test_the_slowest_of_those_that_read(void) {
    enum { SLOWEST = CROWD - 3, TOO_MUCH = 64000 };
    gather(answer_large, GET("/large"));
    const int first = (int)row()->refused;
    const uint64_t limit = row()->held - TOO_MUCH;
    CHECK(first < SLOWEST);
    for (int i = first; i < CROWD; i++) take(crowd[i], i == SLOWEST ? 3 : 5);
    rd_ledger_limit(&server->conns.ledger, RD_LEDGER_OUTPUT, limit);
    pass_ms(JUDGED_MS);
    turns(1);
    CHECK_INT(row()->refused, first + 1);
    CHECK_INT(count_open(SLOWEST, SLOWEST + 1), 0);
    CHECK(row()->held <= limit);
    leave_all();
}

/* But together they never hold much more than the limit. */
static void test_far_too_many_that_read(void) {
    gather(answer_large, GET("/large"));
    const uint64_t limit = row()->held / 2;
    for (int i = (int)row()->refused; i < CROWD; i++) take(crowd[i], 1);
    rd_ledger_limit(&server->conns.ledger, RD_LEDGER_OUTPUT, limit);
    turns(1);
    CHECK(row()->held <= limit + limit / 8);
    CHECK(server->conns.count > 0);
    leave_all();
}

/* A distant client acknowledges nothing for a round trip, however fast it reads. */
static void test_time_to_take_something(void) {
    gather_each(answer_large, GET("/large"), 0);
    const uint64_t before = row()->refused;
    CHECK(row()->held > TOTAL - TOTAL / 8 && row()->held <= TOTAL + TOTAL / 8);
    rd_ledger_limit(&server->conns.ledger, RD_LEDGER_OUTPUT, row()->held - row()->held / 16);
    turns(2);
    pass_ms(JUDGED_MS - 1);
    turns(2);
    CHECK_INT(row()->refused, before);
    later(1);
    CHECK(row()->refused > before && row()->held <= row()->limit - row()->limit / 8);
    CHECK(server->conns.count > 0);
    leave_all();
}

static void test_what_is_small_is_free(void) {
    settings.output_high_bytes = LARGE;
    gather(answer_path, GET("/s"));
    CHECK_INT(row()->held, 0);
    CHECK_INT(count_open(0, CROWD), CROWD);
    leave_all();
}

static void upgrade(rd_request *request) {
    endpoints[push_count++] = rd_websocket_upgrade(request, NULL, 0);
}

static void tell_all(void) {
    rd_event event = {.source = NULL};
    while (rd_server_next_event(server, &event, true)) {
    }
}

static void test_websockets(void) {
    gather(upgrade, HANDSHAKE);
    rd_loop_lock(&server->loop);
    tell_all();
    rd_loop_unlock(&server->loop);
    for (int i = 0; i < CROWD; i++) {
        rd_loop_lock(&server->loop);
        if (endpoints[i]->conn != NULL)
            rd_endpoint_ops_of(endpoints[i])->write(endpoints[i], large, sizeof(large), false);
        rd_loop_unlock(&server->loop);
        turns(2);
        later(JUDGED_MS);
        CHECK(row()->held <= TOTAL);
    }
    const int closed = (int)row()->refused;
    CHECK(closed > 0 && closed < CROWD);
    for (int i = 0; i < CROWD; i++) {
        CHECK_INT(endpoints[i]->conn == NULL, i < closed);
        CHECK_INT(endpoints[i]->close_code, i < closed ? 1013 : RD_ENDPOINT_ABNORMAL);
    }
    for (int i = 0; i < CROWD; i++) close(crowd[i]);
    turns(3);
    rd_loop_lock(&server->loop);
    tell_all();
    for (int i = 0; i < CROWD; i++) rd_endpoint_unref(endpoints[i]);
    rd_loop_unlock(&server->loop);
    push_count = 0;
    CHECK_INT(row()->held, 0);
    end();
}

/* A message that all of them wait for exists once. */
static void test_a_message_for_all_counts_once(void) {
    gather(upgrade, HANDSHAKE);
    rd_loop_lock(&server->loop);
    tell_all();
    const rd_subscribe_terms terms = {0};
    for (int i = 0; i < CROWD; i++) {
        rd_channels_subscribe(&server->pubsub.channels, &endpoints[i]->subscriber, RD_SLICE("c"),
                              false, &terms);
    }
    rd_message *message = rd_message_new(RD_SLICE("c"), rd_slice_of(large, LARGE), false, 0);
    rd_channels_enqueue(&server->pubsub.channels, message);
    rd_message_unref(message);
    rd_loop_unlock(&server->loop);
    turns(10);
    CHECK(row()->held >= LARGE && row()->held < LARGE + 1000);
    CHECK_INT(row()->refused, 0);
    CHECK(!rd_list_is_empty(&server->conns.stalled));
    for (int i = 0; i < CROWD; i++) close(crowd[i]);
    turns(3);
    CHECK_INT(row()->held, 0);
    rd_loop_lock(&server->loop);
    tell_all();
    for (int i = 0; i < CROWD; i++) rd_endpoint_unref(endpoints[i]);
    rd_loop_unlock(&server->loop);
    push_count = 0;
    end();
}

static void test_all(void) {
    memset(large, 'x', sizeof(large));
    test_the_longest_stalled_goes();
    test_a_reader_stays();
    test_the_slowest_of_those_that_read();
    test_far_too_many_that_read();
    test_time_to_take_something();
    test_what_is_small_is_free();
    test_websockets();
    test_a_message_for_all_counts_once();
}

int main(void) {
    return test_both_pollers(test_all);
}
