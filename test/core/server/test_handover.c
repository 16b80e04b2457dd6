/* SPDX-License-Identifier: MIT
 *
 * Two servers with one scoreboard: new connections are balanced, requests that wait move with all
 * their bytes, and what cannot move stays. Nonsense in an inbox harms nobody.
 */
#include <errno.h>

#include "siblings_pair.h"

static void test_new_connections_are_balanced(void) {
    start();
    for (int i = 0; i < 9; i++) {
        dial();
        serve(servers[B]);
    }
    CHECK_INT(servers[A]->conns.count, 5);
    CHECK_INT(servers[B]->conns.count, 4);
    CHECK_INT(servers[A]->counts.handed_out, 4);
    CHECK_INT(servers[B]->counts.handed_in, 4);
    board.rows[B].state = RD_SCORE_DRAINING; /* not to a worker that stops */
    dial();
    CHECK_INT(servers[A]->conns.count, 6);
    for (unsigned i = 0; i < client_count; i++) {
        say(clients[i], GET("/x"));
        serve(servers[A]);
        serve(servers[B]);
        CHECK_SAYS(strcmp(hear(clients[i]) + 1, " /x 0") == 0, "%s", got);
    }
    end();
}

/* B has nothing to do, and A's leader is busy: B answers the request that waits at A. */
static void move(const char *text, const char *answer_of_b) {
    start();
    board.rows[B].connections = 100; /* so that new connections stay at A */
    int fd = dial();
    say(fd, GET("/before"));
    serve(servers[A]);
    CHECK_STR(hear(fd), "A /before 0");
    say(fd, text);
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    CHECK_INT(servers[A]->counts.handed_out, 1);
    CHECK_INT(servers[A]->conns.count, 0);
    serve(servers[B]);
    serve(servers[B]);
    CHECK_STR(hear(fd), answer_of_b);
    say(fd, GET("/after")); /* the connection stays at B */
    serve(servers[B]);
    CHECK_STR(hear(fd), "B /after 0");
    end();
}

