/* SPDX-License-Identifier: MIT
 *
 * The answering side of HTTP/1.1: framing, bodies that are dropped, cut or aborted, asking for the
 * request's body, back-pressure, clients that stop reading, and taking the connection away.
 */
#include <errno.h>

#include "serving.h"

static int client;
static const char zeros[1000000];

static void begin(void (*application)(rd_request *)) {
    start(application);
    client = join();
}

static void finish(void) {
    close(client);
    end();
}

/* A request that the test answers by itself. */
static rd_request *begin_held(const char *sent) {
    begin(hold);
    CHECK(!ask(client, sent));
    CHECK(held != NULL);
    return held;
}

static unsigned released;

static void count_release(rd_release *release) {
    (void)release;
    released++;
}

static int start_answer(rd_request *request, int status, int64_t length) {
    rd_response_head head = {.status = status, .length = length};
    return request->responder->start(request, &head);
}

/* ---- framing ---- */

static const struct {
    const char *sent;
    rd_response_head head;
    const char *has, *body; /* `has` in the head; with "!" in front: not in it */
    bool closes;
} framings[] = {
    {GET("/"), {.status = 200, .length = 4}, "content-length: 4\r\n", "body", false},
    {GET("/"), {.status = 200, .length = 4}, "!connection:", "body", false},
    {GET("/"), {.status = 200, .length = 4, .close = true}, "connection: close", "body", true},
    {LAST("/"), {.status = 200, .length = 4}, "connection: close", "body", true},
    {GET("/"),
     {.status = 200, .length = -1},
     "transfer-encoding: chunked\r\n",
     "4\r\nbody\r\n0\r\n\r\n",
     false},
    {GET("/"), {.status = 204, .length = 4}, "!content-length", "", false},
    {GET("/"), {.status = 204, .length = -1}, "!transfer-encoding", "", false},
    {GET("/"), {.status = 304, .length = -1}, "!transfer-encoding", "", false},
    {GET("/"), {.status = 200, .length = 4, .has_date = true}, "!date:", "body", false},
    {GET("/"), {.status = 599, .length = 4}, "HTTP/1.1 599 \r\n", "body", false},
    {GET("/"), {.status = 101, .length = -1, .raw = true}, "HTTP/1.1 101 Switching", "body", true},
    {GET("/"), {.status = 200, .length = 4, .raw = true}, "!content-length", "body", true},
    {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
     {.status = 200, .length = 4},
     "content-length: 4",
     "",
     false},
    {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
     {.status = 200, .length = -1},
     "!transfer-encoding",
     "",
     false},
    {"GET / HTTP/1.0\r\n\r\n", {.status = 200, .length = 4}, "connection: close", "body", true},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
     {.status = 200, .length = 4},
     "connection: keep-alive\r\n",
     "body",
     false},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
     {.status = 200, .length = -1},
     "connection: close\r\n",
     "body",
     true},
};

static bool has(const char *what) {
    return what[0] == '!' ? strstr(got, what + 1) == NULL : strstr(got, what) != NULL;
}

static void test_framing(void) {
    for (size_t i = 0; i < sizeof(framings) / sizeof(framings[0]); i++) {
        rd_request *request = begin_held(framings[i].sent);
        CHECK_INT(request->responder->start(request, &framings[i].head), 0);
        CHECK_INT(request->responder->write(request, "body", 4), 0);
        CHECK_INT(request->responder->finish(request), 0);
        CHECK_INT(request->status, framings[i].head.status);
        turns(2);
        CHECK_SAYS(hear(client) == framings[i].closes, "row %zu", i);
        CHECK_SAYS(has(framings[i].has), "row %zu: %s", i, got);
        const char *body = strstr(got, "\r\n\r\n");
        if (CHECK(body != NULL)) CHECK_STR(body + 4, framings[i].body);
        finish();
    }
}

static void test_heads_of_every_size(void) {
    static char value[40000];
    memset(value, 'v', sizeof(value));
    for (size_t len = 1; len < sizeof(value); len = len * 3 + 1) {
        rd_request *request = begin_held(GET("/"));
        rd_field field = {RD_SLICE("x-long"), rd_slice_of(value, len)};
        rd_response_head head = {.status = 200, .fields = &field, .count = 1, .length = 0};
        request->responder->start(request, &head);
        request->responder->finish(request);
        turns(2);
        hear(client);
        const char *at = strstr(got, "\r\nx-long: ");
        CHECK(at != NULL && strspn(at + 10, "v") == len && ends(got, "GMT\r\n\r\n"));
        finish();
    }
}

