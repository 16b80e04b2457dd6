/* SPDX-License-Identifier: MIT
 *
 * The pair of servers of xor_pair.h for tests of forwards: A is stuck and has the clients, B
 * answers.
 */
#ifndef RD_TEST_FORWARD_PAIR_H
#define RD_TEST_FORWARD_PAIR_H

#include "xor_pair.h"

/* ---- the application ---- */

static struct {
    rd_request *held; /* by hold() */
    bool was_secure;
    rd_address peer;
} seen;

static void note(const rd_request *request) {
    seen.was_secure = request->conn->origin.secure;
    seen.peer = request->conn->peer;
}

__attribute__((unused)) static void hold(rd_server *server, rd_request *request) {
    (void)server;
    CHECK(seen.held == NULL);
    note(request);
    rd_request_ref(request);
    seen.held = request;
}

__attribute__((unused)) static void let_go(rd_server *server) {
    rd_loop_lock(&server->loop);
    rd_request_unref(seen.held);
    seen.held = NULL;
    rd_loop_unlock(&server->loop);
}

static const rd_field hint = {RD_SLICE_INIT("link"), RD_SLICE_INIT("</a>")};

/* By its path: what an application can answer. */
__attribute__((unused)) static void answer_kinds(rd_server *server, rd_request *request) {
    const rd_slice path = rd_request_slice(request, request->head.path);
    const rd_responder *responder = request->responder;
    rd_response_head head = {.status = 200, .fields = &hint, .count = 1, .length = -1};
    note(request);
    switch (path.ptr[1]) {
    case 'c': /* chunked, or until the end for HTTP/1.0 */
        responder->start(request, &head);
        responder->write(request, "one ", 4);
        responder->write(request, "two", 3);
        break;
    case 'h':
        head.status = 103;
        responder->inform(request, &head);
        responder->inform(request, &head);
        head = (rd_response_head){.status = 200, .length = 2};
        responder->start(request, &head);
        responder->write(request, "ok", 2);
        break;
    case 'n':
        head.status = path.ptr[2] == '2' ? 204 : 304;
        responder->start(request, &head);
        break;
    case 'e': /* the application ends the connection */
        head.length = 3;
        head.close = true;
        responder->start(request, &head);
        responder->write(request, "end", 3);
        break;
    default:
        answer(server, request);
        return;
    }
    responder->finish(request);
}

/* ---- the pair ---- */

__attribute__((unused)) static void begin_with(void (*application)(rd_server *, rd_request *)) {
    memset(&seen, 0, sizeof(seen));
    app = application;
    begin(&rd_transport_xor);
}

__attribute__((unused)) static void end_with(void) {
    CHECK_INT(servers[A]->forwards.running, 0);
    CHECK_INT(servers[A]->counts.handed_out, 0);
    CHECK_INT(servers[B]->counts.handed_in, 0);
    CHECK_INT(servers[B]->conns.count, 0);
    finish();
    app = answer;
}

/* A's application does not return. */
__attribute__((unused)) static void pin_a(void) {
    board.rows[A].busy = 1;
}

__attribute__((unused)) static void wake_a(void) {
    board.rows[A].busy = 0;
}

/* A's watch thread and B work until nothing more happens. */
__attribute__((unused)) static void stand_in_and_serve(int turns) {
    while (turns-- > 0) {
        stand_in(servers[A]);
        serve(servers[B]);
    }
}

/* All of what came in records, heads included. */
static char heard[65536];

__attribute__((unused)) static const char *hear_all(int fd) {
    size_t used = 0;
    for (;;) {
        unsigned char head[2];
        if (recv(fd, head, 2, MSG_PEEK) < 2) break;
        const size_t record = (size_t)(head[0] << 8 | head[1]);
        if (record == 0 || used + record >= sizeof(heard)) break;
        if (recv(fd, got, 2 + record, MSG_PEEK) < (ssize_t)(2 + record)) break;
        recv(fd, got, 2 + record, 0);
        for (size_t i = 0; i < record; i++) heard[used++] = (char)(got[2 + i] ^ XOR_BYTE);
    }
    heard[used] = '\0';
    return heard;
}

__attribute__((unused)) static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

__attribute__((unused)) static bool stops(const char *text, const char *with) {
    const size_t len = strlen(text), with_len = strlen(with);
    return len >= with_len && strcmp(text + len - with_len, with) == 0;
}

#define CHECK_HAS(text, part)     CHECK_SAYS(strstr((text), (part)) != NULL, "\"%s\"", (text))
#define CHECK_HAS_NOT(text, part) CHECK_SAYS(strstr((text), (part)) == NULL, "\"%s\"", (text))

/* What comes back of a request that A cannot answer itself. */
__attribute__((unused)) static const char *ask_b_in_vain(int fd, const char *request) {
    pin_a();
    say_record(fd, request);
    stand_in_and_serve(6);
    wake_a();
    return hear_all(fd);
}

__attribute__((unused)) static const char *ask_b(int fd, const char *request) {
    const uint64_t before = servers[A]->forwards.out;
    const char *text = ask_b_in_vain(fd, request);
    CHECK_INT(servers[A]->forwards.out, before + 1);
    CHECK_INT(servers[B]->forwards.in, before + 1);
    return text;
}

__attribute__((unused)) static void check_next(int fd) {
    say_record(fd, GET("/after"));
    serve_all();
    CHECK_STR(hear_records(fd), "A /after 0");
}

__attribute__((unused)) static void check_end(int fd) {
    serve_all();
    shutdown(fd, SHUT_WR);
    serve_all();
    CHECK_INT(servers[A]->conns.count, 0);
}

__attribute__((unused)) static void answer_held(void) {
    rd_loop_lock(&servers[B]->loop);
    answer(servers[B], seen.held);
    rd_loop_unlock(&servers[B]->loop);
    let_go(servers[B]);
}

#endif
