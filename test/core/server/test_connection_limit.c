/* SPDX-License-Identifier: MIT
 *
 * server/accept: how many clients are accepted in a turn. More clients than a server may have: who
 * waits, who makes room, and no descriptor left.
 */
#include <sys/resource.h>

#include "serving.h"

static int dial_with_request(void) {
    const int fd = dial();
    say(fd, GET("/new"));
    return fd;
}

/* A request is answered before the next connection is accepted. Silent clients do not wait. */
static void test_one_request_is_accepted_at_a_time(void) {
    enum { CLIENTS = 3 };
    int fds[2 * CLIENTS];
    start_listening(answer_path);
    for (int i = 0; i < CLIENTS; i++) fds[i] = dial_with_request();
    for (unsigned i = 1; i <= CLIENTS; i++) {
        turn();
        CHECK_INT(server->counts.accepted, i);
    }
    for (int i = CLIENTS; i < 2 * CLIENTS; i++) fds[i] = dial();
    turns(2);
    CHECK_INT(server->counts.accepted, 2 * CLIENTS);
    for (int i = 0; i < 2 * CLIENTS; i++) close(fds[i]);
    end();
}

/* New clients get as many requests into a turn as old ones do. */
static void test_as_many_are_accepted_as_are_ready(void) {
    enum { OLD = 3, NEW = 8 };
    int fds[OLD + NEW];
    start_listening(answer_path);
    for (int i = 0; i < OLD; i++) CHECK(!talk(fds[i] = dial(), "/before"));
    const uint64_t before = server->counts.accepted;
    for (int i = 0; i < OLD; i++) say(fds[i], GET("/old"));
    for (int i = 0; i < NEW; i++) fds[OLD + i] = dial_with_request();
    turn();
    CHECK_INT(server->counts.accepted - before, OLD);
    turns(NEW);
    CHECK_INT(server->counts.accepted - before, NEW);
    for (int i = 0; i < OLD + NEW; i++) close(fds[i]);
    end();
}

static void test_the_limit_of_connections(void) {
    enum { CLIENTS = 5, LIMIT = 2 };
    int fds[CLIENTS];
    settings.max_connections = LIMIT;
    start_listening(answer_path);
    for (int i = 0; i < CLIENTS; i++) say(fds[i] = dial(), LAST("/a"));
    for (int i = 0; i < CLIENTS; i++) {
        CHECK(talk(fds[i], NULL)); /* in the order of arrival, each when there is room */
        CHECK(ends(got, "/a"));
        CHECK(server->conns.count <= LIMIT);
        close(fds[i]);
    }
    CHECK_INT(server->counts.accepted, CLIENTS);
    end();
}

static void test_idle_connections_at_the_limit(void) {
    int fds[4];
    settings.max_connections = 2;
    start_listening(answer_path);
    for (int i = 0; i < 4; i++) fds[i] = dial();
    turns(5);
    CHECK_INT(server->conns.count, 2);
    say(fds[3], GET("/d"));
    turns(5);
    CHECK(!hear(fds[3]) && got_len == 0); /* waits in the kernel's queue */
    close(fds[0]);
    close(fds[1]);
    CHECK(!talk(fds[3], "/d"));
    CHECK_INT(server->conns.count, 2);
    close(fds[2]);
    close(fds[3]);
    end();
}

static rd_listener *only_listener(void) {
    return RD_CONTAINER(server->accepting.listeners.next, rd_listener, in_server);
}

/* Unused connections make room when a client waits: first those that never sent anything, then idle
 * ones. Connections with a request do not. */
static void test_spare_connections_make_room(void) {
    int fds[5], i = 0;
    settings.max_connections = 3;
    start_listening(answer_path);
    for (; i < 3; i++) fds[i] = dial();
    say(fds[0], GET("/a"));
    CHECK(!talk(fds[0], "/a"));
    say(fds[1], "GET /half");
    later(900);
    say(fds[0], GET("/b"));
    CHECK(!talk(fds[0], "/b"));
    later(200);
    CHECK_INT(server->conns.count, 3); /* no client waits, so no connection is closed */
    say(fds[i++] = dial(), GET("/c"));
    later(200);
    CHECK(!talk(fds[3], "/c"));
    CHECK(hear(fds[2]) && got_len == 0);
    say(fds[i++] = dial(), GET("/d"));
    later(500);
    CHECK(!hear(fds[4]) && got_len == 0); /* the others had requests a moment ago */
    later(600);
    CHECK(!talk(fds[4], "/d"));
    CHECK(hear(fds[0]) && got_len == 0);
    say(fds[1], " HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(!talk(fds[1], "/half"));
    while (--i >= 0) close(fds[i]);
    end();
}

/* A connection that has lingered for a second is closed before connections that may still be used.
 */
static void test_lingering_connections_make_room(void) {
    int fds[4];
    settings.max_connections = 3;
    settings.linger_timeout_ms = 60000;
    start_listening(answer_path);
    fds[0] = dial(); /* sends nothing */
    later(900);
    for (int i = 1; i < 3; i++) {
        say(fds[i] = dial(), LAST("/a") "more"); /* the rest is not read, so it lingers */
        CHECK(talk(fds[i], NULL) && ends(got, "/a"));
    }
    CHECK_INT(server->conns.count, 3);
    later(900);
    CHECK_INT(server->conns.count, 3); /* no client waits */
    say(fds[0], "GET /half");
    later(200);
    say(fds[3] = dial(), GET("/d"));
    later(200);
    CHECK(!talk(fds[3], "/d"));
    say(fds[0], " HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(!talk(fds[0], "/half"));
    CHECK_INT(server->conns.count, 2);
    for (int i = 0; i < 4; i++) close(fds[i]);
    end();
}

/* No client waits for ever: the first one is answered 503, and the next ones get a chance after a
 * pause. */
static void test_out_of_descriptors(void) {
    struct rlimit before, none;
    start_listening(answer_path);
    int first = dial(), second = dial();
    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){(rlim_t)second + 1, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    CHECK(talk(first, NULL));
    CHECK_STR(got, "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n"
                   "content-length: 0\r\n\r\n");
    CHECK_INT(server->counts.dropped, 1);
    setrlimit(RLIMIT_NOFILE, &before);
    say(second, LAST("/b"));
    turns(3);
    CHECK(!hear(second) && got_len == 0);
    rd_listener_pause(only_listener(), true);
    later(100); /* the end of one pause does not end the other */
    CHECK(!hear(second) && got_len == 0);
    rd_listener_pause(only_listener(), false);
    CHECK(talk(second, NULL));
    CHECK(ends(got, "/b"));
    close(first);
    close(second);
    end();
}

static void test_all(void) {
    test_one_request_is_accepted_at_a_time();
    test_as_many_are_accepted_as_are_ready();
    test_the_limit_of_connections();
    test_idle_connections_at_the_limit();
    test_spare_connections_make_room();
    test_lingering_connections_make_room();
    test_out_of_descriptors();
}

int main(void) {
    return test_both_pollers(test_all);
}