static void test_informing(void) {
    rd_field field = {RD_SLICE("link"), RD_SLICE("</a.css>")};
    rd_response_head hints = {.status = 103, .fields = &field, .count = 1, .length = -1};
    rd_request *request = begin_held(GET("/"));
    CHECK_INT(request->responder->inform(request, &hints), 0);
    CHECK_INT(request->responder->flush(request), 0);
    hear(client);
    CHECK_STR(got, "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n");
    answer_path(request);
    finish();
    request = begin_held("GET / HTTP/1.0\r\n\r\n"); /* RFC 9110 section 15.2: not to 1.0 */
    CHECK_INT(request->responder->inform(request, &hints), 0);
    request->responder->flush(request);
    CHECK(!hear(client) && got_len == 0);
    answer_path(request);
    finish();
}

/* ---- bodies ---- */

static int null_file(void) {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* However a body ends, borrowed bytes are given back and owned descriptors are closed. */
static void test_bodies_that_are_not_sent(void) {
    static const int statuses[] = {204, 304, 200};
    for (size_t i = 0; i < 3; i++) {
        rd_request *request = begin_held(GET("/"));
        rd_release release = {count_release};
        rd_file *file = rd_file_new(&server->loop, null_file(), 0);
        released = 0;
        start_answer(request, statuses[i], statuses[i] == 200 ? 0 : -1);
        CHECK_INT(request->responder->borrow(request, "body", 4, &release), 0);
        CHECK_INT(request->responder->send_file(request, file, 0, 4), 0);
        CHECK_INT(released, 1);
        CHECK_INT(file->refs, 1);
        rd_file_unref(file);
        CHECK_INT(request->bytes_out, 0);
        request->responder->finish(request);
        finish();
    }
}

static void test_everything_after_the_client_left(void) {
    rd_request *request = begin_held(GET("/"));
    const rd_responder *to = request->responder;
    rd_response_head head = {.status = 200, .length = 4};
    rd_release release = {count_release};
    rd_buffer rest = {0};
    rd_file *file = rd_file_new(&server->loop, null_file(), 0);
    released = 0;
    close(client);
    turns(2);
    CHECK(request->gone);
    CHECK_INT(to->inform(request, &head), RD_ERR_CLOSED);
    CHECK_INT(to->start(request, &head), RD_ERR_CLOSED);
    CHECK_INT(to->write(request, "body", 4), RD_ERR_CLOSED);
    CHECK_INT(to->borrow(request, "body", 4, &release), RD_ERR_CLOSED);
    CHECK_INT(to->send_file(request, file, 0, 4), RD_ERR_CLOSED);
    CHECK_INT(file->refs, 1);
    rd_file_unref(file);
    CHECK_INT(to->flush(request), RD_ERR_CLOSED);
    CHECK_INT(to->want_body(request), RD_ERR_CLOSED);
    CHECK_INT(to->detach(request, &rest), RD_ERR_CLOSED);
    CHECK_INT(to->finish(request), RD_ERR_CLOSED);
    to->abort(request);
    CHECK_INT(released, 1);
    client = -1;
    finish();
}

static const struct {
    int64_t length;
    const char *written, *ending; /* NULL: no head either */
} aborts[] = {
    {10, "short", "\r\n\r\nshort"},
    {-1, "part", "\r\n\r\n4\r\npart\r\n"}, /* without the last chunk */
    {0, NULL, NULL},
};

static void test_aborts(void) {
    for (size_t i = 0; i < sizeof(aborts) / sizeof(aborts[0]); i++) {
        rd_request *request = begin_held(GET("/a") GET("/never"));
        if (aborts[i].written != NULL) {
            start_answer(request, 200, aborts[i].length);
            request->responder->write(request, aborts[i].written, strlen(aborts[i].written));
        }
        request->responder->abort(request);
        CHECK(request->conn == NULL && !request->gone);
        let_go();
        turns(2);
        CHECK(hear(client));
        if (aborts[i].ending != NULL) CHECK_SAYS(ends(got, aborts[i].ending), "%s", got);
        if (aborts[i].ending == NULL) CHECK_INT(got_len, 0);
        CHECK(held == NULL); /* nothing after it is answered */
        finish();
    }
}

/* Reads to the end: 0 for a regular end, or the negative errno. */
static int hear_the_end(int fd) {
    ssize_t part = 1;
    while (part > 0) part = recv(fd, got, sizeof(got), 0);
    return part < 0 ? -errno : 0;
}

/* If only the end of the connection ends the body, a regular end would mean that it is complete. */
static void test_an_abort_of_a_body_that_ends_with_the_connection(void) {
    start_listening(hold);
    int fd = dial();
    say(fd, "GET / HTTP/1.0\r\n\r\n");
    turns(5);
    start_answer(held, 200, -1);
    held->responder->write(held, "part", 4);
    held->responder->flush(held);
    held->responder->abort(held);
    CHECK(held->conn == NULL && !held->gone);
    let_go();
    turns(2);
    CHECK_INT(hear_the_end(fd), -ECONNRESET);
    close(fd);
    end();
}

/* ---- the request's body ---- */

#define EXPECTING "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"

static void check_body(const rd_request *request, const char *expected) {
    char bytes[16];
    ssize_t len = rd_body_read(&request->body, 0, bytes, sizeof(bytes));
    CHECK(request->body_complete);
    CHECK_BYTES(bytes, (size_t)len, expected);
}

static void test_asking_for_the_body(void) {
    rd_request *request = begin_held(EXPECTING);
    await(request);
    CHECK_INT(request->responder->want_body(request), 0);
    CHECK_INT(request->responder->want_body(request), 0); /* said once */
    turn();
    CHECK(!hear(client));
    CHECK_STR(got, "HTTP/1.1 100 Continue\r\n\r\n");
    ask(client, "12");
    CHECK(woken() == NULL);
    ask(client, "345");
    CHECK(woken() == request && rd_list_is_empty(&request->waiters));
    check_body(request, "12345");
    answer_path(request);
    turns(2);
    CHECK(!hear(client) && strstr(got, "connection:") == NULL); /* the call continues */
    finish();
}

static void test_a_client_that_does_not_wait_is_not_asked(void) {
    rd_request *request = begin_held(EXPECTING);
    ask(client, "12");
    CHECK_INT(request->responder->want_body(request), 0);
    ask(client, "345");
    CHECK_INT(got_len, 0);
    check_body(request, "12345");
    answer_path(request);
    finish();
}

static void test_an_answer_without_the_body_is_the_last(void) {
    rd_request *request = begin_held(EXPECTING);
    answer_path(request);
    turns(2);
    CHECK(hear(client));
    CHECK(strstr(got, "connection: close\r\n") != NULL && ends(got, "\r\n\r\n/"));
    finish();
}

/* A 100 must not be sent in the middle of an answer. After that the client decides by itself
 * whether it sends its body, until the deadline. */
static void test_asking_after_the_answer_began(void) {
    for (int sends = 0; sends < 2; sends++) {
        rd_request *request = begin_held(EXPECTING);
        await(request);
        start_answer(request, 200, 4);
        request->responder->write(request, "bo", 2);
        CHECK_INT(request->responder->want_body(request), 0);
        if (sends) ask(client, "12345");
        if (!sends) later((uint64_t)settings.body_timeout_ms);
        CHECK(woken() == request);
        CHECK_INT(request->body_complete, sends);
        CHECK_INT(request->body_error, sends ? 0 : RD_ERR_BODY_TIMEOUT);
        if (sends) CHECK(ends(got, "\r\n\r\nbo"));
        request->responder->write(request, "dy", 2);
        request->responder->finish(request);
        turns(2);
        CHECK(hear(client));
        CHECK_SAYS(strstr(got, "100 Continue") == NULL && ends(got, "dy"), "%s", got);
        finish();
    }
}

/* ---- giving up ---- */

static void give_up_request(rd_request *request) {
    rd_request_ref(request);
    await(request);
    rd_calls_give_up(server, request);
    CHECK(woken() == request);
}

static void test_giving_up_a_body(void) {
    rd_request *request = begin_held(EXPECTING);
    request->responder->want_body(request);
    turn();
    CHECK(!hear(client));
    give_up_request(request);
    CHECK(!request->gone && !request->body_complete);
    CHECK_INT(request->body_error, RD_ERR_GIVEN_UP);
    CHECK_INT(rd_error_status(request->body_error), 408);
    CHECK_INT(server->http.early_calls, 0);
    CHECK_INT(server->counts.given_up, 1);
    answer_path(request);
    rd_request_unref(request);
    turns(2);
    CHECK(hear(client) && strstr(got, "connection: close\r\n") != NULL);
    finish();
}

/* Neither a 408 nor the rest of the answer can follow the part that was sent. */
static void test_giving_up_when_the_answer_has_begun(void) {
    static const char *const sent[] = {EXPECTING, GET("/")};
    for (size_t i = 0; i < 2; i++) {
        rd_request *request = begin_held(sent[i]);
        start_answer(request, 200, sizeof(zeros));
        request->responder->write(request, zeros, sizeof(zeros));
        turn();
        give_up_request(request);
        CHECK(request->gone && request->conn == NULL);
        CHECK_INT(server->conns.count, 0);
        CHECK_INT(server->http.early_calls, 0);
        rd_calls_give_up(server, request); /* the second call has no effect */
        CHECK_INT(server->counts.given_up, 1);
        rd_request_unref(request);
        finish();
    }
}

/* The log reports one such case a second. */
static void test_who_is_given_up_is_logged_now_and_then(void) {
    static const struct {
        uint64_t pause_ms;
        uint32_t lines;
    } rows[] = {{0, 1}, {999, 1}, {1, 2}, {5000, 3}};
    begin(hold);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int fd = join();
        ask(fd, EXPECTING);
        later(rows[i].pause_ms);
        rd_calls_give_up(server, held);
        CHECK_INT(server->incidents.count, rows[i].lines);
        CHECK_INT(server->incidents.kept[rows[i].lines - 1].code, RD_ERR_GIVEN_UP);
        let_go();
        close(fd);
        turns(2);
    }
    CHECK_INT(server->counts.given_up, 4);
    finish();
}

