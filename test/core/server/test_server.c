/* SPDX-License-Identifier: MIT
 *
 * A whole server with clients over TCP: exchanges cut at every place, on both pollers; and all the
 * ways to a stop.
 */

#include "best_poller.h"
#include "serving.h"

static unsigned answered;

static void answer(rd_request *request) {
    rd_slice path = rd_request_slice(request, request->head.path);
    rd_response_head head = {.status = 200, .length = -1};
    answered++;
    if (path.len == 2 && path.ptr[1] == 'k') { /* chunked */
        request->responder->start(request, &head);
        request->responder->write(request, "one", 3);
        request->responder->write(request, "two", 3);
    } else if (path.len == 2 && path.ptr[1] == 's') { /* fewer bytes than promised */
        head.length = 10;
        request->responder->start(request, &head);
        request->responder->write(request, "short", 5);
    } else if (path.len == 2 && path.ptr[1] == 'l') { /* more than promised */
        head.length = 2;
        request->responder->start(request, &head);
        request->responder->write(request, "long", 4);
    } else {
        answer_path(request);
        return;
    }
    request->responder->finish(request);
}

/* ---- exchanges ---- */

typedef struct exchange {
    const char *sent, *first, *last; /* the beginning and the end of the answer */
    bool half_close;
} exchange;

static const exchange exchanges[] = {
    {LAST("/a"), "HTTP/1.1 200 OK\r\n", "\r\n\r\n/a", false},
    {GET("/a") GET("/b") LAST("/c"), "HTTP/1.1 200 OK\r\n", "\r\n\r\n/c", false},
    {LAST("/k"), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n",
     "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n", false},
    {"GET /k HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\nconnection: close\r\n", "\r\n\r\nonetwo",
     false},
    {"HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
     "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", "\r\n\r\n", false},
    {GET("/s"), "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n", "short", false},
    {GET("/l"), "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", "\r\n\r\nlo", false},
    {GET("/a") "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\n", false},
    {GET("/a"), "HTTP/1.1 200 OK\r\n", "\r\n\r\n/a", true},
    {"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
     "2\r\nab\r\n0\r\n\r\n",
     "HTTP/1.1 200 OK\r\n", "\r\n\r\n/p", false},
    {"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
     "HTTP/1.1 200 OK\r\n", "\r\n\r\n/p", false},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", "HTTP/1.1 413 ", "\n",
     false},
};

static void run_exchange(const exchange *row, size_t cut) {
    int fd = dial();
    size_t len = strlen(row->sent);
    CHECK_INT(send(fd, row->sent, cut, MSG_NOSIGNAL), cut);
    turns(2);
    if (cut < len) CHECK_INT(send(fd, row->sent + cut, len - cut, MSG_NOSIGNAL), len - cut);
    if (row->half_close) shutdown(fd, SHUT_WR);
    CHECK(talk(fd, NULL));
    CHECK_SAYS(begins(got, row->first) && ends(got, row->last), "cut at %zu: %s answered by %s",
               cut, row->sent, got);
    close(fd);
}

static void test_exchanges(void) {
    start_listening(answer);
    CHECK_STR(server->loop.ops->name, settings.poll_only ? "poll" : best_poller());
    for (size_t i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++) {
        size_t len = strlen(exchanges[i].sent);
        run_exchange(&exchanges[i], len);
        for (size_t cut = 1; cut < len; cut += 7) run_exchange(&exchanges[i], cut);
    }
    for (int i = 0; i < 200 && server->conns.count > 0; i++) turn();
    CHECK_INT(server->conns.count, 0);
    CHECK_INT(server->http.requests.live, 0);
    end();
}

