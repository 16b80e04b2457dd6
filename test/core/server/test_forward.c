/* SPDX-License-Identifier: MIT
 *
 * Requests that another worker answers because their connections cannot move
 * (protocol/forwarding.c, server/forward.c, and their part of handover.c): answers, ends on either
 * side, order, stops, hijacks, messages. test_forward_limits.c has the rest.
 */
#include "forward_pair.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- answers ---- */

static void test_answers(void) {
    begin_with(answer_kinds);
    const int fd = dial_shaken();
    const char *text = ask_b(fd, GET("/plain"));
    CHECK(starts(text, "HTTP/1.1 200 OK\r\ndate: "));
    CHECK_HAS(text, " GMT\r\ncontent-length: 10\r\n\r\n");
    CHECK(stops(text, "\r\n\r\nB /plain 0"));
    CHECK_HAS_NOT(text, "connection:");
    check_next(fd);

    text = ask_b(fd, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    CHECK(stops(text, "\r\n\r\nB /body 5"));
    check_next(fd);

    text = ask_b(fd, "HEAD /any HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK_HAS(text, "content-length: 8\r\n");
    CHECK(stops(text, "\r\n\r\n"));
    check_next(fd);

    text = ask_b(fd, GET("/chunked"));
    CHECK_HAS(text, "transfer-encoding: chunked\r\n");
    CHECK_HAS(text, "\r\nlink: </a>\r\n");
    CHECK(stops(text, "\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"));
    check_next(fd);

    text = ask_b(fd, GET("/hints"));
    CHECK(starts(text, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 103 "));
    CHECK(stops(text, "\r\n\r\nok"));
    check_next(fd);

    CHECK(starts(ask_b(fd, GET("/n204")), "HTTP/1.1 204 No Content\r\n"));
    CHECK(stops(heard, "\r\n\r\n"));
    CHECK_HAS_NOT(heard, "content-length");
    check_next(fd);
    CHECK(starts(ask_b(fd, GET("/n304")), "HTTP/1.1 304 Not Modified\r\nlink: </a>\r\n"));
    check_next(fd);

    text = ask_b(fd, GET("/end"));
    CHECK_HAS(text, "\r\nconnection: close\r\n");
    CHECK(stops(text, "\r\n\r\nend"));
    check_end(fd);
    CHECK_INT(servers[B]->counts.requests, 8);
    end_with();
}

/* The end of a body is marked on the way, and is that of the connection for the client. */
static void test_http_1_0(void) {
    begin_with(answer_kinds);
    const int fd = dial_shaken();
    const char *text =
        ask_b(fd, "GET /plain HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
    CHECK_HAS(text, "\r\nconnection: keep-alive\r\n");
    CHECK(stops(text, "\r\n\r\nB /plain 0"));
    text = ask_b(fd, "GET /chunked HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
    CHECK_HAS(text, "\r\nconnection: close\r\n");
    CHECK_HAS_NOT(text, "chunked");
    CHECK(stops(text, "\r\n\r\none two"));
    check_end(fd);
    end_with();
}

static void listen_at_site(rd_server *server, uint16_t site) {
    rd_listener listener = {.transport = &rd_transport_xor, .site = site};
    snprintf(listener.url, sizeof(listener.url), "http://127.0.0.1:81");
    rd_listener_names_add(&server->accepting.names, &listener);
    rd_server_begin_sites(server);
}

/* The application of the address answers, whatever its number is there. A worker that does not have
 * it answers 503. */
static void test_applications_by_address(void) {
    for (int known = 1; known >= 0; known--) {
        begin_with(answer);
        listen_at_site(servers[A], 1);
        if (known) listen_at_site(servers[B], 2);
        const int fd = dial_shaken();
        app = answer_site;
        CHECK(stops(ask_b(fd, GET("/first")), "\r\n\r\nB site 0"));
        RD_CONTAINER(servers[A]->conns.conns.next, rd_conn, in_set)->origin.site = 1;
        if (known) {
            CHECK(stops(ask_b(fd, GET("/site")), "\r\n\r\nB site 2"));
        } else {
            CHECK(starts(ask_b_in_vain(fd, GET("/site")), "HTTP/1.1 503 "));
            CHECK_INT(servers[B]->counts.dropped, 1);
        }
        end_with();
    }
}

/* The application learns of the client what it would learn from A. */
static void test_what_the_application_sees(void) {
    static rd_transport secure;
    secure = rd_transport_xor;
    secure.is_secure = true;
    app = answer_kinds;
    begin(&secure);
    const int fd = dial_shaken();
    ask_b(fd, GET("/plain"));
    CHECK(seen.was_secure);
    CHECK_INT(seen.peer.kind, RD_ADDRESS_UNIX);
    end_with();
}

/* ---- ends ---- */

/* The request of a connection of A, forwarded to B, whose application keeps it. */
static int forward_held(const char *request) {
    begin_with(hold);
    const int fd = dial_shaken_with(answer);
    pin_a();
    say_record(fd, request);
    stand_in_and_serve(3);
    return fd;
}

static void test_the_client_leaves(void) {
    const int fd = forward_held(GET("/slow"));
    if (!CHECK(seen.held != NULL)) return;
    CHECK_INT(servers[A]->forwards.running, 1);
    CHECK(seen.held->conn != NULL);
    shutdown(fd, SHUT_RDWR);
    stand_in_and_serve(3);
    CHECK_INT(servers[A]->conns.count, 0);
    CHECK(seen.held->conn == NULL && seen.held->gone);
    let_go(servers[B]);
    end_with();
}

/* B's end of the pair closes as it does when the process is killed. */
static void lose_b(void) {
    rd_loop_lock(&servers[B]->loop);
    rd_conn_set_each(&servers[B]->conns, rd_conn_close);
    rd_loop_unlock(&servers[B]->loop);
    stand_in(servers[A]);
    stand_in(servers[A]);
}

static void test_the_sibling_ends_before_its_answer(void) {
    const int fd = forward_held(GET("/slow"));
    lose_b();
    CHECK(starts(hear_all(fd), "HTTP/1.1 502 Bad Gateway\r\n"));
    CHECK_HAS(heard, "the worker that answered the request has ended\n");
    let_go(servers[B]);
    wake_a();
    app = answer;
    serve_all();
    CHECK_INT(servers[A]->counts.requests, 1); /* nothing is repeated */
    check_next(fd);
    end_with();
}

static void test_the_sibling_ends_in_its_answer(void) {
    const int fd = forward_held(GET("/slow"));
    rd_loop_lock(&servers[B]->loop);
    const rd_response_head head = {.status = 200, .length = -1};
    seen.held->responder->start(seen.held, &head);
    seen.held->responder->write(seen.held, "half", 4);
    rd_conn_flush(seen.held->conn);
    rd_loop_unlock(&servers[B]->loop);
    stand_in(servers[A]);
    stand_in(servers[A]);
    lose_b();
    CHECK(stops(hear_all(fd), "\r\n\r\n4\r\nhalf\r\n")); /* and no end of the body */
    let_go(servers[B]);
    wake_a();
    serve_all();
    check_end(fd);
    end_with();
}

/* ---- order and wake-ups ---- */

static void test_the_owner_wakes(void) {
    const int fd = forward_held(GET("/one") GET("/two") GET("/three"));
    CHECK_INT(servers[A]->forwards.running, 1);
    wake_a();
    app = answer;
    serve_all(); /* those behind it wait for it, although A could answer them */
    CHECK_STR(hear_all(fd), "");
    answer_held();
    serve_all();
    const char *one = strstr(hear_all(fd), "B /one 0");
    const char *two = strstr(heard, "A /two 0"), *three = strstr(heard, "A /three 0");
    CHECK(one != NULL && two != NULL && three != NULL && one < two && two < three);
    CHECK_INT(servers[A]->forwards.out, 1);
    end_with();
}

/* Each of the requests behind it is forwarded in its turn. */
static void test_pipelined_requests(void) {
    begin_with(answer);
    const int fd = dial_shaken();
    pin_a();
    say_record(fd, GET("/one") GET("/two") GET("/three"));
    stand_in_and_serve(12);
    const char *one = strstr(hear_all(fd), "B /one 0");
    const char *two = strstr(heard, "B /two 0"), *three = strstr(heard, "B /three 0");
    CHECK(one != NULL && two != NULL && three != NULL && one < two && two < three);
    wake_a();
    end_with();
}

/* ---- stops ---- */

static bool is_done(int place) {
    rd_loop_lock(&servers[place]->loop);
    const bool is = rd_server_is_done(servers[place]);
    rd_loop_unlock(&servers[place]->loop);
    return is;
}

/* Whichever of the two stops: it waits for the answer. */
static void test_a_drain(int place) {
    const int fd = forward_held(GET("/slow"));
    wake_a();
    rd_server_stop(servers[place], RD_STOP_DRAIN);
    serve_all();
    CHECK(!is_done(place));
    answer_held();
    serve_all();
    CHECK(stops(hear_all(fd), "\r\n\r\nB /slow 0"));
    shutdown(fd, SHUT_WR);
    serve_all();
    CHECK(is_done(place));
    end_with();
}

static void test_a_stop_at_once(int place) {
    const int fd = forward_held(GET("/slow"));
    wake_a();
    rd_server_stop(servers[place], RD_STOP_NOW);
    serve_all();
    if (place == B) CHECK(starts(hear_all(fd), "HTTP/1.1 502 Bad Gateway\r\n"));
    CHECK(seen.held->conn == NULL);
    let_go(servers[B]);
    end_with();
}

/* ---- forks ---- */

/* A child of either process has neither end of the pair, and the answer arrives. */
static void test_a_fork(int place) {
    const int fd = forward_held(GET("/slow"));
    rd_server *server = servers[place];
    rd_server_hold(server);
    int ready[2];
    CHECK_INT(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        rd_server_abandon(server);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        pause();
    }
    rd_server_release(server);
    CHECK_INT(read(ready[0], got, 1), 1);
    if (place == B) { /* the parent dies, the child does not */
        lose_b();
        CHECK(starts(hear_all(fd), "HTTP/1.1 502 "));
    } else {
        shutdown(fd, SHUT_RDWR);
        stand_in_and_serve(3);
        CHECK(seen.held->conn == NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    let_go(servers[B]);
    wake_a();
    end_with();
}

/* ---- hijacks ---- */

/* The application gets a descriptor that is the client's connection, in both directions. */
static void test_hijack(bool with_head) {
    const int fd = forward_held(GET("/hijack") "ahead");
    rd_loop_lock(&servers[B]->loop);
    rd_buffer rest = {0};
    const rd_response_head head = {
        .status = 200, .fields = &hint, .count = 1, .length = -1, .raw = true};
    if (with_head) seen.held->responder->start(seen.held, &head);
    if (with_head) rd_conn_flush(seen.held->conn);
    const int app_fd = seen.held->responder->detach(seen.held, &rest);
    rd_loop_unlock(&servers[B]->loop);
    let_go(servers[B]);
    if (!CHECK(app_fd >= 0)) return;
    CHECK_INT(rd_buffer_len(&rest), 0);
    CHECK_INT(send(app_fd, "hello", 5, MSG_NOSIGNAL), 5);
    for (int i = 0; i < 4; i++) stand_in(servers[A]);
    CHECK(starts(hear_all(fd), with_head ? "HTTP/1.1 200 OK\r\nlink: </a>\r\ndate: " : "hello"));
    CHECK(stops(heard, with_head ? "\r\n\r\nhello" : "hello"));
    say_record(fd, "more");
    for (int i = 0; i < 4; i++) stand_in(servers[A]);
    CHECK_INT(recv(app_fd, got, sizeof(got), 0), 9);
    CHECK(memcmp(got, "aheadmore", 9) == 0);
    CHECK_INT(servers[A]->forwards.running, 0);
    close(app_fd);
    for (int i = 0; i < 4; i++) stand_in(servers[A]);
    shutdown(fd, SHUT_RDWR);
    wake_a();
    serve_all();
    CHECK_INT(servers[A]->conns.count, 0);
    end_with();
}

/* ---- messages ---- */

#define BYTES(text) (text), sizeof(text) - 1

/* Something that is no request never reaches the application. */
static void test_bad_forwards(void) {
    begin_with(answer);
    int pair[2];
    rd_handover_header header = {
        .magic = 0x52444833u, .flags = RD_HANDOVER_FORWARD, .names = 1, .len = 1, .to = B};
    char message[sizeof(header) + 64];
    static const struct {
        const char *bytes;
        size_t len;
        uint8_t flags;
        const char *answer; /* NULL: none, and the end */
    } rows[] = {
        {BYTES("\0"), RD_HANDOVER_FORWARD, "HTTP/1.1 503 "},
        {BYTES("\0GET"), RD_HANDOVER_FORWARD, NULL}, /* a part of a head: nothing more comes */
        {BYTES("\0G\1T / HTTP/1.1\r\n\r\n"), RD_HANDOVER_FORWARD, "HTTP/1.1 400 "},
        {BYTES("\0" GET("/")), 0, NULL},         /* the number of a forward, not its flag */
        {BYTES("x"), RD_HANDOVER_FORWARD, NULL}, /* names without an end */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        header.flags = rows[i].flags;
        header.len = (uint32_t)rows[i].len;
        memcpy(message, &header, sizeof(header));
        memcpy(message + sizeof(header), rows[i].bytes, rows[i].len);
        send_descriptor(inboxes[B][1], pair[1], message, sizeof(header) + rows[i].len);
        close(pair[1]);
        serve(servers[B]);
        serve(servers[B]);
        if (rows[i].answer != NULL) {
            const ssize_t len = recv(pair[0], got, sizeof(got) - 1, 0);
            got[len > 0 ? len : 0] = '\0';
            CHECK(starts(got, rows[i].answer));
        }
        close(pair[0]);
        serve(servers[B]);
        serve(servers[B]);
        CHECK_INT(servers[B]->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held, 0);
        CHECK_INT(servers[B]->counts.requests, 0);
    }
    end_with();
}

int main(void) {
    test_answers();
    test_http_1_0();
    test_applications_by_address();
    test_what_the_application_sees();
    test_the_client_leaves();
    test_the_sibling_ends_before_its_answer();
    test_the_sibling_ends_in_its_answer();
    test_the_owner_wakes();
    test_pipelined_requests();
    test_a_drain(A);
    test_a_drain(B);
    test_a_stop_at_once(A);
    test_a_stop_at_once(B);
    test_a_fork(A);
    test_a_fork(B);
    test_hijack(false);
    test_hijack(true);
    test_bad_forwards();
    return check_summary();
}
