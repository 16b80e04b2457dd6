/* SPDX-License-Identifier: MIT
 *
 * endpoint/sse: a stream of events from its request to its end: the answer, silence, limits, what a
 * client may still send, and what the application is told.
 */
#include "serving.h"

#include <stdlib.h>

#include "endpoint/sse.h"

#define ASK(more) "GET /news HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n" more "\r\n"

static int client;
static rd_endpoint *endpoint;  /* the application's reference */
static const rd_field *fields; /* of the application */
static size_t field_count;
static char told[64]; /* a letter for each event that the application got */

static void upgrade(rd_request *request) {
    CHECK(rd_sse_is_asked(request));
    endpoint = rd_sse_upgrade(request, fields, field_count);
    if (CHECK(endpoint != NULL)) endpoint->wants_drained = true;
}

/* Does what the application would do with its events: nothing, except a last message at shutdown.
 */
static void tell(void) {
    static const char letters[] = {[RD_ENDPOINT_OPEN] = 'o',
                                   [RD_ENDPOINT_MESSAGE] = 'm',
                                   [RD_ENDPOINT_DRAINED] = 'd',
                                   [RD_ENDPOINT_SHUTDOWN] = 's',
                                   [RD_ENDPOINT_CLOSE] = 'c'};
    rd_event event = {.source = NULL};
    rd_loop_lock(&server->loop);
    while (rd_server_next_event(server, &event, true)) {
        const size_t len = strlen(told);
        if (len < sizeof(told) - 1) told[len] = letters[event.kind];
        if (event.kind == RD_ENDPOINT_SHUTDOWN)
            rd_endpoint_ops_of(endpoint)->write(endpoint, "bye", 3, true);
    }
    rd_loop_unlock(&server->loop);
}

static void work(void) {
    for (int i = 0; i < 3; i++) {
        turn();
        tell();
    }
}

static void begin(const char *request) {
    memset(told, 0, sizeof(told));
    start(upgrade);
    client = join();
    say(client, request);
    work();
}

static void leave(void) {
    close(client);
    client = -1;
    work();
}

static void finish(void) {
    if (client >= 0) leave();
    if (endpoint != NULL) {
        rd_loop_lock(&server->loop);
        rd_endpoint_unref(endpoint);
        rd_loop_unlock(&server->loop);
    }
    endpoint = NULL;
    end();
}

/* Opens a stream and discards its head. */
static void begin_stream(void) {
    begin(ASK());
    CHECK(!hear(client));
    CHECK_STR(told, "o");
}

static void write_text(const char *text, size_t len) {
    rd_loop_lock(&server->loop);
    rd_endpoint_ops_of(endpoint)->write(endpoint, text, len, true);
    rd_loop_unlock(&server->loop);
    work();
}

/* ---- the answer ---- */

static void test_answer(void) {
    static const rd_field many[] = {
        {RD_SLICE_INIT("set-cookie"), RD_SLICE_INIT("a=b")},
        {RD_SLICE_INIT("Cache-Control"), RD_SLICE_INIT("no-store")},
        {RD_SLICE_INIT("Content-Type"), RD_SLICE_INIT("text/html")},
        {RD_SLICE_INIT("content-encoding"), RD_SLICE_INIT("gzip")},
        {RD_SLICE_INIT("content-length"), RD_SLICE_INIT("5")},
        {RD_SLICE_INIT("transfer-encoding"), RD_SLICE_INIT("chunked")},
        {RD_SLICE_INIT("connection"), RD_SLICE_INIT("keep-alive")},
        {RD_SLICE_INIT("date"), RD_SLICE_INIT("today")},
    };
    fields = many;
    field_count = sizeof(many) / sizeof(many[0]);
    begin(ASK());
    CHECK(!hear(client));
    CHECK_STR(got,
              "HTTP/1.1 200 OK\r\nset-cookie: a=b\r\nCache-Control: no-store\r\ndate: today\r\n"
              "content-type: text/event-stream\r\nx-accel-buffering: no\r\n"
              "connection: close\r\n\r\n");
    fields = NULL;
    field_count = 0;
    finish();
}

static void test_answer_to_http_1_0(void) {
    begin("GET / HTTP/1.0\r\nConnection: keep-alive\r\nAccept: text/event-stream\r\n\r\n");
    CHECK(!hear(client));
    CHECK(strstr(got, "\r\ncache-control: no-cache\r\n") &&
          strstr(got, "\r\nconnection: close\r\n"));
    write_text("x", 1);
    CHECK(!hear(client));
    CHECK_STR(got, "data: x\n\n");
    finish();
}