/* For the log. */
static void test_answers_that_are_not_as_long_as_they_say(void) {
    start(answer);
    int one = join(), two = join();
    ask(one, GET("/s"));
    CHECK_INT(server->incidents.count, 1);
    CHECK_INT(server->incidents.kept[0].code, RD_ERR_ANSWER_SHORT);
    ask(two, GET("/l"));
    CHECK_INT(server->incidents.count, 2);
    CHECK_INT(server->incidents.kept[1].code, RD_ERR_ANSWER_LONG);
    ask(one, "HEAD /l HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK_INT(server->incidents.count, 2);
    CHECK_INT(server->counts.refused, 0);
    close(one);
    close(two);
    end();
}

static void test_requests_of_clients_that_left(void) {
    start_listening(answer);
    int fd = dial();
    struct linger reset = {1, 0};
    answered = 0;
    say(fd, GET("/a"));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    turns(20);
    CHECK(answered <= 1);
    CHECK_INT(server->http.requests.live, 0);
    end();
}

/* ---- several servers, and their end ---- */

static void test_two_servers(void) {
    start(answer);
    rd_server *first = server;
    int to_first = join();
    start(answer_path);
    int to_second = join();
    say(to_first, GET("/k"));
    ask(to_second, GET("/k"));
    CHECK(ends(got, "\r\n\r\n/k"));
    CHECK(!hear(to_first) && got_len == 0);
    end();
    server = first;
    app = answer;
    turns(3);
    hear(to_first);
    CHECK(ends(got, "\r\n0\r\n\r\n"));
    close(to_first);
    close(to_second);
    end();
}

/* The sanitizer looks for leaks. */
static void test_the_end_of_a_server_with_requests_queued(void) {
    start(answer);
    int one = join(), two = join();
    say(one, GET("/a") GET("/b"));
    say(two, GET("/a") "GET /half");
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    CHECK(rd_queue_is_ready(&server->queue));
    rd_loop_unlock(&server->loop);
    rd_server_free(server);
    CHECK(hear(one) && got_len == 0);
    close(one);
    close(two);
}

/* ---- stopping ---- */

static void test_stopping(void) {
    start_listening(answer);
    int idle = dial(), fresh = dial();
    say(idle, GET("/i"));
    talk(idle, "/i");
    CHECK(!rd_server_is_done(server));
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(10);
    CHECK(!hear(idle) && !hear(fresh)); /* a request may be on its way */
    CHECK(!rd_server_is_done(server));
    later((uint64_t)server->settings.idle_grace_ms);
    CHECK(hear(idle) && got_len == 0); /* a clean end */
    CHECK(hear(fresh) && got_len == 0);
    CHECK(rd_server_is_done(server));
    close(idle);
    close(fresh);
    end();
}

static void test_a_request_in_the_grace(void) {
    start_listening(answer);
    int fds[] = {dial(), dial()};
    say(fds[0], GET("/i"));
    talk(fds[0], "/i");
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(2);
    for (int i = 0; i < 2; i++) {
        say(fds[i], GET("/f"));
        CHECK(talk(fds[i], NULL));
        CHECK(strstr(got, "connection: close\r\n") != NULL && ends(got, "/f"));
        close(fds[i]);
    }
    end();
}

static void test_what_waits_to_be_accepted_is_served(void) {
    start_listening(answer);
    int fd = dial();
    say(fd, GET("/q"));
    rd_server_stop(server, RD_STOP_DRAIN);
    CHECK(talk(fd, NULL));
    CHECK(ends(got, "/q"));
    close(fd);
    end();
}

static void test_what_waits_to_be_accepted_may_be_left(void) {
    start_listening(answer);
    int idle = dial();
    say(idle, GET("/i"));
    talk(idle, "/i");
    int fd = dial();
    say(fd, GET("/q"));
    rd_loop_lock(&server->loop);
    rd_server_leave_queues(server);
    rd_loop_unlock(&server->loop);
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(3);
    CHECK_INT((int)server->counts.accepted, 1);
    char byte;
    CHECK_INT(recv(fd, &byte, 1, MSG_DONTWAIT), -1); /* a reset, because the socket is closed */
    CHECK_INT(errno, ECONNRESET);
    say(idle, GET("/a"));
    CHECK(talk(idle, NULL));
    CHECK(ends(got, "/a"));
    close(idle);
    close(fd);
    end();
}

static void test_a_drain_waits_for_its_requests(void) {
    start_listening(hold);
    int fd = dial();
    say(fd, GET("/h"));
    turns(3);
    rd_server_stop(server, RD_STOP_DRAIN);
    turn();
    later((uint64_t)settings.drain_timeout_ms - 1);
    CHECK(!rd_server_is_done(server) && held->conn != NULL);
    answer_path(held);
    let_go();
    CHECK(talk(fd, NULL));
    CHECK(strstr(got, "connection: close\r\n") != NULL && ends(got, "/h"));
    close(fd);
    turns(3);
    CHECK(rd_server_is_done(server));
    end();
}

static void stop_at_the_deadline(void) {
    rd_server_stop(server, RD_STOP_DRAIN);
    turn();
    later((uint64_t)settings.drain_timeout_ms);
}

static void stop_at_once(void) {
    rd_server_stop(server, RD_STOP_NOW);
    turn();
}

static void stop_at_once_after_all(void) {
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(2);
    rd_server_stop(server, RD_STOP_NOW);
    rd_server_stop(server, RD_STOP_DRAIN); /* this comes too late */
    turn();
}

static void test_stops_that_do_not_wait(void) {
    static void (*const stops[])(void) = {stop_at_the_deadline, stop_at_once,
                                          stop_at_once_after_all};
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        start_listening(hold);
        int fd = dial();
        say(fd, GET("/h"));
        turns(3);
        await(held);
        stops[i]();
        CHECK(held->conn == NULL && held->gone);
        CHECK(!rd_server_is_done(server)); /* the application still has the request */
        CHECK(woken() == held);
        CHECK_INT(held->responder->finish(held), RD_ERR_CLOSED);
        let_go();
        CHECK(rd_server_is_done(server));
        CHECK(talk(fd, NULL) && got_len == 0);
        close(fd);
        end();
    }
}

static void *stop_a_sleeper(void *argument) {
    rd_server *sleeper = argument;
    while (!atomic_load(&sleeper->loop.sleeping)) {
    }
    rd_server_stop(sleeper, RD_STOP_DRAIN);
    return NULL;
}

static void sleep_long(rd_server *waiting, int64_t timeout_us) {
    (void)timeout_us;
    CHECK_INT(rd_loop_wait(&waiting->loop, &waiting->lead.found, 60000000), 1);
}

static void test_a_stop_wakes_the_loop(void) {
    pthread_t thread;
    start(answer);
    pthread_create(&thread, NULL, stop_a_sleeper, server);
    rd_loop_lock(&server->loop);
    rd_server_turn(server, sleep_long, true);
    rd_loop_unlock(&server->loop);
    pthread_join(thread, NULL);
    CHECK_INT(server->stop.state, RD_STOP_DRAIN);
    CHECK(rd_server_is_done(server));
    end();
}

static void test_all(void) {
    test_exchanges();
    test_answers_that_are_not_as_long_as_they_say();
    test_requests_of_clients_that_left();
    test_two_servers();
    test_the_end_of_a_server_with_requests_queued();
    test_stopping();
    test_a_request_in_the_grace();
    test_what_waits_to_be_accepted_is_served();
    test_what_waits_to_be_accepted_may_be_left();
    test_a_drain_waits_for_its_requests();
    test_stops_that_do_not_wait();
    test_a_stop_wakes_the_loop();
}

int main(void) {
    return test_both_pollers(test_all);
}
