/* SPDX-License-Identifier: MIT
 *
 * Hand-over and departure (handover.c, departure.c) of connections with a transport that has a
 * handshake and records, in both forms of xor_transport.h. One that cannot move is served to its
 * end by the worker that has it, and its descriptor never leaves. One that can move leaves between
 * two records, and the other worker goes on in records. Neither is ever read or answered in clear.
 */
#include "siblings_pair.h"
#include "xor_transport.h"

#define URL "http://127.0.0.1:80"

static void begin(const rd_transport *transport) {
    start();
    for (int i = 0; i < SERVERS; i++) {
        rd_listener listener = {.transport = transport};
        snprintf(listener.url, sizeof(listener.url), "%s", URL);
        rd_listener_names_add(&servers[i]->accepting.names, &listener);
    }
    dialed = transport;
    dialed_name = RD_SLICE(URL);
}

static void finish(void) {
    dialed = &rd_transport_tcp;
    dialed_name = RD_SLICE("");
    end();
}

static void serve_all(void) {
    for (int i = 0; i < 4; i++) {
        serve(servers[A]);
        serve(servers[B]);
    }
}

/* The record of this text; returns its length. */
static size_t make_record(char *record, const char *text) {
    const size_t len = strlen(text);
    record[0] = (char)(len >> 8);
    record[1] = (char)(len & 0xff);
    for (size_t i = 0; i < len; i++) record[2 + i] = (char)(text[i] ^ XOR_BYTE);
    return 2 + len;
}

static void say_record(int fd, const char *text) {
    char record[1024];
    const size_t len = make_record(record, text);
    CHECK_INT(send(fd, record, len, MSG_NOSIGNAL), len);
}

/* The body of the answer that came in records; "": none came, or it came in clear. */
static const char *hear_records(int fd) {
    static char text[4096];
    unsigned char bytes[4096];
    size_t used = 0;
    const ssize_t len = recv(fd, bytes, sizeof(bytes), 0);
    for (ssize_t at = 0; at + 2 <= len;) {
        const ssize_t record = bytes[at] << 8 | bytes[at + 1];
        at += 2;
        if (record == 0 || at + record > len) break;
        for (ssize_t i = 0; i < record; i++) text[used++] = (char)(bytes[at + i] ^ XOR_BYTE);
        at += record;
    }
    text[used] = '\0';
    const char *body = strstr(text, "\r\n\r\n");
    return body == NULL ? "" : body + 4;
}

/* A client of A, past its handshake, that stays there. */
static int dial_shaken(void) {
    board.rows[B].connections = 100;
    const int fd = dial();
    say(fd, "XOR?1XOR?2");
    CHECK_INT(send(fd, "\x01", 2, MSG_NOSIGNAL), 2); /* a list with one empty name */
    serve(servers[A]);
    serve(servers[A]);
    CHECK(recv(fd, got, sizeof(got), 0) >= 11);
    CHECK(memcmp(got, "XOR!1XOR!2", 10) == 0);
    say_record(fd, GET("/first"));
    serve(servers[A]);
    serve(servers[A]);
    CHECK_STR(hear_records(fd), "A /first 0");
    board.rows[B].connections = 0;
    return fd;
}

static void stop_a(void) {
    rd_server_stop(servers[A], RD_STOP_DRAIN);
    serve_all();
}

static void check_only_at(int place) {
    CHECK_INT(servers[place]->conns.count, 1);
    CHECK_INT(servers[place == A ? B : A]->conns.count, 0);
    CHECK_INT(servers[A]->counts.handed_out, place == B);
    CHECK_INT(servers[B]->counts.handed_in, place == B);
}

static const struct form {
    const rd_transport *transport;
    int place; /* for a connection that A wants to give to B */
    const char *answer;
} forms[] = {
    {&rd_transport_xor, A, "A"},
    {&rd_transport_xor_moving, B, "B"},
};

static void check_answer(const struct form *form, int fd, const char *rest) {
    char expected[64];
    snprintf(expected, sizeof(expected), "%s%s", form->answer, rest);
    CHECK_STR(hear_records(fd), expected);
}

/* Half of a request in a whole record: the layer holds nothing, and HTTP packs the half request. */
static void test_between_requests(const struct form *form) {
    begin(form->transport);
    const int fd = dial_shaken();
    say_record(fd, "GET /half HT");
    serve(servers[A]);
    stop_a();
    check_only_at(form->place);
    say_record(fd, "TP/1.1\r\nHost: a\r\n\r\n");
    serve_all();
    check_answer(form, fd, " /half 0");
    if (form->place == B) {
        say_record(fd, GET("/next"));
        serve_all();
        check_answer(form, fd, " /next 0");
    }
    finish();
}

/* A whole request that waits for A's application, which is busy. */
static void test_a_request_that_waits(const struct form *form) {
    begin(form->transport);
    const int fd = dial_shaken();
    say_record(fd, GET("/waits"));
    board.rows[A].busy = 1;
    for (int i = 0; i < 3; i++) stand_in(servers[A]);
    serve(servers[B]);
    check_only_at(form->place);
    board.rows[A].busy = 0;
    serve_all();
    check_answer(form, fd, " /waits 0");
    finish();
}

/* The layer has read a part of a record, and only this process has that part. The connection stays
 * until the record is complete. */
static void test_half_a_record(const struct form *form) {
    char record[256];
    const size_t len = make_record(record, GET("/whole"));
    for (size_t cut = 1; cut < len; cut += 7) {
        begin(form->transport);
        const int fd = dial_shaken();
        CHECK_INT(send(fd, record, cut, MSG_NOSIGNAL), cut);
        serve(servers[A]);
        stop_a();
        check_only_at(A);
        CHECK_INT(send(fd, &record[cut], len - cut, MSG_NOSIGNAL), len - cut);
        serve_all();
        CHECK_STR(hear_records(fd), "A /whole 0");
        if (form->place == B) {
            check_only_at(B); /* it moves after its answer was sent */
            say_record(fd, GET("/next"));
            serve_all();
            CHECK_STR(hear_records(fd), "B /next 0");
        }
        finish();
    }
}

/* During the handshake the layer has state. */
static void test_in_its_handshake(const struct form *form) {
    begin(form->transport);
    board.rows[B].connections = 100;
    const int fd = dial();
    say(fd, "XOR?1");
    serve(servers[A]);
    board.rows[B].connections = 0;
    stop_a();
    check_only_at(A);
    say(fd, "XOR?2");
    CHECK_INT(send(fd, "\x01", 2, MSG_NOSIGNAL), 2);
    say_record(fd, GET("/late"));
    serve_all();
    CHECK_INT(recv(fd, got, 11, 0), 11);
    CHECK_STR(hear_records(fd), "A /late 0");
    finish();
}

/* Nothing of the connection was read: the other worker begins with the handshake. */
static void test_just_accepted(const struct form *form) {
    begin(form->transport);
    dial_shaken();
    servers[A]->conns.count += 2; /* so that the next one goes to B */
    const int fd = dial();
    servers[A]->conns.count -= 2;
    CHECK_INT(servers[A]->counts.handed_out, 1);
    say(fd, GET("/clear"));
    serve_all();
    CHECK_INT(recv(fd, got, sizeof(got), 0), 5);
    CHECK(memcmp(got, "XOR!0", 5) == 0);
    finish();
}

int main(void) {
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        test_between_requests(&forms[i]);
        test_a_request_that_waits(&forms[i]);
        test_half_a_record(&forms[i]);
        test_in_its_handshake(&forms[i]);
        test_just_accepted(&forms[i]);
    }
    return check_summary();
}
