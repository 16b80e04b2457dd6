/* SPDX-License-Identifier: MIT
 *
 * Answers that the client of a connection does not take (http2/http2_taking.c): so many are made,
 * and no more until it takes some of them.
 */
#include "http2_serving.h"

#include "http2/http2_session.h"

/* The answers of a batch are made before it is known that they are not taken. */
enum { STREAMS = 100, SIZE = 10000, LEAST = 16 * 16384 / SIZE, MOST = LEAST + 32 };

static char body[1 << 20];
static size_t body_size;
static unsigned calls, calls_before_short;

static void answer_body(rd_request *request) {
    if (rd_slice_equal(rd_request_slice(request, request->head.path), RD_SLICE("/short"))) {
        calls_before_short = calls;
        answer_path(request);
        return;
    }
    calls++;
    answer_with(request, body, body_size);
}

static int begin_without_window(uint32_t window) {
    calls = 0;
    body_size = SIZE;
    const int fd = begin_with(answer_body);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window);
    put_window(&out, 0, 1 << 30);
    return fd;
}

static void ask_for_all(int fd) {
    for (uint32_t i = 0; i < STREAMS; i++) put_get(&out, 2 * i + 1, "/");
    for (int i = 0; i < 40; i++) tell(fd, &out);
}

static unsigned count_ended(void) {
    unsigned count = 0;
    for (uint32_t i = 0; i < STREAMS; i++) count += peer_of(2 * i + 1)->ended;
    return count;
}

static void open_all(int fd) {
    for (uint32_t i = 0; i < STREAMS; i++) put_window(&out, 2 * i + 1, SIZE);
    for (int i = 0; i < 100 && count_ended() < STREAMS; i++) tell(fd, &out);
    CHECK_INT(count_ended(), STREAMS);
    CHECK_INT(calls, STREAMS);
}

static void check_nobody_waits(void) {
    CHECK_INT(server->queue.len, 0);
    CHECK_INT(server->queue.behind, 0);
    CHECK(rd_list_is_empty(&server->queue.held));
}

/* Those that are not made wait for no thread. Other clients are served meanwhile. */
static void test_no_more_answers_than_are_taken(uint32_t window) {
    const int fd = begin_without_window(window), plain = join();
    ask_for_all(fd);
    CHECK_SAYS(calls >= LEAST && calls <= MOST, "%u calls", calls);
    CHECK_INT(server->queue.len, STREAMS - calls);
    CHECK_INT(server->queue.behind, STREAMS - calls);
    CHECK(!ask(plain, GET("/short")) && ends(got, "/short"));
    close(plain);
    open_all(fd);
    check_nobody_waits();
    finish(fd);
}

/* Some that are taken make room for others, and so do some that their client gives up. */
static void test_some_after_others(void) {
    const int fd = begin_without_window(0);
    ask_for_all(fd);
    put_reset(&out, 2 * STREAMS - 1, NGHTTP2_CANCEL); /* still waits */
    tell(fd, &out);
    CHECK_INT(server->queue.len, STREAMS - calls - 1);
    const unsigned first = calls;
    for (uint32_t i = 0; i < 10; i++) put_window(&out, 2 * i + 1, SIZE);
    for (int i = 0; i < 5; i++) tell(fd, &out);
    const unsigned second = calls;
    CHECK_SAYS(second > first && second - 10 <= MOST, "%u calls, then %u", first, second);
    for (uint32_t i = 10; i < second; i++) put_reset(&out, 2 * i + 1, NGHTTP2_CANCEL);
    for (int i = 0; i < 5; i++) tell(fd, &out);
    CHECK_SAYS(calls > second && calls - second <= MOST, "%u calls, then %u", second, calls);
    finish(fd);
}

/* The most urgent request is next. */
static void test_urgent_requests_do_not_wait_for_all(void) {
    const int fd = begin_without_window(0);
    ask_for_all(fd);
    const unsigned first = calls;
    put_reset(&out, 2 * STREAMS - 1, NGHTTP2_CANCEL);
    put_head_with(&out, 2 * STREAMS + 1, NGHTTP2_FLAG_END_STREAM,
                  HEAD_FIELDS("GET", "/short") "\npriority u=1");
    put_window(&out, 2 * STREAMS + 1, SIZE);
    tell(fd, &out);
    CHECK_STR(peer_of(2 * STREAMS + 1)->body, "");
    for (uint32_t i = 0; i < 10; i++) put_window(&out, 2 * i + 1, SIZE);
    for (int i = 0; i < 5; i++) tell(fd, &out);
    CHECK_STR(peer_of(2 * STREAMS + 1)->body, "/short");
    CHECK_INT(calls_before_short, first);
    finish(fd);
}

/* A few long downloads that wait for their client do not hold up a short answer. */
static void test_long_answers_count_as_short_ones(void) {
    const int fd = begin_without_window(0);
    body_size = sizeof(body);
    for (uint32_t i = 0; i < 12; i++) put_get(&out, 2 * i + 1, "/");
    for (int i = 0; i < 20; i++) tell(fd, &out);
    CHECK_INT(calls, 12);
    put_get(&out, 101, "/short");
    put_window(&out, 101, SIZE);
    for (int i = 0; i < 5; i++) tell(fd, &out);
    CHECK_STR(peer_of(101)->body, "/short");
    finish(fd);
}

/* ---- heads ---- */

enum { HEAD = 8000 };