static void test_silence(void) {
    rd_request *request = begin_held(EXPECTING);
    request->responder->want_body(request);
    later(1000);
    CHECK(rd_calls_is_silent(server, request, 1000));
    CHECK(!rd_calls_is_silent(server, request, 1001));
    ask(client, "1");
    CHECK(!rd_calls_is_silent(server, request, 1));
    start_answer(request, 200, sizeof(zeros));
    request->responder->write(request, zeros, sizeof(zeros));
    turn();
    later(500);
    CHECK(rd_calls_is_silent(server, request, 500));
    const size_t before = joined->out.bytes;
    for (int i = 0; i < 100 && joined->out.bytes == before; i++) {
        hear(client);
        turn();
    }
    CHECK(!rd_calls_is_silent(server, request, 1));
    finish();
}

/* Nothing is expected of the client, so its short deadline does not matter. */
static void test_silence_without_a_deadline(void) {
    settings.body_timeout_ms = 500;
    rd_request *request = begin_held(EXPECTING);
    later(5000);
    CHECK(!rd_calls_is_silent(server, request, 1000));
    finish();
}

/* ---- back-pressure ---- */

static void test_watermarks(void) {
    rd_request *request = begin_held(GET("/"));
    uint64_t low = (uint64_t)settings.output_low_bytes;
    unsigned wakeups = 0;
    start_answer(request, 200, sizeof(zeros));
    await(request);
    request->responder->write(request, zeros, sizeof(zeros));
    CHECK(joined->above_high);
    CHECK(joined->out.bytes > sizeof(zeros));
    for (int i = 0; i < 1000 && joined->out.bytes > 0; i++) {
        turn();
        wakeups += woken() == request;
        CHECK_INT(wakeups, joined->out.bytes <= low);
        hear(client);
    }
    CHECK_INT(wakeups, 1);
    CHECK(!joined->above_high);
    request->responder->finish(request);
    finish();
}