static void check_not_asked(rd_request *request) {
    CHECK(!rd_sse_is_asked(request));
    answer_with(request, "plain", 5);
}

static void test_not_asked(void) {
    static const char *requests[] = {
        "HEAD / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nContent-Length: 0\r\n\r\n",
        ASK("Content-Length: 1\r\nExpect: 100-continue\r\n"),
        ASK("Transfer-Encoding: chunked\r\n") "0\r\n\r\n",
        GET("/"),
    };
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        start(check_not_asked);
        client = join();
        ask(client, requests[i]);
        CHECK(begins(got, "HTTP/1.1 200 "));
        finish();
    }
    begin(ASK("Content-Length: 0\r\n"));
    CHECK(endpoint != NULL);
    finish();
}

static void test_client_that_left(void) {
    rd_request *request;
    start(hold);
    client = join();
    CHECK(!ask(client, ASK()));
    request = held;
    rd_loop_lock(&server->loop);
    rd_conn_close(request->conn);
    CHECK(rd_sse_upgrade(request, NULL, 0) == NULL);
    rd_loop_unlock(&server->loop);
    finish();
}

/* ---- events ---- */

static void test_events(void) {
    const rd_named_event event = {
        .type = RD_SLICE("tick"), .id = RD_SLICE("1"), .retry_ms = 5, .data = RD_SLICE("a\r\nb")};
    begin_stream();
    write_text("", 0);
    CHECK(!hear(client));
    CHECK_STR(got, "data: \n\n");
    CHECK_STR(told, "od");
    rd_loop_lock(&server->loop);
    rd_endpoint_ops_of(endpoint)->event(endpoint, &event);
    rd_endpoint_ops_of(endpoint)->write(endpoint, "c", 1, false);
    rd_loop_unlock(&server->loop);
    writes = 0;
    work();
    CHECK(!hear(client));
    CHECK_STR(got, "id: 1\nevent: tick\nretry: 5\ndata: a\ndata: b\n\ndata: c\n\n");
    CHECK_INT(writes, 1);
    CHECK_STR(told, "odd");
    finish();
    CHECK_STR(told, "oddc");
}

static void publish(uint64_t id, rd_slice payload, rd_receive_as as) {
    rd_message *message = rd_message_new(RD_SLICE("news"), payload, false, id);
    rd_loop_lock(&server->loop);
    rd_endpoint_deliver(endpoint, message, as, 0);
    rd_message_unref(message);
    rd_loop_unlock(&server->loop);
}

static void test_published(void) {
    settings.ping_interval_ms = 1000;
    begin_stream();
    later(999);
    publish(7, RD_SLICE("a\nb"), RD_AS_SENT);
    publish(8, RD_SLICE("\xff"), RD_AS_BINARY);
    publish(0, RD_SLICE(""), RD_AS_TEXT);
    work();
    CHECK(!hear(client));
    CHECK_STR(got, "id: 7\ndata: a\ndata: b\n\ndata: \n\n");
    CHECK_STR(told, "od");
    later(999);
    CHECK(!hear(client) && got_len == 0);
    finish();
}

static void test_too_much_published(void) {
    static char text[60000];
    settings.max_pending_bytes = 65536;
    memset(text, 'x', sizeof(text));
    begin_stream();
    for (int i = 0; i < 100 && endpoint->conn != NULL; i++) {
        publish(1, rd_slice_of(text, sizeof(text)), RD_AS_TEXT);
        work();
    }
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, 1013);
    finish();
}

static void test_silence(void) {
    settings.ping_interval_ms = 1000;
    begin_stream();
    later(999);
    CHECK(!hear(client) && got_len == 0);
    write_text("x", 1);
    later(999);
    CHECK(!hear(client));
    CHECK_STR(got, "data: x\n\n");
    later(2);
    CHECK(!hear(client));
    CHECK_STR(got, ":\n\n");
    later(1000);
    CHECK(!hear(client));
    CHECK_STR(got, ":\n\n");
    tell();
    CHECK_STR(told, "od");
    finish();
}

static void test_no_silence_is_ended(void) {
    settings.ping_interval_ms = 0;
    begin_stream();
    later(86400000);
    CHECK(!hear(client) && got_len == 0);
    finish();
}

