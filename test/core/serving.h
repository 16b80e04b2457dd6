/* SPDX-License-Identifier: MIT
 *
 * A whole server inside a test program, without Ruby: real sockets, turns by hand, a clock by hand,
 * and an application that is a function of the test. Settings are those in `settings` at start().
 */
#ifndef SERVING_H
#define SERVING_H

#include <errno.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "check.h"
#include "disk_jobs.h"
#include "hand_clock.h"
#include "protocol/protocols.h"
#include "server/server.h"

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static rd_server *server;
static rd_settings settings;
static uint16_t port;
static int64_t idle_us = 1000;           /* never a long wait: the test drives both sides */
static rd_conn *joined;                  /* the server's end of the last join() */
static void (*app)(rd_request *request); /* answers, or keeps a reference for later */
static unsigned writes;                  /* system calls that sent bytes to a joined client */
static rd_request *held;                 /* what hold() keeps */
static char got[65536];                  /* what a client has read, a string */
static size_t got_len;

/* ---- the application ---- */

__attribute__((unused)) static void answer_with(rd_request *request, const char *body, size_t len) {
    rd_response_head head = {.status = 200, .length = (int64_t)len};
    request->responder->start(request, &head);
    request->responder->write(request, body, len);
    request->responder->finish(request);
}

__attribute__((unused)) static void answer_path(rd_request *request) {
    rd_slice path = rd_request_slice(request, request->head.path);
    answer_with(request, path.ptr, path.len);
}

__attribute__((unused)) static void hold(rd_request *request) {
    CHECK(held == NULL);
    rd_request_ref(request);
    held = request;
}

__attribute__((unused)) static void let_go(void) {
    if (held != NULL) rd_request_unref(held);
    held = NULL;
}

/* ---- waiting for a change of a request ---- */

static struct {
    rd_waiter waiter;
    rd_request *request; /* NULL: no waiter */
    bool woken;
} awaited;

static void note_wake(rd_waiter *waiter) {
    (void)waiter;
    awaited.woken = true;
}

__attribute__((unused)) static void await(rd_request *request) {
    awaited.waiter.wake = note_wake;
    awaited.request = request;
    awaited.woken = false;
    rd_list_append(&request->waiters, &awaited.waiter.node);
}

/* The request whose waiter was notified since the last call, once; or NULL. */
__attribute__((unused)) static rd_request *woken(void) {
    rd_request *request = awaited.woken ? awaited.request : NULL;
    awaited.woken = false;
    return request;
}

/* ---- the server ---- */

static void wait_in_poll(rd_server *waiting, int64_t timeout_us) {
    (void)timeout_us;
    rd_loop_wait(&waiting->loop, &waiting->lead.found, idle_us);
}

static void turn(void) {
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    rd_request *request = NULL;
    while ((request = rd_server_next_request(server, request)) != NULL) {
        if (request->conn != NULL) app(request);
    }
    rd_loop_unlock(&server->loop);
    if (!jobs_are_held) rd_disk_wait_idle(&server->loop); /* the next turn sees what they did */
}

__attribute__((unused)) static void turns(int count) {
    while (count-- > 0) turn();
}

__attribute__((unused)) static void later(uint64_t ms) {
    pass_ms(ms);
    turns(2); /* what the first turn decides, the second one sends */
}

static void start(void (*application)(rd_request *)) {
    server = rd_server_new(&settings);
    app = application;
}

__attribute__((unused)) static void start_listening(void (*application)(rd_request *)) {
    char error[RD_LISTENER_ERROR_MAX];
    start(application);
    rd_listener *listener = rd_alloc_zero(sizeof(*listener));
    rd_listen_options options = {.backlog = 16, .mode = -1};
    CHECK_INT(rd_listen_tcp(listener, "127.0.0.1", 0, &options, error), 0);
    port = listener->port;
    rd_loop_lock(&server->loop);
    CHECK_INT(rd_server_add_listener(server, listener), 0);
    rd_loop_unlock(&server->loop);
}

/* Ends the server; every request must have ended before. Every setting except the poller gets its
 * default again. */
__attribute__((unused)) static void end(void) {
    let_go();
    turns(2);
    rd_server_stop(server, RD_STOP_NOW);
    turns(2);
    CHECK(rd_server_is_done(server));
    CHECK_INT(server->conns.count, 0);
    rd_server_free(server);
    int64_t poll_only = settings.poll_only;
    rd_settings_init(&settings);
    settings.poll_only = poll_only;
}

static int refuse_modify(rd_poller *poller, rd_source *source) {
    (void)poller, (void)source;
    return -1;
}

/* The kernel has no memory for a change of interest, from now until the test puts back what this
 * returns. */
__attribute__((unused)) static const rd_poller_ops *break_poller(void) {
    static rd_poller_ops failing;
    const rd_poller_ops *before = server->loop.ops;
    failing = *before;
    failing.modify = refuse_modify;
    server->loop.ops = &failing;
    return before;
}

/* ---- clients ---- */

__attribute__((unused)) static int dial(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static ssize_t counted_write(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    writes++;
    return rd_transport_tcp.write(conn, iov, count, more);
}

/* A client by a pair of sockets, where every byte that is sent has arrived. */
__attribute__((unused)) static int join(void) {
    static rd_transport counted;
    rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    int pair[2];
    counted = rd_transport_tcp;
    counted.write = counted_write;
    writes = 0;
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    rd_loop_lock(&server->loop);
    const rd_protocol *protocol = rd_protocol_begin(&server->conns, &counted, &nobody);
    joined = rd_conn_open(&server->conns, pair[0], &counted, protocol, &nobody);
    rd_conn_read_now(joined);
    rd_loop_unlock(&server->loop);
    return pair[1];
}

static void say(int fd, const char *text) {
    CHECK_INT(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads what is there into `got`; returns whether the end has come. */
static bool hear(int fd) {
    ssize_t part = 1;
    for (got_len = 0; got_len < sizeof(got) - 1 && part > 0;) {
        part = recv(fd, got + got_len, sizeof(got) - 1 - got_len, 0);
        if (part > 0) got_len += (size_t)part;
    }
    got[got_len] = '\0';
    return part == 0;
}

/* Turns until the server closes, or until `enough` is in the bytes that came. Returns whether it
 * closed. */
__attribute__((unused)) static bool talk(int fd, const char *enough) {
    got[got_len = 0] = '\0';
    for (int i = 0; i < 3000; i++) {
        turn();
        ssize_t part = recv(fd, got + got_len, sizeof(got) - 1 - got_len, 0);
        if (part == 0) return true;
        if (part < 0 && errno != EAGAIN) return true;
        if (part < 0) continue;
        got[got_len += (size_t)part] = '\0';
        if (enough != NULL && strstr(got, enough) != NULL) break;
    }
    return false;
}

/* Sends something, lets the server work, and reads the answer; returns whether the end has come. */
__attribute__((unused)) static bool ask(int fd, const char *text) {
    say(fd, text);
    turns(3);
    return hear(fd);
}

__attribute__((unused)) static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

__attribute__((unused)) static bool ends(const char *text, const char *with) {
    size_t len = strlen(text), with_len = strlen(with);
    return len >= with_len && strcmp(text + len - with_len, with) == 0;
}

/* What main() returns. */
__attribute__((unused)) static int test_both_pollers(void (*test_all)(void)) {
    rd_settings_init(&settings);
    test_all();
    settings.poll_only = 1;
    test_all();
    return check_summary();
}

#endif