/* Another thread of the application waits; the end of the answer ends its wait. */
static void test_who_waits_hears_of_the_end(void) {
    rd_request *request = begin_held(GET("/"));
    start_answer(request, 200, sizeof(zeros));
    request->responder->write(request, zeros, sizeof(zeros));
    rd_request_ref(request);
    await(request);
    request->responder->finish(request);
    CHECK(woken() == request && request->conn == NULL && rd_list_is_empty(&request->waiters));
    rd_request_unref(request);
    finish();
}

static void test_a_client_that_does_not_read(void) {
    rd_request *request = begin_held(GET("/"));
    start_answer(request, 200, 2 * (int64_t)sizeof(zeros));
    await(request);
    request->responder->write(request, zeros, sizeof(zeros));
    turn();
    later((uint64_t)settings.write_timeout_ms - 1);
    CHECK(!request->gone);
    later(1);
    CHECK(request->gone && request->conn == NULL);
    CHECK_INT(server->conns.write_timeouts, 1);
    CHECK(woken() == request);
    CHECK_INT(request->responder->write(request, "x", 1), RD_ERR_CLOSED);
    finish();
}

/* With a regular end the kernel would offer the rest to the client for minutes. A body that ends
 * with the connection would look complete. */
static void test_the_end_of_a_client_that_does_not_read(void) {
    start_listening(hold);
    int fd = dial();
    say(fd, "GET / HTTP/1.0\r\n\r\n");
    turns(5);
    start_answer(held, 200, -1);
    for (int i = 0; i < 20; i++) held->responder->write(held, zeros, sizeof(zeros));
    turns(100);
    CHECK(held->conn->out.bytes > 0);
    later((uint64_t)settings.write_timeout_ms / 4); /* bytes in flight have arrived by then */
    later((uint64_t)settings.write_timeout_ms);
    CHECK(held->gone);
    CHECK_INT(hear_the_end(fd), -ECONNRESET);
    close(fd);
    end();
}

