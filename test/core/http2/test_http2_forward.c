/* SPDX-License-Identifier: MIT
 *
 * Requests on streams of a worker that is stuck, which another worker answers (server/forward.c,
 * protocol/forwarding.c). test/core/server/test_forward.c has the rest: it forwards those of a
 * transport that cannot move.
 */
#include "siblings_pair.h"

#include "http2/http2.h"
#include "http2_peer.h"

enum { SEATS = 6 };

static wire out;
static struct {
    rd_request *requests[256]; /* that an application keeps */
    unsigned count;
    unsigned version;
    uint64_t body;
} held;

static void hold(rd_server *server, rd_request *request) {
    (void)server;
    held.version = request->head.version;
    held.body = request->body.size;
    rd_request_ref(request);
    held.requests[held.count++] = request;
}

/* A client of A with a session, while A is stuck. */
static int begin(void (*application)(rd_server *, rd_request *)) {
    memset(&held, 0, sizeof(held));
    app = application;
    start();
    servers[A]->http.http2 = rd_http2_protocol();
    peer_begin();
    board.rows[B].connections = 100;
    const int fd = dial();
    board.rows[B].connections = 0;
    out.len = 0;
    put_opening(&out);
    board.rows[A].busy = 1;
    return fd;
}

static void stand_in_and_serve(int fd, int turns) {
    while (turns-- > 0) {
        stand_in(servers[A]);
        serve(servers[B]);
        peer_hear(fd);
    }
}

static void tell(int fd, int turns) {
    CHECK_INT(send(fd, out.bytes, out.len, MSG_NOSIGNAL), out.len);
    out.len = 0;
    stand_in_and_serve(fd, turns);
}

static void answer_held(void) {
    rd_loop_lock(&servers[B]->loop);
    for (unsigned i = 0; i < held.count; i++) {
        if (held.requests[i]->conn != NULL) answer(servers[B], held.requests[i]);
        rd_request_unref(held.requests[i]);
    }
    held.count = 0;
    rd_loop_unlock(&servers[B]->loop);
}

static void finish(void) {
    CHECK_INT(servers[A]->forwards.running, 0);
    board.rows[A].busy = 0;
    end();
    peer_end();
    app = answer;
}

static void check_body(uint32_t id, const char *text) {
    CHECK_INT(peer_of(id)->status, 200);
    CHECK_STR(peer_of(id)->body, text);
    CHECK(peer_of(id)->ended);
}

static void test_answers(void) {
    const int fd = begin(answer);
    put_get(&out, 1, "/one");
    put_head_with(&out, 3, 0, HEAD_FIELDS("POST", "/two") "\ncontent-length 5");
    put_data(&out, 3, "hello", true);
    put_head_with(&out, 5, 0, HEAD_FIELDS("POST", "/three"));
    put_data(&out, 5, "hello you", true);
    tell(fd, 8);
    check_body(1, "B /one 0");
    check_body(3, "B /two 5");
    check_body(5, "B /three 9");
    CHECK_INT(servers[A]->forwards.out, 3);
    CHECK_INT(servers[B]->forwards.in, 3);
    CHECK_INT(servers[A]->counts.requests, 0);
    finish();
}

/* A body without a length keeps its end. */
static void test_what_the_other_worker_knows(void) {
    const int fd = begin(hold);
    put_head_with(&out, 1, 0, HEAD_FIELDS("POST", "/any"));
    put_data(&out, 1, "hello you", true);
    tell(fd, 4);
    CHECK_INT(held.count, 1);
    CHECK_INT(held.version, RD_HTTP_2);
    CHECK_INT(held.body, 9);
    CHECK(held.requests[0]->body_complete && !held.requests[0]->conn->origin.secure);
    answer_held();
    stand_in_and_serve(fd, 3);
    check_body(1, "B /any 9");
    finish();
}

/* One client has no more with the other worker than it would have with its own. */
static void test_seats(void) {
    const int fd = begin(hold);
    for (uint32_t i = 0; i < 20; i++) put_get(&out, 2 * i + 1, "/any");
    tell(fd, 6);
    CHECK_INT(held.count, SEATS);
    CHECK_INT(servers[A]->forwards.running, SEATS);
    CHECK_INT(servers[A]->queue.len, 20 - SEATS);
    for (unsigned answered = 0; answered < 20;) {
        answered += held.count;
        CHECK(held.count > 0 && held.count <= SEATS);
        answer_held();
        stand_in_and_serve(fd, 4);
    }
    for (uint32_t i = 0; i < 20; i++) check_body(2 * i + 1, "B /any 0");
    CHECK_INT(servers[A]->forwards.out, 20);
    finish();
}

/* What may become something else than an answer does not hold up the others of its line. */
static void test_what_stays(void) {
    const int fd = begin(answer);
    put_head_with(&out, 1, NGHTTP2_FLAG_END_STREAM,
                  HEAD_FIELDS("GET", "/events") "\naccept text/event-stream");
    put_head_with(&out, 3, 0, HEAD_FIELDS("POST", "/any") "\nexpect 100-continue");
    put_get(&out, 5, "/any");
    tell(fd, 4);
    check_body(5, "B /any 0");
    CHECK_INT(servers[A]->forwards.out, 1);
    CHECK_INT(peer_of(1)->heads, 0);
    board.rows[A].busy = 0;
    serve(servers[A]);
    serve(servers[A]);
    peer_hear(fd);
    check_body(1, "A /events 0");
    finish();
}

static void test_resets(void) {
    const int fd = begin(hold);
    for (uint32_t i = 0; i < 4; i++) put_get(&out, 2 * i + 1, "/any");
    tell(fd, 4);
    CHECK_INT(servers[A]->forwards.running, 4);
    const uint64_t descriptors = servers[A]->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held;
    put_reset(&out, 3, NGHTTP2_CANCEL);
    tell(fd, 3);
    CHECK_INT(servers[A]->forwards.running, 3);
    CHECK_INT(servers[A]->conns.ledger.rows[RD_LEDGER_DESCRIPTORS].held, descriptors - 1);
    CHECK(held.requests[1]->gone && !held.requests[0]->gone);
    close(fd); /* and all the others */
    clients[client_count - 1] = dup(inboxes[A][0]);
    stand_in_and_serve(clients[client_count - 1], 3);
    CHECK_INT(servers[A]->forwards.running, 0);
    for (unsigned i = 0; i < 4; i++) CHECK(held.requests[i]->gone);
    answer_held();
    serve(servers[B]);
    finish();
}

static void test_the_other_worker_ends(void) {
    const int fd = begin(hold);
    put_get(&out, 1, "/any");
    tell(fd, 4);
    rd_loop_lock(&servers[B]->loop);
    rd_conn_set_each(&servers[B]->conns, rd_conn_close);
    rd_loop_unlock(&servers[B]->loop);
    stand_in_and_serve(fd, 3);
    CHECK_INT(peer_of(1)->status, 502);
    CHECK_STR(peer_of(1)->body, "the worker that answered the request has ended\n");
    CHECK(peer_of(1)->ended);
    answer_held();
    finish();
}

int main(void) {
    test_answers();
    test_what_the_other_worker_knows();
    test_seats();
    test_what_stays();
    test_resets();
    test_the_other_worker_ends();
    return check_summary();
}
