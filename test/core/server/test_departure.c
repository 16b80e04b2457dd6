/* SPDX-License-Identifier: MIT
 *
 * A server that stops: its connections go on at its sibling with all that was read; what cannot go
 * is told that its next answer is the last one, and closed when it stays silent.
 */
#include "hand_clock.h"
#include "protocol/http1_state.h"
#include "siblings_pair.h"

#include "endpoint/sse.h"

#define ROUNDS 6

static void stop(rd_server *server) {
    rd_server_stop(server, RD_STOP_DRAIN);
    for (int i = 0; i < ROUNDS; i++) serve(server);
}

static void serve_both(void) {
    for (int i = 0; i < ROUNDS; i++) {
        serve(servers[A]);
        serve(servers[B]);
    }
}

static void later(uint64_t ms) {
    pass_ms(ms);
    serve_both();
}

/* A client of A, which A has answered. */
static int dial_and_ask(void) {
    board.rows[B].connections = 100; /* so that it stays at first */
    int fd = dial();
    say(fd, GET("/first"));
    serve(servers[A]);
    CHECK_STR(hear(fd), "A /first 0");
    board.rows[B].connections = 0;
    return fd;
}

static bool is_closed(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static bool says_it_is_the_last(void) {
    return strstr(got, "connection: close\r\n") != NULL;
}

static rd_conn *only_conn_of(rd_server *server) {
    CHECK_INT(server->conns.count, 1);
    return RD_CONTAINER(server->conns.conns.next, rd_conn, in_set);
}

static void test_idle_connections_move(void) {
    for (int shared = 0; shared < 2; shared++) {
        one_inbox = shared;
        start();
        int fd = dial_and_ask();
        rd_conn *conn = only_conn_of(servers[A]);
        conn->peer = (rd_address){.kind = RD_ADDRESS_V4, .bytes = {192, 0, 2, 7}, .port = 99};
        stop(servers[A]);
        CHECK(rd_server_is_done(servers[A]));
        CHECK_INT(servers[A]->counts.handed_out, 1);
        CHECK(!is_closed(fd));
        serve(servers[B]);
        conn = only_conn_of(servers[B]);
        CHECK_INT(conn->peer.bytes[3], 7);
        CHECK_INT(conn->peer.port, 99);
        CHECK_INT(rd_http1_of(conn)->served, 1);
        say(fd, GET("/second"));
        serve(servers[B]);
        CHECK_STR(hear(fd), "B /second 0");
        end();
    }
    one_inbox = false;
}

/* Bytes before the stop, bytes after it, and the answers of the other server to both.
 */
static void test_what_was_read_moves_as_well(void) {
    static const struct {
        const char *before, *after, *answer;
    } cases[] = {
        {"", GET("/new"), "B /new 0"},
        {"GET /half HT", "TP/1.1\r\nHost: a\r\n\r\n", "B /half 0"},
        {"\r\n", GET("/blank"), "B /blank 0"},
        {"POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r", "\n\r\nhello", "B /form 5"},
        {"GET /old HTTP/1.0\r\nConnection: keep-", "alive\r\n\r\n", "B /old 0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int asked = 0; asked < 2; asked++) {
            start();
            board.rows[B].connections = 100;
            int fd = asked ? dial_and_ask() : dial();
            say(fd, cases[i].before);
            serve(servers[A]);
            board.rows[B].connections = 0;
            stop(servers[A]);
            CHECK(rd_server_is_done(servers[A]));
            serve(servers[B]);
            say(fd, cases[i].after);
            serve(servers[B]);
            CHECK_STR(hear(fd), cases[i].answer);
            CHECK(!says_it_is_the_last());
            end();
        }
    }
}

static void test_what_came_meanwhile_is_answered_there(void) {
    start();
    int fd = dial_and_ask();
    stop(servers[A]);
    say(fd, GET("/1") GET("/2") "GET /3 HTTP/1.1\r\n"); /* it is between the servers now */
    serve_both();
    say(fd, "Host: a\r\n\r\n");
    serve_both();
    hear(fd);
    CHECK(strstr(got, "B /1 0") && strstr(got, "B /2 0") && strstr(got, "B /3 0"));
    end();
}

/* A connection in the middle of a request moves after the answer. */
static void test_after_the_answer(void) {
    start();
    int fd = dial_and_ask();
    say(fd, GET("/long"));
    rd_loop_lock(&servers[A]->loop);
    rd_server_turn(servers[A], wait_in_poll, true);
    rd_request *held = rd_server_next_request(servers[A], NULL);
    rd_loop_unlock(&servers[A]->loop);
    stop(servers[A]);
    CHECK(!rd_server_is_done(servers[A]));
    rd_loop_lock(&servers[A]->loop);
    answer(servers[A], held);
    rd_server_let_go(servers[A], held);
    rd_loop_unlock(&servers[A]->loop);
    serve(servers[A]);
    CHECK_STR(hear(fd), "A /long 0");
    CHECK(!says_it_is_the_last());
    serve(servers[A]);
    CHECK(rd_server_is_done(servers[A]));
    say(fd, GET("/next"));
    serve_both();
    CHECK_STR(hear(fd), "B /next 0");
    end();
}

static void take_proxies(rd_server *server) {
    rd_network *networks = rd_alloc_zero(sizeof(*networks));
    CHECK(rd_network_parse(networks, "unix", 4));
    rd_server_set_proxies(server, networks, 1);
}

/* The header comes once, at the beginning of the connection, on whichever server that is. */
static void test_behind_the_proxy_protocol(void) {
    static const char *const parts[][2] = {
        {"PROXY TCP4 192.0.2.9 192.0.2.1 5 80\r\n" GET("/1"), GET("/2")},
        {"PROXY TCP4 192.0.2.9 192.0.2.1 5 80\r\nGET /2 HTTP/1.1\r\n", "Host: a\r\n\r\n"},
        {"PROXY TCP4 192.0.2.9 192", ".0.2.1 5 80\r\n" GET("/2")},
        {"", "PROXY TCP4 192.0.2.9 192.0.2.1 5 80\r\n" GET("/2")},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        start();
        take_proxies(servers[A]);
        take_proxies(servers[B]);
        board.rows[B].connections = 100;
        int fd = dial();
        say(fd, parts[i][0]);
        serve(servers[A]);
        board.rows[B].connections = 0;
        stop(servers[A]);
        hear(fd);
        serve(servers[B]);
        say(fd, parts[i][1]);
        serve(servers[B]);
        CHECK_STR(hear(fd), "B /2 0");
        CHECK_INT(only_conn_of(servers[B])->peer.bytes[3], 9);
        end();
    }
}

static rd_endpoint *stream;

static void upgrade_news(rd_server *server, rd_request *request) {
    rd_slice path = rd_request_slice(request, request->head.path);
    if (rd_slice_equal(path, RD_SLICE("/news"))) {
        stream = rd_sse_upgrade(request, NULL, 0);
    } else {
        answer(server, request);
    }
}

static void finish_event(rd_server *server) {
    rd_event event = {.source = NULL};
    rd_loop_lock(&server->loop);
    while (rd_server_next_event(server, &event, true)) continue;
    rd_loop_unlock(&server->loop);
}

/* The idle ones move at once. The stream stays until its time comes, and costs no turns. */
static void test_a_stream_leaves_later(void) {
    for (int idle = 0; idle < 3; idle++) {
        start();
        app = upgrade_news;
        servers[A]->settings.drain_spread_ms = 5000;
        board.rows[B].connections = 100;
        const int fd = dial();
        say(fd, "GET /news HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n");
        serve(servers[A]);
        finish_event(servers[A]);
        hear(fd);
        for (int i = 0; i < idle; i++) dial_and_ask();
        board.rows[B].connections = 0;
        stop(servers[A]);
        CHECK_INT(servers[A]->counts.handed_out, idle);
        CHECK_INT(servers[A]->conns.count, 1);
        CHECK(!rd_departure_is_busy(&servers[A]->departure));
        CHECK(!rd_server_is_done(servers[A]));
        for (int ms = 0; ms < 5000; ms++) {
            pass_ms(1);
            serve(servers[A]);
        }
        finish_event(servers[A]);
        serve(servers[A]);
        hear(fd);
        CHECK_INT(strncmp(got, "retry: ", 7), 0);
        CHECK_INT(stream->close_code, 1012);
        later(2000);
        finish_event(servers[A]);
        CHECK(rd_server_is_done(servers[A]));
        rd_loop_lock(&servers[A]->loop);
        rd_endpoint_unref(stream);
        rd_loop_unlock(&servers[A]->loop);
        app = answer;
        end();
    }
}

static void test_deadlines_go_on(void) {
    start();
    int idle = dial_and_ask();
    uint64_t keep_alive_ms = (uint64_t)servers[A]->settings.keep_alive_timeout_ms;
    later(keep_alive_ms - 10000);
    int half = dial_and_ask();
    say(half, "GET /");
    serve(servers[A]);
    stop(servers[A]);
    serve_both();
    later(9000);
    CHECK(!is_closed(idle));
    later(1001);
    CHECK(is_closed(idle));
    later((uint64_t)servers[A]->settings.head_timeout_ms - 10001);
    hear(half);
    CHECK_INT(strncmp(got, "HTTP/1.1 408", 12), 0);
    end();
}

/* ---- connections that no server takes ---- */

static void b_stops_too(void) {
    board.rows[B].state = RD_SCORE_DRAINING;
}

static void b_accepts_no_more(void) {
    board.rows[B].listening = 0;
}

/* They have arrived, but the message of a connection arrives only after half of the time. */
static void b_is_full(void) {
    board.rows[B].connections = servers[A]->accepting.limit;
}

static void the_inbox_is_full(void) {
    while (send(inboxes[B][1], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
}

static void announce(void (*change)(void), bool after_a_while) {
    start();
    int busy = dial_and_ask(), idle = dial_and_ask();
    change();
    stop(servers[A]);
    CHECK_INT(servers[A]->counts.handed_out, 0);
    CHECK(!is_closed(busy) && !is_closed(idle));
    if (after_a_while) {
        say(busy, GET("/meanwhile"));
        serve(servers[A]);
        CHECK_STR(hear(busy), "A /meanwhile 0");
        CHECK(!says_it_is_the_last());
        pass_ms((uint64_t)servers[A]->settings.drain_timeout_ms / 2);
        for (int i = 0; i < ROUNDS; i++) serve(servers[A]);
    }
    say(busy, GET("/last"));
    serve(servers[A]);
    CHECK_STR(hear(busy), "A /last 0");
    CHECK(says_it_is_the_last());
    CHECK(!is_closed(idle) && !rd_server_is_done(servers[A]));
    pass_ms((uint64_t)servers[A]->settings.idle_grace_ms);
    for (int i = 0; i < ROUNDS; i++) serve(servers[A]);
    CHECK(is_closed(idle) && rd_server_is_done(servers[A]));
    serve(servers[B]);
    end();
}

static void test_what_nobody_takes_is_told(void) {
    announce(b_stops_too, false);
    announce(b_accepts_no_more, false);
    announce(b_is_full, true);
    announce(the_inbox_is_full, true);
}

static void test_siblings_that_go_meanwhile(void) {
    start();
    int fd = dial_and_ask();
    the_inbox_is_full();
    stop(servers[A]);
    b_stops_too();
    for (int i = 0; i < ROUNDS; i++) serve(servers[A]);
    say(fd, GET("/last"));
    serve(servers[A]);
    hear(fd);
    CHECK(says_it_is_the_last());
    serve(servers[B]);
    end();
}

static void test_room_that_comes_meanwhile(void) {
    start();
    int fd = dial_and_ask();
    b_is_full();
    stop(servers[A]);
    CHECK_INT(servers[A]->counts.handed_out, 0);
    board.rows[B].connections = 0;
    serve_both();
    CHECK(rd_server_is_done(servers[A]));
    say(fd, GET("/2"));
    serve(servers[B]);
    CHECK_STR(hear(fd), "B /2 0");
    end();
}

static void test_few_at_a_time(void) {
    start();
    for (int i = 0; i < 100; i++) dial_and_ask();
    rd_server_stop(servers[A], RD_STOP_DRAIN);
    rd_loop_lock(&servers[A]->loop);
    rd_server_turn(servers[A], wait_in_poll, true);
    rd_server_turn(servers[A], wait_in_poll, true);
    rd_loop_unlock(&servers[A]->loop);
    CHECK(servers[A]->counts.handed_out > 0 && servers[A]->counts.handed_out < 50);
    for (int i = 0; i < ROUNDS; i++) serve_both();
    CHECK(rd_server_is_done(servers[A]));
    CHECK_INT(servers[B]->conns.count, 100);
    end();
}

/* A server that was not told that the others stop, and a connection that arrives late. */
static void test_who_comes_when_it_is_announced_already(void) {
    start();
    dial_and_ask();
    the_inbox_is_full();
    b_stops_too();
    rd_server_stop(servers[A], RD_STOP_DRAIN);
    board.rows[A].arriving = 1; /* another worker has sent one before */
    for (int i = 0; i < ROUNDS; i++) serve(servers[A]);
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    clients[client_count++] = pair[1];
    rd_handover handover = {.header.peer.kind = RD_ADDRESS_UNIX};
    board.rows[A].state = RD_SCORE_READY;
    board.rows[A].arriving = 0;
    CHECK(rd_siblings_send(servers[B], A, pair[0], &handover));
    board.rows[A].state = RD_SCORE_DRAINING;
    close(pair[0]);
    for (int i = 0; i < ROUNDS; i++) serve(servers[A]);
    CHECK_INT(servers[A]->conns.count, 2);
    pass_ms((uint64_t)servers[A]->settings.idle_grace_ms);
    for (int i = 0; i < ROUNDS; i++) serve(servers[A]);
    CHECK(rd_server_is_done(servers[A]));
    serve(servers[B]);
    end();
}

/* ---- another master ---- */

static void test_heirs(void) {
    rd_scoreboard other;
    start();
    int fd = dial_and_ask();
    CHECK_INT(rd_scoreboard_create(&other, 3), 0);
    const int outboxes[] = {-1, -1, inboxes[B][1]};
    rd_loop_lock(&servers[B]->loop);
    rd_siblings_clear(servers[B]);
    CHECK_INT(rd_siblings_join(servers[B], &other, 2, inboxes[B][0], outboxes), 0);
    servers[B]->score = &other.rows[2];
    other.rows[2].state = RD_SCORE_READY;
    rd_server_write_scores(servers[B]);
    rd_loop_unlock(&servers[B]->loop);
    board.rows[B].state = RD_SCORE_EMPTY;
    rd_loop_lock(&servers[A]->loop);
    rd_siblings_set_heirs(servers[A], &other, outboxes);
    rd_loop_unlock(&servers[A]->loop);
    stop(servers[A]);
    CHECK(rd_server_is_done(servers[A]));
    CHECK_INT(other.rows[2].arriving, 1);
    serve(servers[B]);
    CHECK_INT(other.rows[2].arriving, 0);
    say(fd, GET("/heir"));
    serve(servers[B]);
    CHECK_STR(hear(fd), "B /heir 0");
    end();
    rd_scoreboard_close(&other);
}

int main(void) {
    test_idle_connections_move();
    test_what_was_read_moves_as_well();
    test_what_came_meanwhile_is_answered_there();
    test_after_the_answer();
    test_behind_the_proxy_protocol();
    test_a_stream_leaves_later();
    test_deadlines_go_on();
    test_what_nobody_takes_is_told();
    test_siblings_that_go_meanwhile();
    test_room_that_comes_meanwhile();
    test_few_at_a_time();
    test_who_comes_when_it_is_announced_already();
    test_heirs();
    return check_summary();
}
