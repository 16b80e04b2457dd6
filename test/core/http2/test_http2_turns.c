/* SPDX-License-Identifier: MIT
 *
 * HTTP/2 (http2/http2.c): input that has to wait because others have used the time of the turn, and
 * clients that go while it does, or with all their streams.
 */
#include "http2_serving.h"

#include "http2/http2_session.h"
#include "transport/deferred.h"

/* Stands in line, and so do all who come later. */
static struct {
    rd_deferred deferred;
    bool stays;
} other;

static void stay(rd_deferred *deferred) {
    hand_clock_ns += 100000;
    if (other.stays) rd_deferred_wait(&server->conns, deferred);
}

static void let_others_wait(void) {
    rd_loop_lock(&server->loop);
    other.stays = true;
    rd_deferred_init(&other.deferred, stay);
    rd_deferred_wait(&server->conns, &other.deferred);
    rd_loop_unlock(&server->loop);
}

static void let_others_go(void) {
    rd_loop_lock(&server->loop);
    other.stays = false;
    rd_deferred_leave(&server->conns, &other.deferred);
    rd_loop_unlock(&server->loop);
}

/* Longer than a piece, in heads, bodies and frames that carry nothing. */
static void put_much(uint32_t count) {
    static char part[3000];
    for (uint32_t i = 0; i < count; i++) {
        put_head_with(&out, 2 * i + 1, 0, HEAD_FIELDS("POST", "/much"));
        put_data(&out, 2 * i + 1, "12345", false);
        put_frame(&out, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 2 * i + 1, part, sizeof(part));
        put_frame(&out, 0xee, 0, 0, part, 10);
    }
}

static void test_input_that_waits(void) {
    enum { COUNT = 20 };
    const int fd = begin_with(answer_path);
    const rd_http2 *http2 = rd_http2_of(joined);
    let_others_wait();
    put_much(COUNT);
    for (int i = 0; i < 500 && !peer_of(2 * COUNT - 1)->ended; i++) tell(fd, &out);
    for (uint32_t i = 0; i < COUNT; i++) CHECK_STR(peer_of(2 * i + 1)->body, "/much");
    CHECK_INT(server_said.goaway, NO_CODE);
    if (!CHECK(!server_said.closed)) return;
    CHECK_INT(http2->carrier->input.capacity, 0);
    CHECK_INT(http2->carrier->input_counted, 0);
    CHECK(!http2->carrier->read_paused && !rd_deferred_waits(&http2->later));
    let_others_go();
    put_get(&out, 2 * COUNT + 1, "/more");
    tell(fd, &out);
    CHECK_STR(peer_of(2 * COUNT + 1)->body, "/more");
    finish(fd);
}

static void test_a_client_that_sends_little(void) {
    const int fd = begin_with(answer_path);
    let_others_wait();
    put_get(&out, 1, "/little");
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    turn();
    CHECK(!rd_deferred_waits(&rd_http2_of(joined)->later));
    tell(fd, &out);
    CHECK_STR(peer_of(1)->body, "/little");
    let_others_go();
    finish(fd);
}

/* Nothing is lost: it is read at once. */
static void test_no_room_for_input_that_waits(void) {
    enum { COUNT = 20 };
    settings.total_input_bytes = 2000;
    const int fd = begin_with(answer_path);
    let_others_wait();
    put_much(COUNT);
    for (int i = 0; i < 500 && !peer_of(2 * COUNT - 1)->ended; i++) tell(fd, &out);
    for (uint32_t i = 0; i < COUNT; i++) CHECK_STR(peer_of(2 * i + 1)->body, "/much");
    let_others_go();
    finish(fd);
}

/* The rest of the preface comes with input that has to wait, or that has no room to. */
static void test_an_opening_in_two_parts(int64_t total_input_bytes) {
    enum { COUNT = 20, PART = 3 };
    open_peer();
    settings.total_input_bytes = total_input_bytes;
    start(answer_path);
    const int fd = join();
    out.len = 0;
    put_opening(&out);
    put_much(COUNT);
    send_part(fd, out.bytes, PART);
    turns(2);
    let_others_wait();
    send_part(fd, out.bytes + PART, out.len - PART);
    out.len = 0;
    for (int i = 0; i < 500 && !peer_of(2 * COUNT - 1)->ended; i++) tell(fd, &out);
    for (uint32_t i = 0; i < COUNT; i++) CHECK_STR(peer_of(2 * i + 1)->body, "/much");
    CHECK_INT(server_said.goaway, NO_CODE);
    let_others_go();
    finish(fd);
}

