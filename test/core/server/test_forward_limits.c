/* SPDX-License-Identifier: MIT
 *
 * Limits of forwards (protocol/forwarding.c, server/forward.c): how many run, what a client that
 * does not read may cause, which requests stay, and when nobody can answer.
 */
#include "forward_pair.h"

/* ---- limits ---- */

enum { MANY = RD_FORWARDS_MAX + 20 };

static rd_request *all_held[MANY];
static unsigned held_count;

static void hold_all(rd_server *server, rd_request *request) {
    (void)server;
    rd_request_ref(request);
    all_held[held_count++] = request;
}

/* A bounded number at a time; the others follow as those end, or A answers them when it wakes. */
static void test_many(void) {
    begin_with(hold_all);
    int fds[MANY];
    for (int i = 0; i < MANY; i++) fds[i] = dial_shaken_with(answer);
    const uint64_t descriptors = servers[A]->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held;
    pin_a();
    for (int i = 0; i < MANY; i++) say_record(fds[i], GET("/many"));
    stand_in_and_serve(20);
    CHECK_INT(held_count, RD_FORWARDS_MAX);
    CHECK_INT(servers[A]->forwards.running, RD_FORWARDS_MAX);
    CHECK_INT(board.rows[A].forwards, RD_FORWARDS_MAX);
    CHECK_INT(servers[A]->queue.len, MANY - RD_FORWARDS_MAX);
    CHECK_INT(servers[A]->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held,
              descriptors + RD_FORWARDS_MAX);
    CHECK_INT(servers[A]->conns.count, MANY); /* they are no connections, here or there */
    CHECK_INT(servers[B]->conns.count, 0);
    CHECK_INT(servers[B]->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held, RD_FORWARDS_MAX);
    rd_loop_lock(&servers[B]->loop);
    for (int i = 0; i < 10; i++) answer(servers[B], all_held[i]);
    rd_loop_unlock(&servers[B]->loop);
    stand_in_and_serve(6);
    CHECK_INT(servers[A]->forwards.out, RD_FORWARDS_MAX + 10);
    wake_a();
    app = answer;
    serve_all();
    rd_loop_lock(&servers[B]->loop);
    for (unsigned i = 10; i < held_count; i++) answer(servers[B], all_held[i]);
    for (unsigned i = 0; i < held_count; i++) rd_request_unref(all_held[i]);
    rd_loop_unlock(&servers[B]->loop);
    serve_all();
    int by_a = 0, by_b = 0;
    for (int i = 0; i < MANY; i++) {
        const char *text = hear_records(fds[i]);
        by_a += strcmp(text, "A /many 0") == 0;
        by_b += strcmp(text, "B /many 0") == 0;
    }
    CHECK_INT(by_a, 10);
    CHECK_INT(by_b, MANY - 10);
    CHECK_INT(servers[A]->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held, descriptors);
    held_count = 0;
    end_with();
}

/* What B has sent of an endless answer, while the client reads nothing. */
static void test_a_client_that_does_not_read(void) {
    enum { PART = 16384 };
    static const char part[PART];
    const rd_response_head head = {.status = 200, .length = -1};
    begin_with(hold);
    const int fd = dial_shaken_with(answer);
    pin_a();
    say_record(fd, GET("/endless"));
    stand_in_and_serve(3);
    rd_request *request = seen.held;
    const size_t high = (size_t)servers[B]->settings.output_high_bytes;
    rd_loop_lock(&servers[B]->loop);
    request->responder->start(request, &head);
    rd_loop_unlock(&servers[B]->loop);
    size_t sent = 0, most = 0;
    for (int quiet = 0; quiet < 5;) {
        rd_loop_lock(&servers[B]->loop);
        const bool has_room = request->conn->out.bytes <= high;
        if (has_room) request->responder->write(request, part, PART);
        sent += has_room ? PART : 0;
        quiet = has_room ? 0 : quiet + 1;
        rd_loop_unlock(&servers[B]->loop);
        stand_in_and_serve(1);
        rd_list *first = servers[A]->conns.conns.next;
        const rd_conn *conn = RD_CONTAINER(first, rd_conn, in_set);
        if (conn->out.bytes > most) most = conn->out.bytes;
    }
    CHECK_SAYS(most < 4 * high, "A has queued %zu bytes", most);
    CHECK_SAYS(sent < 8 * high, "B has sent %zu bytes", sent);
    rd_ledger_row *output = &servers[A]->conns.ledger.rows[RD_LEDGER_OUTPUT];
    CHECK(output->held > 0); /* it counts as what any client does not read */
    /* The client reads on, and so does all the rest. */
    size_t heard_bytes = 0;
    const size_t goal = sent + 20 * high;
    for (int i = 0; i < 100000 && heard_bytes < goal; i++) {
        rd_loop_lock(&servers[B]->loop);
        const bool has_room = request->conn->out.bytes <= high && sent < goal;
        if (has_room) request->responder->write(request, part, PART);
        sent += has_room ? PART : 0;
        rd_loop_unlock(&servers[B]->loop);
        stand_in_and_serve(1);
        for (ssize_t len; (len = recv(fd, got, sizeof(got), 0)) > 0;) heard_bytes += (size_t)len;
    }
    CHECK(heard_bytes >= goal);
    shutdown(fd, SHUT_RDWR);
    stand_in_and_serve(3);
    CHECK(request->conn == NULL);
    CHECK_INT(output->held, 0);
    let_go(servers[B]);
    wake_a();
    end_with();
}