/* The answer is finished, but the client does not read it: only the deadline waits for it. */
static void test_a_client_that_never_takes_its_answer(void) {
    rd_request *request = begin_held(GET("/"));
    answer_with(request, zeros, sizeof(zeros));
    let_go();
    turns(2);
    CHECK_INT(server->conns.count, 1);
    later((uint64_t)settings.write_timeout_ms);
    CHECK_INT(server->conns.count, 0);
    CHECK_INT(server->conns.write_timeouts, 1);
    finish();
}

/* ---- taking the connection away ---- */

static void test_detaching(void) {
    rd_request *request = begin_held(GET("/") "read ahead");
    rd_buffer rest = {0};
    int fd = request->responder->detach(request, &rest);
    CHECK(fd >= 0 && request->detached && !request->gone && request->conn == NULL);
    CHECK_BYTES(rd_buffer_ptr(&rest), rd_buffer_len(&rest), "read ahead");
    CHECK_INT(server->conns.count, 0);
    say(client, "for the new owner");
    later(86400000); /* no deadline of the server applies to it */
    CHECK_INT(recv(fd, got, sizeof(got), 0), 17);
    CHECK_INT(send(fd, "raw", 3, 0), 3);
    hear(client);
    CHECK_STR(got, "raw");
    CHECK_INT(request->responder->finish(request), RD_ERR_CLOSED);
    CHECK_INT(request->responder->detach(request, &rest), RD_ERR_CLOSED);
    rd_buffer_clear(&rest);
    close(fd);
    finish();
}

static void test_detaching_with_a_body_on_its_way(void) {
    rd_request *request = begin_held(EXPECTING);
    rd_buffer rest = {0};
    await(request);
    int fd = request->responder->detach(request, &rest);
    CHECK_INT(request->body_error, RD_ERR_BODY_CUT);
    CHECK(woken() == request);
    CHECK_INT(rd_buffer_len(&rest), 0);
    close(fd);
    turns(2);
    CHECK(hear(client) && got_len == 0);
    finish();
}

static void test_all(void) {
    test_framing();
    test_heads_of_every_size();
    test_informing();
    test_bodies_that_are_not_sent();
    test_everything_after_the_client_left();
    test_aborts();
    test_an_abort_of_a_body_that_ends_with_the_connection();
    test_asking_for_the_body();
    test_a_client_that_does_not_wait_is_not_asked();
    test_an_answer_without_the_body_is_the_last();
    test_asking_after_the_answer_began();
    test_giving_up_a_body();
    test_giving_up_when_the_answer_has_begun();
    test_who_is_given_up_is_logged_now_and_then();
    test_silence();
    test_silence_without_a_deadline();
    test_watermarks();
    test_who_waits_hears_of_the_end();
    test_a_client_that_does_not_read();
    test_the_end_of_a_client_that_does_not_read();
    test_a_client_that_never_takes_its_answer();
    test_detaching();
    test_detaching_with_a_body_on_its_way();
}

int main(void) {
    return test_both_pollers(test_all);
}