/* The library stops within the head and the trailers, and behind their last field. */
static void test_heads_that_decode_to_much(void) {
    const int fd = begin_with(answer_path);
    for (uint32_t i = 0; i < 50; i++) {
        const uint32_t id = 4 * i + 1;
        put_repeated(&out, id, 0, HEAD_FIELDS("POST", "/much"), i / 2);
        if (i % 2 > 0) put_data(&out, id, "12345", false);
        put_repeated(&out, id, NGHTTP2_FLAG_END_STREAM, "", 24 - i / 2);
        if (i % 4 > 1) put_get(&out, id + 2, "/more");
        tell(fd, &out);
        CHECK_STR(peer_of(id)->body, "/much");
        CHECK(peer_of(id)->ended);
        if (i % 4 > 1) CHECK_STR(peer_of(id + 2)->body, "/more");
    }
    CHECK_INT(server_said.goaway, NO_CODE);
    finish(fd);
}

/* The same in all pieces that a network may make of it, and a fault behind it. */
static void test_heads_that_decode_to_much_in_two_parts(void) {
    static wire said;
    said.len = 0;
    put_repeated(&said, 1, NGHTTP2_FLAG_END_STREAM, HEAD_FIELDS("GET", "/much"), 24);
    const size_t head = said.len;
    put_frame(&said, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4);
    for (size_t cut = said.len - 50; cut < said.len; cut++) {
        const int fd = begin_with(answer_path);
        send_part(fd, said.bytes, cut);
        turns(3);
        CHECK_INT(server_said.goaway, NO_CODE);
        send_part(fd, said.bytes + cut, said.len - cut);
        tell(fd, &out);
        if (cut >= head) CHECK_STR(peer_of(1)->body, "/much");
        CHECK_INT(server_said.goaway, NGHTTP2_PROTOCOL_ERROR);
        finish(fd);
    }
}

/* The rest of what it said is nonsense. */
static void test_input_that_waits_and_is_wrong(void) {
    const int fd = begin_with(answer_path);
    let_others_wait();
    put_much(3);
    put_window(&out, 0, 0);
    put_much(30);
    for (int i = 0; i < 500 && !server_said.closed; i++) tell(fd, &out);
    CHECK_INT(server_said.goaway, NGHTTP2_PROTOCOL_ERROR);
    let_others_go();
    finish(fd);
}

static unsigned calls;

static void count_call(rd_request *request) {
    calls++;
    answer_path(request);
}

/* The connection fails for another reason: what waits is not read any more. */
static void test_input_of_a_connection_that_fails(void) {
    const int fd = begin_with(count_call);
    rd_http2 *http2 = rd_http2_of(joined);
    calls = 0;
    let_others_wait();
    put_much(30);
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    for (int i = 0; i < 10 && !rd_deferred_waits(&http2->later); i++) turn();
    CHECK(rd_deferred_waits(&http2->later));
    const unsigned before = calls;
    rd_loop_lock(&server->loop);
    rd_http2_fail(http2, NGHTTP2_INTERNAL_ERROR);
    rd_loop_unlock(&server->loop);
    for (int i = 0; i < 100 && !server_said.closed; i++) tell(fd, &out);
    CHECK_INT(server_said.goaway, NGHTTP2_INTERNAL_ERROR);
    CHECK_INT(calls, before);
    let_others_go();
    finish(fd);
}

static void check_nothing_is_left(void) {
    const rd_http_shared *shared = &server->http;
    for (int i = 0; i < 500 && server->conns.layers.count > 0; i++) turn();
    CHECK_INT(server->conns.layers.count, 0);
    CHECK_INT(server->conns.count, 0);
    CHECK_INT(shared->http2_counts.connections, 0);
    CHECK_INT(shared->http2_counts.streams, 0);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_INPUT].held, 0);
}

static void test_a_client_that_goes_meanwhile(void) {
    const int fd = begin_with(answer_path);
    let_others_wait();
    put_much(30);
    send_part(fd, out.bytes, out.len);
    turn();
    close(fd);
    turns(3);
    let_others_go();
    check_nothing_is_left();
    end();
    peer_end();
}

static rd_request *kept[100];
static size_t kept_count;

static void keep(rd_request *request) {
    rd_request_ref(request);
    kept[kept_count++] = request;
}

/* Its streams are closed some at a time. Requests of them do not reach the application any more. */
static void test_a_client_that_goes_with_its_streams(bool at_the_end) {
    const int fd = begin_with(keep);
    kept_count = 0;
    for (uint32_t i = 0; i < 100; i++) put_get(&out, 2 * i + 1, "/");
    for (int i = 0; i < 20; i++) tell(fd, &out);
    CHECK_INT(server->http.http2_counts.streams, 100);
    CHECK(kept_count > 0 && kept[0]->conn != NULL);
    let_others_wait();
    close(fd);
    for (int i = 0; i < 20 && server->http.http2_counts.streams == 100; i++) turn();
    CHECK_INT(server->conns.count, 0);
    CHECK_INT(server->http.http2_counts.connections, 0);
    CHECK(server->http.http2_counts.streams > 0 && server->http.http2_counts.streams < 100);
    let_others_go();
    if (!at_the_end) check_nothing_is_left();
    rd_loop_lock(&server->loop);
    for (size_t i = 0; i < kept_count; i++) {
        if (!at_the_end) CHECK(kept[i]->gone);
        rd_request_unref(kept[i]);
    }
    rd_loop_unlock(&server->loop);
    end();
    peer_end();
}