/* ---- what is not forwarded ---- */

static const char *const stay[] = {
    ("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"),
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nContent-Length: 0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
};

static void check_stays(int fd, const char *request) {
    const uint64_t before = servers[A]->counts.requests;
    pin_a();
    say_record(fd, request);
    stand_in_and_serve(4);
    CHECK_INT(servers[A]->forwards.out, 0);
    CHECK_INT(servers[A]->queue.len, 1);
    wake_a();
    serve_all();
    CHECK_INT(servers[A]->counts.requests, before + 1);
    hear_all(fd);
    CHECK_HAS(heard, "\r\n\r\nA /");
}

static void test_requests_that_stay(void) {
    begin_with(answer);
    const int fd = dial_shaken();
    for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++) check_stays(fd, stay[i]);
    end_with();
}

/* Many that stay do not keep those behind them. */
static void test_requests_behind_those_that_stay(void) {
    enum { STAY = 40 };
    begin_with(answer);
    int fds[STAY];
    for (int i = 0; i < STAY; i++) fds[i] = dial_shaken();
    const int last = dial_shaken();
    pin_a();
    for (int i = 0; i < STAY; i++) say_record(fds[i], stay[2]);
    stand_in(servers[A]);
    say_record(last, GET("/behind"));
    stand_in_and_serve(4);
    CHECK_STR(hear_records(last), "B /behind 0");
    CHECK_INT(servers[A]->queue.len, STAY);
    wake_a();
    serve_all();
    end_with();
}

/* What the application would be told of the client is known to one process only. */
static void test_a_client_that_the_application_is_told_of(void) {
    begin_with(answer);
    const int fd = dial_shaken();
    rd_list *first = servers[A]->conns.conns.next;
    rd_conn_layer(RD_CONTAINER(first, rd_conn, in_set))->identity = 1;
    check_stays(fd, GET("/known"));
    end_with();
}

static void test_nobody_to_answer(void) {
    begin_with(answer);
    const int fd = dial_shaken();
    board.rows[B].standing_in = board.rows[B].busy = 1; /* stuck as well */
    pin_a();
    say_record(fd, GET("/stuck"));
    for (int i = 0; i < 4; i++) stand_in(servers[A]);
    CHECK_INT(servers[A]->forwards.out, 0);
    board.rows[B].standing_in = board.rows[B].busy = 0;
    board.rows[B].state = RD_SCORE_DRAINING;
    for (int i = 0; i < 4; i++) stand_in(servers[A]);
    CHECK_INT(servers[A]->forwards.out, 0);
    board.rows[B].state = RD_SCORE_READY;
    wake_a();
    serve(servers[A]);
    serve(servers[A]);
    CHECK_STR(hear_records(fd), "A /stuck 0");
    end_with();
}

static void test_no_descriptors(void) {
    begin_with(answer);
    const int fd = dial_shaken();
    rd_ledger_row *descriptors = &servers[A]->conns.ledger.rows[RD_LEDGER_DESCRIPTORS];
    const uint64_t limit = descriptors->limit;
    descriptors->limit = descriptors->held + 1; /* a pair is two, until the message is sent */
    pin_a();
    say_record(fd, GET("/short"));
    stand_in_and_serve(4);
    CHECK_INT(servers[A]->forwards.out, 0);
    descriptors->limit = limit;
    stand_in_and_serve(4);
    CHECK_STR(hear_records(fd), "B /short 0");
    wake_a();
    end_with();
}

/* B cannot know whether its connections are encrypted. */
static void test_a_listener_that_the_sibling_does_not_have(void) {
    begin_with(answer);
    const int fd = dial_shaken();
    rd_listener_names_clear(&servers[B]->accepting.names);
    CHECK(starts(ask_b_in_vain(fd, GET("/any")), "HTTP/1.1 503 Service Unavailable\r\n"));
    CHECK_HAS(heard, "retry-after: 1\r\n");
    end_with();
}

/* It waits in B, which is stuck now, and does not go on to another worker. */
static void test_a_sibling_that_gets_stuck(void) {
    begin_with(answer);
    const int fd = dial_shaken();
    pin_a();
    say_record(fd, GET("/both"));
    stand_in(servers[A]);
    stand_in(servers[A]);
    board.rows[B].busy = 1;
    for (int i = 0; i < 4; i++) {
        stand_in(servers[B]);
        stand_in(servers[A]);
    }
    CHECK_INT(servers[B]->queue.len, 1);
    CHECK_INT(servers[B]->counts.handed_out, 0);
    CHECK_INT(servers[B]->forwards.out, 0);
    board.rows[B].busy = 0;
    stand_in_and_serve(4);
    CHECK_STR(hear_records(fd), "B /both 0");
    wake_a();
    end_with();
}

int main(void) {
    test_many();
    test_a_client_that_does_not_read();
    test_requests_that_stay();
    test_requests_behind_those_that_stay();
    test_a_client_that_the_application_is_told_of();
    test_nobody_to_answer();
    test_no_descriptors();
    test_a_listener_that_the_sibling_does_not_have();
    test_a_sibling_that_gets_stuck();
    return check_summary();
}