static void answer_with_long_head(rd_request *request) {
    static char value[HEAD];
    static const rd_slice name = RD_SLICE_INIT("x-long");
    if (rd_slice_equal(rd_request_slice(request, request->head.path), RD_SLICE("/"))) {
        answer_with(request, body, sizeof(body));
        return;
    }
    calls++;
    memset(value, 'x', sizeof(value));
    const rd_field field = {.name = name, .value = rd_slice_of(value, sizeof(value))};
    const rd_response_head head = {.status = 204, .fields = &field, .count = 1, .length = -1};
    request->responder->start(request, &head);
    request->responder->finish(request);
}

static uint64_t output_held(void) {
    return server->conns.ledger.rows[RD_LEDGER_OUTPUT].held;
}

/* A client that reads nothing: its heads wait inside the library. Later it reads all. */
static void test_heads_that_are_not_taken(void) {
    const int fd = begin_with(answer_with_long_head);
    calls = 0;
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, sizeof(body));
    put_window(&out, 0, 1 << 30);
    put_get(&out, 1, "/");
    send_part(fd, out.bytes, out.len);
    turns(5);
    const uint64_t before = output_held();
    out.len = 0;
    for (uint32_t i = 1; i < STREAMS; i++) put_get(&out, 2 * i + 1, "/head");
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    turns(40);
    CHECK_SAYS(calls >= LEAST && calls <= 33 + 32, "%u calls", calls);
    CHECK_INT(server->queue.len, STREAMS - 1 - calls);
    CHECK(output_held() >= before - 3 * HEAD + (uint64_t)calls * HEAD); /* the socket took a part */
    for (int i = 0; i < 100 && count_ended() < STREAMS; i++) tell(fd, &out);
    CHECK_INT(count_ended(), STREAMS);
    CHECK_INT(output_held(), 0);
    check_nobody_waits();
    finish(fd);
}

/* Heads that have left, or whose streams are over, count no more, though others always wait. */
static void test_heads_that_are_taken_one_by_one(void) {
    const int fd = begin_with(answer_with_long_head);
    const rd_http2 *http2 = rd_http2_of(joined);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, sizeof(body));
    put_window(&out, 0, 1 << 30);
    put_get(&out, 1, "/");
    send_part(fd, out.bytes, out.len);
    turns(5);
    out.len = 0;
    for (uint32_t i = 1; i < 30; i++) put_get(&out, 2 * i + 1, "/head");
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    turns(5);
    const uint32_t all = http2->taking.heads;
    CHECK_SAYS(all > 25 * HEAD, "%u bytes", all);
    for (uint32_t i = 20; i < 30; i++) put_reset(&out, 2 * i + 1, NGHTTP2_CANCEL);
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    uint32_t least = all;
    for (int i = 0; i < 100 && http2->taking.heads > 0; i++) {
        char part[8000];
        const ssize_t got_now = recv(fd, part, sizeof(part), 0);
        CHECK(got_now > 0);
        turn();
        if (http2->taking.heads > 0 && http2->taking.heads < least) least = http2->taking.heads;
    }
    CHECK_SAYS(least < all - 9 * HEAD, "%u bytes", least);
    CHECK_INT(http2->taking.heads, 0);
    finish(fd);
}

/* The same with a client that goes. */
static void test_heads_of_a_client_that_goes(void) {
    const int fd = begin_with(answer_with_long_head);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, sizeof(body));
    put_window(&out, 0, 1 << 30);
    for (uint32_t i = 0; i < STREAMS; i++) put_get(&out, 2 * i + 1, i == 0 ? "/" : "/head");
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    turns(40);
    CHECK(output_held() > (uint64_t)LEAST * HEAD);
    close(fd);
    for (int i = 0; i < 100 && server->http.http2_counts.streams > 0; i++) turn();
    CHECK_INT(output_held(), 0);
    check_nobody_waits();
    end();
    peer_end();
}

static void test_a_client_that_goes(void) {
    const int fd = begin_without_window(0);
    ask_for_all(fd);
    const unsigned before = calls;
    close(fd);
    for (int i = 0; i < 100 && server->http.http2_counts.streams > 0; i++) turn();
    CHECK_INT(server->http.http2_counts.streams, 0);
    CHECK_INT(calls, before);
    check_nobody_waits();
    end();
    peer_end();
}

static void test_a_server_that_ends(void) {
    const int fd = begin_without_window(0);
    ask_for_all(fd);
    rd_server_stop(server, RD_STOP_DRAIN);
    for (int i = 0; i < 5; i++) tell(fd, &out);
    CHECK(!rd_server_is_done(server));
    open_all(fd);
    pass_ms(300);
    for (int i = 0; i < 5; i++) tell(fd, &out);
    CHECK(rd_server_is_done(server));
    finish(fd);
}

static void test_a_server_that_is_freed(void) {
    const int fd = begin_without_window(0);
    ask_for_all(fd);
    CHECK(!rd_list_is_empty(&server->queue.held));
    finish(fd);
}

static void test_all(void) {
    test_no_more_answers_than_are_taken(0);
    test_no_more_answers_than_are_taken(1);
    test_some_after_others();
    test_urgent_requests_do_not_wait_for_all();
    test_long_answers_count_as_short_ones();
    test_heads_that_are_not_taken();
    test_heads_that_are_taken_one_by_one();
    test_heads_of_a_client_that_goes();
    test_a_client_that_goes();
    test_a_server_that_ends();
    test_a_server_that_is_freed();
}

int main(void) {
    return test_both_pollers(test_all);
}