/* ---- limits ---- */

static void test_slow_reader(void) {
    static char text[10000];
    settings.max_pending_bytes = 65536;
    memset(text, 'x', sizeof(text));
    begin_stream();
    for (int i = 0; i < 1000 && endpoint->conn != NULL; i++) {
        write_text(text, sizeof(text));
        CHECK(endpoint->conn == NULL || endpoint->conn->out.bytes <= 65536 + 10010);
    }
    CHECK(endpoint->conn == NULL && endpoint->is_closing);
    CHECK_INT(endpoint->close_code, 1013);
    CHECK(ends(told, "c"));
    finish();
}

static void test_stalled_reader_is_not_pinged_for_ever(void) {
    static char text[60000];
    settings.ping_interval_ms = 1000;
    settings.write_timeout_ms = 5500;
    memset(text, 'x', sizeof(text));
    begin_stream();
    while (endpoint->conn != NULL && endpoint->conn->out.bytes == 0) write_text(text, sizeof(text));
    const size_t queued = endpoint->conn->out.bytes;
    later(3000);
    CHECK_INT(endpoint->conn->out.bytes, queued);
    later(3000);
    tell();
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, RD_ENDPOINT_ABNORMAL);
    finish();
}

/* Seven bytes for each: one write may go above the limit, the next one may not. */
static void test_empty_lines(void) {
    static char lines[60000];
    settings.max_pending_bytes = 65536;
    memset(lines, '\n', sizeof(lines));
    begin_stream();
    write_text(lines, sizeof(lines));
    CHECK(endpoint->conn != NULL);
    CHECK(endpoint->conn->out.bytes > 65536 && endpoint->conn->out.bytes < 7 * sizeof(lines));
    write_text(lines, 1);
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, 1013);
    finish();
}

static void test_what_the_client_still_sends(void) {
    static char more[4096];
    settings.max_pipeline_bytes = 8192;
    memset(more, 'x', sizeof(more) - 1);
    begin(ASK() GET("/next"));
    say(client, GET("/after"));
    work();
    CHECK(!hear(client));
    CHECK(strstr(got, "200 OK") && ends(got, "\r\n\r\n") && !strstr(got, "/next"));
    say(client, more);
    work();
    CHECK(endpoint->conn != NULL);
    say(client, more);
    work();
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, 1002);
    CHECK_STR(told, "oc");
    finish();
}

/* ---- ends ---- */

static void test_close(void) {
    begin_stream();
    write_text("last", 4);
    rd_loop_lock(&server->loop);
    rd_endpoint_ops_of(endpoint)->close(endpoint, 1000, RD_SLICE("enough"));
    rd_endpoint_ops_of(endpoint)->write(endpoint, "too late", 8, true);
    rd_loop_unlock(&server->loop);
    work();
    CHECK(hear(client));
    CHECK_STR(got, "data: last\n\n");
    CHECK_STR(told, "odc"); /* the end of the client is not waited for */
    CHECK(endpoint->conn == NULL);
    leave();
    CHECK_STR(told, "odc");
    CHECK_INT(endpoint->close_code, 1000);
    finish();
}

static void test_end_of_the_client(void) {
    begin_stream();
    rd_loop_lock(&server->loop);
    rd_endpoint_ops_of(endpoint)->write(endpoint, "x", 1, true);
    rd_loop_unlock(&server->loop);
    shutdown(client, SHUT_WR);
    work();
    CHECK(hear(client));
    CHECK_STR(got, "data: x\n\n");
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, RD_ENDPOINT_ABNORMAL);
    CHECK_STR(told, "odc");
    finish();
}

static void test_shutdown(void) {
    begin_stream();
    rd_server_stop(server, RD_STOP_DRAIN);
    work();
    CHECK(hear(client));
    CHECK_STR(got, "data: bye\n\n");
    CHECK(strchr(told, 's') != NULL);
    CHECK_INT(endpoint->close_code, 1001);
    finish();
    CHECK(ends(told, "c"));
}

/* The time that the client is told to come back after, or -1. */
static long told_retry(void) {
    const char *at = strstr(got, "retry: ");
    return at != NULL ? strtol(at + 7, NULL, 10) : -1;
}