static void test_requests_that_wait_move(void) {
    move(GET("/waits"), "B /waits 0");
    move("POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "B /form 5");
}

static void test_with_everything_behind_them(void) {
    start();
    board.rows[B].connections = 100;
    int fd = dial();
    say(fd, GET("/1") GET("/2") "GET /3 HTTP/1.1\r\nHo");
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    for (int i = 0; i < 3; i++) serve(servers[B]);
    say(fd, "st: a\r\n\r\n");
    for (int i = 0; i < 3; i++) serve(servers[B]);
    hear(fd);
    CHECK(strstr(got, "B /1 0") && strstr(got, "B /2 0") && strstr(got, "B /3 0"));
    end();
}

/* The connection that B took goes back when A has been available for a while and has fewer
 * connections. */
static void test_guests_go_back(void) {
    start();
    board.rows[B].connections = 100;
    int fd = dial();
    say(fd, GET("/1"));
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    serve(servers[B]);
    serve(servers[B]);
    CHECK_STR(hear(fd), "B /1 0");
    board.rows[A].busy = 0;
    serve(servers[A]); /* A is available again, without any connection */
    servers[B]->conns.count += 2;
    say(fd, GET("/stays"));
    serve(servers[B]);
    CHECK_STR(hear(fd), "B /stays 0");
    CHECK(board.rows[A].stuck_ms > 0);
    board.rows[A].stuck_ms = 1; /* long ago */
    say(fd, GET("/2") GET("/3"));
    for (int i = 0; i < 3; i++) {
        serve(servers[B]);
        serve(servers[A]);
    }
    servers[B]->conns.count -= 2;
    hear(fd);
    CHECK(strstr(got, "A /2 0") && strstr(got, "A /3 0"));
    CHECK_INT(servers[A]->conns.count, 1);
    end();
}

static rd_request *held;

/* Another thread ends its call while the leader sleeps. Then the next request of its connection
 * begins, and may go to A. */
static void answer_meanwhile(rd_server *server, int64_t timeout_us) {
    (void)timeout_us;
    rd_server_lock(server);
    answer(server, held);
    CHECK(!rd_list_is_empty(&server->queue.guests));
    rd_server_unlock(server);
    CHECK(!atomic_load(&server->loop.sleeping));
    rd_loop_wait(&server->loop, &server->lead.found, 0);
}

/* The leader does not sleep while the request of a guest waits to be sent back. */
static void test_guests_wake_the_leader(void) {
    start();
    board.rows[B].connections = 100;
    int fd = dial();
    say(fd, GET("/1") GET("/2"));
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    board.rows[A].busy = 0;
    serve(servers[A]);
    board.rows[A].stuck_ms = 1; /* long ago */
    servers[B]->conns.count += 2;
    rd_loop_lock(&servers[B]->loop);
    rd_server_turn(servers[B], wait_in_poll, true);
    held = rd_server_next_request(servers[B], NULL);
    CHECK(held != NULL);
    rd_server_turn(servers[B], answer_meanwhile, true);
    rd_server_let_go(servers[B], held);
    rd_loop_unlock(&servers[B]->loop);
    for (int i = 0; i < 2; i++) {
        serve(servers[B]);
        serve(servers[A]);
    }
    servers[B]->conns.count -= 2;
    hear(fd);
    CHECK(strstr(got, "B /1 0") && strstr(got, "A /2 0"));
    end();
}

static int refuse_to_add(rd_poller *poller, rd_source *source) {
    (void)poller, (void)source;
    errno = ENOSPC;
    return -1;
}

/* B does not get it, and A's poller does not watch it again. */
static void test_a_guest_that_is_lost_on_its_way(void) {
    start();
    board.rows[B].connections = 100;
    int fd = dial();
    rd_server *server = servers[A];
    const rd_poller_ops *usual = server->loop.ops;
    rd_poller_ops refusing = *usual;
    refusing.add = refuse_to_add;
    rd_loop_lock(&server->loop);
    RD_CONTAINER(server->conns.conns.next, rd_conn, in_set)->guest = true;
    board.rows[B].connections = 0;
    server->conns.count += 2;
    say(fd, GET("/lost"));
    rd_loop_wait(&server->loop, &server->lead.found, 1000);
    rd_loop_process(&server->loop, &server->lead.found);
    CHECK(!rd_list_is_empty(&server->queue.guests));
    const int outbox = server->siblings.outboxes[B];
    server->siblings.outboxes[B] = server->loop.wakeup.fd; /* not a socket */
    server->loop.ops = &refusing;
    rd_queue_sort_guests(server);
    server->loop.ops = usual;
    server->siblings.outboxes[B] = outbox;
    CHECK_INT(server->queue.len, 0);
    CHECK(!rd_queue_is_ready(&server->queue));
    server->conns.count -= 2;
    rd_loop_unlock(&server->loop);
    CHECK_INT(server->conns.count, 0);
    end();
}

/* Connections that cannot move, or should not. */
static void stay(const char *text, void (*change)(void)) {
    start();
    board.rows[B].connections = 100;
    int fd = dial();
    say(fd, text);
    board.rows[A].busy = 1;
    if (change != NULL) change();
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    CHECK_INT(servers[A]->counts.handed_out, 0);
    CHECK_INT(servers[A]->queue.len, 1);
    board.rows[A].busy = 0;
    serve(servers[A]);
    CHECK_SAYS(hear(fd)[0] == 'A', "%s", got);
    end();
}

static void b_would_be_later(void) {
    board.rows[B].busy = 1;
    board.rows[B].call_us = UINT64_MAX / 4;
}

static void b_has_a_full_queue(void) {
    servers[A]->settings.max_queue = 1;
    board.rows[B].queue = 1;
}

static void a_only_waits_for_a_cpu(void) {
    servers[A]->lead.thread = rd_thread_self(); /* it runs, and has used no CPU time since */
    servers[A]->lead.cpu_ns = UINT64_MAX / 2;
}

static void b_is_stuck(void) {
    board.rows[B].busy = board.rows[B].standing_in = 1;
    board.rows[A].busy = 10;
}

static void b_is_not_there(void) {
    board.rows[B].state = RD_SCORE_EMPTY;
}

static void the_inbox_is_full(void) {
    fcntl(inboxes[B][1], F_SETFL, O_NONBLOCK);
    while (send(inboxes[B][1], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
}

static void test_what_stays(void) {
    stay("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
         NULL);
    stay(GET("/"), b_would_be_later);
    stay(GET("/"), b_has_a_full_queue);
    stay(GET("/"), a_only_waits_for_a_cpu);
    stay(GET("/"), b_is_stuck);
    stay(GET("/"), b_is_not_there);
    stay(GET("/"), the_inbox_is_full);
}

/* The worker that stops still serves connections on their way to it, but gets no more of them. */
static void test_a_worker_that_stops(void) {
    start();
    board.rows[B].call_us = 1;
    dial();
    dial(); /* goes to B, which has not received it yet */
    CHECK_INT(servers[A]->counts.handed_out, 1);
    CHECK_INT(board.rows[B].arriving, 1);
    rd_server_stop(servers[B], RD_STOP_DRAIN);
    CHECK(!rd_server_is_done(servers[B]));
    say(clients[1], GET("/late"));
    serve(servers[B]);
    CHECK_INT(board.rows[B].state, RD_SCORE_DRAINING);
    serve(servers[B]);
    CHECK_STR(hear(clients[1]), "B /late 0");
    for (int i = 0; i < 3; i++) serve(servers[B]);
    CHECK(rd_server_is_done(servers[B]));
    dial();
    dial();
    CHECK_INT(servers[A]->counts.handed_out, 1);
    CHECK_INT(servers[A]->conns.count, 3);

    board.rows[B].state = RD_SCORE_READY; /* its successor has the same inbox */
    board.rows[B].listening = 1;
    dial();
    CHECK_INT(servers[A]->counts.handed_out, 2);
    serve(servers[B]);
    CHECK_INT(servers[B]->counts.handed_in, 1); /* as before */
    board.rows[B].arriving = 0;
    end();
}

static int64_t waited_us;

static void note_wait(rd_server *server, int64_t timeout_us) {
    waited_us = timeout_us;
    rd_loop_wait(&server->loop, &server->lead.found, 0);
}

/* A sender that sees the state takes its count back. A worker that reads the inbox counts after it
 * has read. So the worker that stops needs no wake-up. */
static void test_a_worker_that_stops_looks_again(void) {
    start();
    dial();
    board.rows[A].arriving = 1;
    rd_server_stop(servers[A], RD_STOP_DRAIN);
    rd_loop_lock(&servers[A]->loop);
    rd_server_turn(servers[A], note_wait, true);
    waited_us = -1;
    rd_server_turn(servers[A], note_wait, true);
    CHECK(!rd_server_is_done(servers[A]));
    CHECK(waited_us >= 0 && waited_us <= 10000);
    board.rows[A].arriving = 0;
    rd_server_turn(servers[A], note_wait, true);
    CHECK(!rd_siblings_expect(servers[A]));
    rd_loop_unlock(&servers[A]->loop);
    end();
}

static void test_nonsense_in_the_inbox(void) {
    start();
    CHECK_INT(send(inboxes[B][1], "", 0, 0), 0);
    CHECK_INT(send(inboxes[B][1], "nonsense", 8, 0), 8);
    memset(got, 'x', 1000);
    CHECK_INT(send(inboxes[B][1], got, 1000, 0), 1000);
    for (int i = 0; i < 4; i++) serve(servers[B]);
    CHECK_INT(servers[B]->conns.count, 0);
    int fd = dial();
    say(fd, GET("/"));
    serve(servers[A]);
    CHECK_STR(hear(fd), "A / 0");
    end();
}

/* As a worker of another version would send it: an invalid head, and a descriptor. The connection
 * is closed, and no longer counts as on its way. */
static void test_a_message_of_another_version(void) {
    static const char head[64] = "another version";
    start();
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    board.rows[B].arriving = 1; /* as each sender counts */
    send_descriptor(inboxes[B][1], pair[0], head, sizeof(head));
    close(pair[0]);
    for (int i = 0; i < 2; i++) serve(servers[B]);
    CHECK_INT(board.rows[B].arriving, 0);
    CHECK_INT(recv(pair[1], got, sizeof(got), MSG_DONTWAIT), 0);
    close(pair[1]);
    end();
}

int main(void) {
    test_new_connections_are_balanced();
    test_requests_that_wait_move();
    test_with_everything_behind_them();
    test_guests_go_back();
    test_guests_wake_the_leader();
    test_a_guest_that_is_lost_on_its_way();
    test_what_stays();
    test_a_worker_that_stops();
    test_a_worker_that_stops_looks_again();
    test_nonsense_in_the_inbox();
    test_a_message_of_another_version();
    return check_summary();
}
