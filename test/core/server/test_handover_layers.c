/* SPDX-License-Identifier: MIT
 *
 * Hand-over and departure (handover.c, departure.c) of connections with a transport that has a
 * handshake and records, in both forms of xor_transport.h. One that cannot move is served to its
 * end by the worker that has it, and its descriptor never leaves. One that can move leaves between
 * two records, and the other worker goes on in records. Neither is ever read or answered in clear.
 */
#include "xor_pair.h"

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

/* A whole request that waits for A's application, which is busy. B answers it in any case; see
 * test_forward.c. */
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
    CHECK_STR(hear_records(fd), "B /waits 0");
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

static uint32_t a_has; /* that A has before */

/* Where a new connection of A goes while the rows say this. */
static int place_of_new(const rd_transport *transport, bool a_is_stuck, uint64_t b_has,
                        bool b_is_stuck) {
    begin(transport);
    board.rows[B].connections = b_has;
    if (a_is_stuck) {
        board.rows[A].busy = 1;
        for (int i = 0; i < 3; i++) stand_in(servers[A]);
    }
    if (b_is_stuck) board.rows[B].stuck_ms = servers[A]->loop.now_ms;
    board.rows[B].standing_in = b_is_stuck;
    servers[A]->conns.count += a_has;
    dial();
    servers[A]->conns.count -= a_has;
    const int place = servers[A]->counts.handed_out == 1 ? B : A;
    servers[A]->lead.watch_owns = false;
    board.rows[A].busy = 0;
    serve_all();
    finish();
    return place;
}

/* A stuck worker accepts nothing that could not leave it any more, and gets none. */
static void test_balance(void) {
    CHECK_INT(place_of_new(&rd_transport_xor, false, 3, false), A);
    CHECK_INT(place_of_new(&rd_transport_xor, true, 3, false), B);
    CHECK_INT(place_of_new(&rd_transport_xor, true, 3, true), A); /* nobody is free */
    a_has = 5;
    CHECK_INT(place_of_new(&rd_transport_xor, false, 3, false), B);
    CHECK_INT(place_of_new(&rd_transport_xor, false, 3, true), A);
    a_has = 0;
    CHECK_INT(place_of_new(&rd_transport_xor_moving, true, 3, false), A);
}

int main(void) {
    test_balance();
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        test_between_requests(&forms[i]);
        test_a_request_that_waits(&forms[i]);
        test_half_a_record(&forms[i]);
        test_in_its_handshake(&forms[i]);
        test_just_accepted(&forms[i]);
    }
    return check_summary();
}