static void finish_and_check(int fd) {
    close(fd);
    turns(3);
    check_nothing_is_left();
    end();
    peer_end();
}

/* What the client is told does not wait for its streams. An answer meanwhile does not let its
 * requests go on. */
static void test_a_failure_with_many_streams(void) {
    const int fd = begin_with(keep);
    const rd_line *line = &rd_http2_of(joined)->lines->calls;
    kept_count = 0;
    for (uint32_t i = 0; i < 100; i++) put_get(&out, 2 * i + 1, "/");
    for (int i = 0; i < 20; i++) tell(fd, &out);
    CHECK_INT(server->http.http2_counts.streams, 100);
    let_others_wait();
    put_window(&out, 0, 0);
    tell(fd, &out);
    CHECK_INT(server_said.goaway, NGHTTP2_PROTOCOL_ERROR);
    CHECK(server->http.http2_counts.streams > 0 && server->http.http2_counts.streams < 100);
    rd_loop_lock(&server->loop);
    CHECK(!kept[99]->gone && line->is_held);
    answer_path(kept[99]);
    CHECK(line->is_held);
    rd_loop_unlock(&server->loop);
    let_others_go();
    for (int i = 0; i < 20; i++) tell(fd, &out);
    CHECK(server_said.closed);
    CHECK_INT(server->http.http2_counts.streams, 0);
    for (size_t i = 0; i < kept_count; i++) {
        CHECK(kept[i]->gone || i == 99);
        rd_request_unref(kept[i]);
    }
    finish_and_check(fd);
}

/* Requests that have come with the fault do not reach the application. */
static void test_a_failure_behind_many_requests(void) {
    const int fd = begin_with(count_call);
    calls = 0;
    for (uint32_t i = 0; i < 100; i++) put_get(&out, 2 * i + 1, "/");
    put_window(&out, 0, 0);
    for (int i = 0; i < 20; i++) tell(fd, &out);
    CHECK_INT(server_said.goaway, NGHTTP2_PROTOCOL_ERROR);
    CHECK_INT(calls, 0);
    finish_and_check(fd);
}

/* Nor do they while the client reads nothing, so that it cannot be told. */
static void test_a_failure_that_cannot_be_told(void) {
    static char body[1 << 20];
    const int fd = begin_with(hold);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, sizeof(body));
    put_window(&out, 0, 1 << 30);
    put_get(&out, 1, "/");
    tell(fd, &out);
    rd_loop_lock(&server->loop);
    answer_with(held, body, sizeof(body));
    rd_loop_unlock(&server->loop);
    let_go();
    turns(5);
    app = count_call;
    calls = 0;
    for (uint32_t i = 1; i < 90; i++) put_get(&out, 2 * i + 1, "/");
    put_window(&out, 0, 0);
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    turns(10);
    CHECK(rd_http2_of(joined)->has_failed);
    CHECK_INT(calls, 0);
    finish_and_check(fd);
}

/* Its bodies end some at a time. */
static void test_the_end_of_many_bodies(void) {
    const int fd = begin_with(answer_path);
    for (uint32_t i = 0; i < 100; i++) {
        put_head_with(&out, 2 * i + 1, 0, HEAD_FIELDS("POST", "/") "\ncontent-length 9");
    }
    for (int i = 0; i < 20; i++) tell(fd, &out);
    CHECK_INT(server->http.http2_counts.streams, 100);
    let_others_wait();
    shutdown(fd, SHUT_WR);
    turns(3);
    CHECK(server->http.http2_counts.streams > 0 && server->http.http2_counts.streams < 100);
    let_others_go();
    for (int i = 0; i < 20; i++) {
        turn();
        peer_hear(fd);
    }
    CHECK_INT(server->http.http2_counts.streams, 0);
    CHECK(server_said.closed);
    finish_and_check(fd);
}

static void test_all(void) {
    test_input_that_waits();
    test_a_client_that_sends_little();
    test_no_room_for_input_that_waits();
    test_an_opening_in_two_parts(1 << 20);
    test_an_opening_in_two_parts(2000);
    test_input_that_waits_and_is_wrong();
    test_heads_that_decode_to_much();
    test_heads_that_decode_to_much_in_two_parts();
    test_input_of_a_connection_that_fails();
    test_a_client_that_goes_meanwhile();
    test_a_client_that_goes_with_its_streams(false);
    test_a_client_that_goes_with_its_streams(true);
    test_a_failure_with_many_streams();
    test_a_failure_behind_many_requests();
    test_a_failure_that_cannot_be_told();
    test_the_end_of_many_bodies();
}

int main(void) {
    return test_both_pollers(test_all);
}