/* Until its time has come, the stream goes on as if nothing had happened. */
static void test_shutdown_by_and_by(void) {
    settings.drain_spread_ms = 20000;
    begin_stream();
    rd_server_stop(server, RD_STOP_DRAIN);
    work();
    CHECK_STR(told, "o");
    CHECK(!rd_server_is_done(server));
    write_text("still here", 10);
    CHECK(!hear(client));
    CHECK_STR(got, "data: still here\n\n");
    for (int ms = 0; ms < 20000; ms++) {
        pass_ms(1);
        turn();
    }
    work();
    CHECK(hear(client));
    CHECK(told_retry() >= 1000 && told_retry() <= 21000);
    CHECK(ends(got, "\n\ndata: bye\n\n"));
    CHECK(strstr(told, "s") != NULL && strchr(told, 's') == strrchr(told, 's'));
    CHECK_INT(endpoint->close_code, 1012);
    finish();
    CHECK(ends(told, "c"));
}

/* At most three quarters of the time that there is. */
static void test_a_spread_is_shortened(void) {
    settings.drain_spread_ms = 600000;
    settings.drain_timeout_ms = 400;
    begin_stream();
    rd_server_stop(server, RD_STOP_DRAIN);
    work();
    for (int ms = 0; ms < 300; ms++) {
        pass_ms(1);
        turn();
    }
    work();
    CHECK(hear(client));
    CHECK(told_retry() >= 1000 && told_retry() <= 601000);
    finish();
}

/* The address is served again only when this server has ended. */
static void test_shutdown_in_one_go(void) {
    settings.drain_spread_ms = 20000;
    begin_stream();
    rd_loop_lock(&server->loop);
    rd_server_end_in_one_go(server);
    rd_loop_unlock(&server->loop);
    rd_server_stop(server, RD_STOP_DRAIN);
    work();
    CHECK(hear(client));
    CHECK(told_retry() >= 1000 && told_retry() <= 21000);
    CHECK_INT(endpoint->close_code, 1012);
    finish();
}

static void test_a_second_stop_waits_for_nobody(void) {
    settings.drain_spread_ms = 20000;
    begin_stream();
    rd_server_stop(server, RD_STOP_DRAIN);
    work();
    CHECK(!hear(client));
    rd_server_stop(server, RD_STOP_NOW);
    work();
    CHECK(hear(client));
    CHECK_INT(told_retry(), -1);
    CHECK(rd_server_is_done(server));
    finish();
}

/* Nothing is queued for one that reads nothing, and the end of the stop does not wait for it. */
static void test_a_stalled_reader_at_a_shutdown(void) {
    static char text[65536];
    memset(text, 'x', sizeof(text));
    settings.drain_spread_ms = 100;
    settings.drain_timeout_ms = 1000;
    begin_stream();
    while (endpoint->conn != NULL &&
           endpoint->conn->out.memory <= (size_t)settings.max_pending_bytes) {
        rd_loop_lock(&server->loop);
        rd_endpoint_ops_of(endpoint)->write(endpoint, text, sizeof(text), true);
        rd_loop_unlock(&server->loop);
    }
    CHECK(endpoint->conn != NULL);
    const size_t queued = endpoint->conn->out.bytes;
    rd_server_stop(server, RD_STOP_DRAIN);
    work();
    for (int ms = 0; ms < 100; ms++) {
        pass_ms(1);
        turn();
    }
    rd_loop_lock(&server->loop);
    CHECK(endpoint->conn == NULL || endpoint->conn->out.bytes <= queued);
    rd_loop_unlock(&server->loop);
    work();
    CHECK(!rd_server_is_done(server));
    later(900);
    work();
    CHECK(rd_server_is_done(server));
    finish();
}

int main(void) {
    rd_settings_init(&settings);
    test_answer();
    test_answer_to_http_1_0();
    test_not_asked();
    test_client_that_left();
    test_events();
    test_published();
    test_too_much_published();
    test_silence();
    test_no_silence_is_ended();
    test_slow_reader();
    test_stalled_reader_is_not_pinged_for_ever();
    test_empty_lines();
    test_what_the_client_still_sends();
    test_close();
    test_end_of_the_client();
    test_shutdown();
    test_shutdown_by_and_by();
    test_a_spread_is_shortened();
    test_shutdown_in_one_go();
    test_a_second_stop_waits_for_nobody();
    test_a_stalled_reader_at_a_shutdown();
    return check_summary();
}
