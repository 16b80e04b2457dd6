/* SPDX-License-Identifier: MIT
 *
 * A connection whose transport is no plain one, by the transport of xor_transport.h: its handshake,
 * cut anywhere and late; what it has decoded and not handed out; what it has taken and not sent;
 * its last message. On both pollers.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "hand_clock.h"
#include "xor_conn.h"

/* ---- the handshake ---- */

static void test_nothing_is_read_before_the_handshake(void) {
    rd_conn *conn = open_conn();
    rd_conn_read_now(conn);
    turn();
    CHECK_INT(shaken, 1);
    CHECK(conn->source.registered);
    say("XOR?1", 5);
    turn();
    check_heard("XOR!1", 5);
    CHECK_INT(shaken, 1);
    CHECK_INT(told.len, 0);
    end(conn);
}

static void test_a_handshake_may_be_cut_anywhere(void) {
    const size_t len = sizeof(HELLO) - 1;
    for (size_t cut = 0; cut <= len; cut++) {
        rd_conn *conn = open_conn();
        rd_conn_read_now(conn);
        if (cut > 0) say(HELLO, cut);
        turn();
        turn();
        CHECK_INT(shaken, cut == len ? 0 : 1);
        if (cut < len) say(&HELLO[cut], len - cut);
        say_record("first", 5);
        for (int i = 0; i < 3; i++) turn();
        CHECK_INT(shaken, 0);
        CHECK_BYTES(agreed.ptr, agreed.len, "b");
        CHECK_BYTES(told.bytes, told.len, "first");
        end(conn);
    }
}

static void test_a_handshake_byte_by_byte(void) {
    rd_conn *conn = open_conn();
    rd_conn_read_now(conn);
    for (size_t i = 0; i < sizeof(HELLO) - 1; i++) {
        CHECK_INT(shaken, 1);
        say(&HELLO[i], 1);
        turn();
        turn();
    }
    CHECK_INT(shaken, 0);
    end(conn);
}

static void test_bytes_that_came_with_the_handshake_are_read(void) {
    rd_conn *conn = open_conn();
    say(HELLO, sizeof(HELLO) - 1);
    say_record("early", 5);
    rd_conn_read_now(conn);
    turn();
    CHECK_BYTES(told.bytes, told.len, "early");
    end(conn);
}

static void test_another_handshake_fails_and_is_told_so(void) {
    rd_conn *conn = open_conn();
    say("GET / HTTP/1.1\r\n", 16);
    rd_conn_read_now(conn);
    turn();
    CHECK_INT(shaken, RD_ERR_HANDSHAKE);
    turn();
    check_heard("XOR!0", 5); /* and no last message of a layer that did not begin */
    check_gone();
}

static void linger_after_handshake(rd_conn *conn, int code) {
    shaken = code;
    rd_conn_finish(conn, true);
}

static ssize_t never_read(rd_conn *conn, char *bytes, size_t len) {
    CHECK(conn == NULL || bytes == NULL || len == 0);
    return 0;
}

/* Its last bytes are dropped as they come: the transport has no keys to read them with. */
static void test_a_transport_that_failed_reads_no_more(void) {
    rd_transport failing = rd_transport_xor;
    failing.read = never_read;
    rd_conn *conn = open_with(&failing);
    rd_protocol lingering = *conn->protocol;
    lingering.on_handshake = linger_after_handshake;
    conn->protocol = &lingering;
    rd_conn_ref(conn);
    rd_conn_read_now(conn);
    say("\0\1U\0\1U", 6); /* whole records, but no handshake */
    turn();
    CHECK_INT(shaken, RD_ERR_HANDSHAKE);
    turn();
    check_heard("XOR!0", 5);
    CHECK_INT(conn->state, RD_CONN_LINGERING);
    say("\0\1U", 3);
    turn();
    CHECK_INT(conn->state, RD_CONN_LINGERING);
    CHECK(!rd_conn_set_has_layers(&set));
    shutdown(peer, SHUT_WR);
    turn();
    rd_conn_unref(conn);
    check_gone();
}

/* Its handshake never came, and it lingers: what comes is dropped, and does not stand in line. */
static void test_one_that_lingers_in_its_handshake(void) {
    rd_conn *conn = open_conn();
    rd_conn_read_now(conn);
    turn();
    rd_conn_finish(conn, true);
    turn();
    CHECK_INT(conn->state, RD_CONN_LINGERING);
    say("XOR?1", 5);
    turn();
    CHECK(!rd_conn_set_has_layers(&set));
    CHECK_INT(conn->state, RD_CONN_LINGERING);
    shutdown(peer, SHUT_WR);
    turn();
    check_gone();
}

static void test_a_peer_that_leaves_in_its_handshake(void) {
    rd_conn *conn = open_conn();
    say("XOR?", 4);
    rd_conn_read_now(conn);
    shutdown(peer, SHUT_WR);
    turn();
    turn();
    CHECK_INT(shaken, RD_ERR_CLOSED);
    check_gone();
}

static void test_a_slow_handshake_hits_its_deadline(void) {
    rd_conn *conn = open_conn();
    rd_conn_set_deadline(conn, loop.now_ms + 1000);
    rd_conn_read_now(conn);
    turn();
    say("XOR?1", 5);
    pass_ms(900);
    turn();
    CHECK_INT(told.timeouts, 0);
    pass_ms(200);
    turn();
    CHECK_INT(told.timeouts, 1);
    CHECK_INT(shaken, 1);
    end(conn);
}

static void test_one_that_ends_in_line_has_no_handshake(void) {
    rd_conn *conn = open_conn();
    say(HELLO, sizeof(HELLO) - 1);
    rd_conn_read_now(conn);
    CHECK(rd_conn_set_has_layers(&set));
    rd_conn_finish(conn, false);
    rd_conn_set_serve_layers(&set, false);
    CHECK_INT(shaken, 1);
    turn();
    check_gone();
}

/* ---- what is pending ---- */

static void test_what_is_decoded_is_served_without_readiness(void) {
    static char record[XOR_PIECE * 3];
    rd_conn *conn = open_shaken();
    const uint64_t before = set.bytes_in;
    memset(record, 'a', sizeof(record));
    say_record(record, sizeof(record));
    turn();
    CHECK_INT(set.bytes_in - before, XOR_PIECE * 2); /* first from readiness, then from the line */
    CHECK(rd_conn_set_has_layers(&set));
    turn();
    CHECK_INT(set.bytes_in - before, sizeof(record));
    CHECK(!rd_conn_set_has_layers(&set));
    end(conn);
}

static void test_what_is_decoded_waits_while_reading_is_paused(void) {
    rd_conn *conn = open_shaken();
    told.react = rd_conn_pause_reading;
    say_record("one", 3);
    say_record("two", 3);
    for (int i = 0; i < 3; i++) turn();
    CHECK_BYTES(told.bytes, told.len, "one");
    CHECK(!rd_conn_set_has_layers(&set));
    told.react = NULL;
    rd_conn_resume_reading(conn);
    CHECK(rd_conn_set_has_layers(&set));
    turn();
    CHECK_BYTES(told.bytes, told.len, "onetwo");
    end(conn);
}

static void test_the_last_record_is_the_end_though_the_socket_stays_open(void) {
    rd_conn *conn = open_shaken();
    say_record("bye", 3);
    say_record("", 0);
    for (int i = 0; i < 3; i++) turn();
    CHECK_BYTES(told.bytes, told.len, "bye");
    CHECK_INT(told.eofs, 1);
    queue(conn, "answer", 6);
    turn();
    char bytes[16];
    CHECK_INT(hear(bytes, sizeof(bytes)), 8);
    end(conn);
}

static void test_one_that_closes_in_its_reaction(void) {
    rd_conn *conn = open_shaken();
    told.react = rd_conn_close;
    say_record("one", 3);
    say_record("two", 3);
    rd_conn_ref(conn);
    for (int i = 0; i < 3; i++) turn();
    CHECK_BYTES(told.bytes, told.len, "one");
    rd_conn_unref(conn);
    check_gone();
}

/* ---- what is unsent ---- */

static const char zeros[3000000];

/* The socket is full; this many bytes are in it and in the transport. */
static void fill(rd_conn *conn) {
    queue(conn, zeros, sizeof(zeros));
    turn();
    CHECK(conn->out.bytes > 0 && rd_conn_unsent(conn) > 0);
}

/* Takes all bytes that come, with their records, until no more come. */
static size_t drain(rd_conn *conn, bool *ended) {
    static char bytes[65536];
    size_t len = 0;
    *ended = false;
    for (int idle = 0; idle < 3;) {
        const ssize_t got = recv(peer, bytes, sizeof(bytes), 0);
        if (got > 0) len += (size_t)got;
        *ended = got == 0;
        idle = got > 0 ? 0 : idle + 1;
        turn();
    }
    CHECK(conn->state == RD_CONN_CLOSED || rd_conn_unsent(conn) == 0);
    return len;
}

static void test_unsent_bytes_wait_for_the_socket(void) {
    rd_conn *conn = open_shaken();
    bool ended;
    fill(conn);
    CHECK(conn->source.interest & RD_WRITABLE);
    CHECK(rd_conn_write_deadline(conn) != UINT64_MAX);
    const size_t records = sizeof(zeros) / XOR_RECORD_MAX;
    CHECK(drain(conn, &ended) >= sizeof(zeros) + 2 * records);
    CHECK_INT(conn->out.bytes, 0);
    CHECK_INT(rd_conn_write_deadline(conn), UINT64_MAX);
    CHECK(!(conn->source.interest & RD_WRITABLE));
    end(conn);
}

/* The queue is empty, but the transport still has bytes. */
static void fill_transport_only(rd_conn *conn) {
    int small = 4096;
    setsockopt(conn->source.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    queue(conn, zeros, 60000);
    turn();
    CHECK_INT(conn->out.bytes, 0);
    CHECK(rd_conn_unsent(conn) > 0);
}

static void test_unsent_bytes_hold_the_deadline_of_writing(void) {
    rd_conn *conn = open_shaken();
    fill_transport_only(conn);
    CHECK(conn->source.interest & RD_WRITABLE);
    const uint64_t before = set.write_timeouts;
    pass_ms((uint64_t)settings.write_timeout_ms + 2);
    turn();
    CHECK_INT(set.write_timeouts - before, 1);
    CHECK_INT(told.closed, 1);
    check_gone();
}

/* A message of the handshake did not leave, and leaves with the next step of the handshake. */
static void test_a_handshake_that_sends_the_rest_ends_the_deadline(void) {
    static char bytes[65536];
    rd_conn *conn = open_conn();
    rd_conn_read_now(conn);
    while (send(conn->source.fd, zeros, 4096, MSG_NOSIGNAL) > 0) continue;
    say("XOR?1", 5);
    turn();
    rd_conn_mark_dirty(conn);
    rd_conn_set_flush(&set);
    CHECK_INT(rd_conn_unsent(conn), 5);
    CHECK(rd_conn_write_deadline(conn) != UINT64_MAX);
    say("XOR?", 4);
    rd_loop_wait(&loop, &found, 0);
    rd_loop_process(&loop, &found);
    while (recv(peer, bytes, sizeof(bytes), 0) > 0) continue;
    rd_conn_set_serve_layers(&set, false);
    CHECK_INT(rd_conn_unsent(conn), 0);
    turn();
    CHECK_INT(rd_conn_write_deadline(conn), UINT64_MAX);
    CHECK_INT(shaken, 1);
    end(conn);
}

static void test_unsent_bytes_hold_tell_empty(void) {
    rd_conn *conn = open_shaken();
    bool ended;
    fill_transport_only(conn);
    conn->notify_drained = true;
    turn();
    CHECK_INT(told.drained, 0);
    drain(conn, &ended);
    CHECK_INT(told.drained, 1);
    end(conn);
}

static void test_unsent_bytes_hold_the_close(void) {
    rd_conn *conn = open_shaken();
    bool ended;
    fill_transport_only(conn);
    rd_conn_finish(conn, false);
    turn();
    CHECK_INT(conn->state, RD_CONN_FINISHING);
    rd_conn_ref(conn);
    CHECK(drain(conn, &ended) > 60000);
    CHECK(ended);
    rd_conn_unref(conn);
    check_gone();
}

/* ---- limits for all connections together ---- */

static rd_ledger_row *row(rd_ledger_kind kind) {
    return &set.ledger.rows[kind];
}

static int refused_with; /* the argument of on_refused */

static void note_refused(rd_conn *conn, int code) {
    CHECK(rd_conn_is_open(conn));
    refused_with = code;
}

/* A record that never ends: its bytes count as input, like those of a head that never ends. */
static void test_what_is_read_ahead_is_counted(void) {
    static char record[XOR_RECORD_MAX * 3];
    rd_conn *conn = open_shaken();
    memset(record, 0xff, sizeof(record));
    say(record, sizeof(record));
    turn();
    turn();
    CHECK_INT(row(RD_LEDGER_INPUT)->held, sizeof(record) - RD_LEDGER_FREE);
    end(conn);
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 0);
}

static void test_there_is_no_room_for_what_is_read_ahead(void) {
    static char record[XOR_RECORD_MAX * 3];
    rd_ledger_limit(&set.ledger, RD_LEDGER_INPUT, XOR_RECORD_MAX);
    const uint64_t refused = row(RD_LEDGER_INPUT)->refused;
    open_shaken();
    set.on_refused = note_refused;
    memset(record, 0xff, sizeof(record));
    say(record, sizeof(record));
    turn();
    turn();
    CHECK_INT(refused_with, RD_ERR_INPUT_FULL);
    CHECK_INT(row(RD_LEDGER_INPUT)->refused - refused, 1);
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 0);
    check_gone();
    rd_ledger_limit(&set.ledger, RD_LEDGER_INPUT, UINT64_MAX);
    set.on_refused = NULL;
}

static void answer_last(rd_conn *conn) {
    queue(conn, "U", 1);
    rd_conn_finish(conn, true);
}

/* Its answer is on its way: more input does not cost the client that. */
static void test_no_room_does_not_cut_a_last_answer(void) {
    static char record[XOR_RECORD_MAX + 4096];
    rd_conn *conn = open_shaken();
    rd_conn_ref(conn);
    rd_ledger_limit(&set.ledger, RD_LEDGER_INPUT, 100);
    set.on_refused = note_refused;
    refused_with = 0;
    told.react = answer_last;
    say_record("question", 8);
    memset(record, 0xff, sizeof(record));
    say(record, sizeof(record));
    turn();
    turn();
    check_heard("\0\1\0\0\0", 5);
    CHECK_INT(conn->state, RD_CONN_LINGERING);
    say(record, sizeof(record));
    turn();
    turn();
    CHECK_INT(conn->state, RD_CONN_LINGERING);
    CHECK_INT(refused_with, 0);
    shutdown(peer, SHUT_WR);
    turn();
    rd_conn_unref(conn);
    check_gone();
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 0);
    rd_ledger_limit(&set.ledger, RD_LEDGER_INPUT, UINT64_MAX);
    set.on_refused = NULL;
}

static size_t much(rd_conn *conn) {
    return conn != NULL ? 100000 : 0;
}

/* Messages of a handshake may be long. The protocol is told of the cut, and says why the connection
 * ends. */
static void test_there_is_no_room_for_a_handshake(void) {
    rd_transport greedy = rd_transport_xor;
    greedy.read_ahead = much;
    rd_ledger_limit(&set.ledger, RD_LEDGER_INPUT, 100000);
    rd_conn *conn = open_with(&greedy);
    rd_conn_read_now(conn);
    turn();
    CHECK_INT(shaken, 1);
    CHECK_INT(row(RD_LEDGER_INPUT)->held, 100000 - RD_LEDGER_FREE);
    rd_ledger_limit(&set.ledger, RD_LEDGER_INPUT, 100);
    const int first = peer;
    rd_conn_read_now(open_with(&greedy));
    turn();
    CHECK_INT(shaken, RD_ERR_INPUT_FULL);
    turn();
    CHECK_INT(told.closed, 1);
    CHECK_INT(set.count, 1);
    told.closed = 0;
    end(conn);
    close(first);
    rd_ledger_limit(&set.ledger, RD_LEDGER_INPUT, UINT64_MAX);
}

/* Bytes that the transport has taken and the peer has not: they count as output, and the connection
 * is stalled. */
static void test_what_is_unsent_is_counted(void) {
    rd_conn *conn = open_shaken();
    bool ended;
    fill_transport_only(conn);
    CHECK_INT(row(RD_LEDGER_OUTPUT)->held, rd_conn_unsent(conn) - RD_LEDGER_FREE);
    CHECK(conn->stall != NULL);
    drain(conn, &ended);
    CHECK_INT(row(RD_LEDGER_OUTPUT)->held, 0);
    CHECK(conn->stall == NULL);
    fill_transport_only(conn);
    CHECK(row(RD_LEDGER_OUTPUT)->held > 0);
    end(conn);
    CHECK_INT(row(RD_LEDGER_OUTPUT)->held, 0);
}

/* ---- the last message ---- */

static void test_an_orderly_close_ends_with_the_last_message(void) {
    rd_conn *conn = open_shaken();
    queue(conn, "U", 1);
    rd_conn_finish(conn, false);
    turn();
    check_heard("\0\1\0\0", 5);
    check_gone();
}

static void test_a_linger_has_sent_the_last_message(void) {
    rd_conn *conn = open_shaken();
    rd_conn_finish(conn, true);
    turn();
    CHECK_INT(conn->state, RD_CONN_LINGERING);
    check_heard("\0\0", 2);
    say_record("late", 4);
    turn();
    CHECK_INT(conn->state, RD_CONN_LINGERING);
    shutdown(peer, SHUT_WR);
    turn();
    check_gone();
}

/* What is queued is sent, and nothing says that it is all. */
static void test_a_cut_answer_has_none(void) {
    for (int linger = 0; linger < 2; linger++) {
        rd_conn *conn = open_shaken();
        queue(conn, "U", 1);
        rd_layer_cut(conn);
        rd_conn_finish(conn, linger);
        turn();
        check_heard("\0\1\0", 3);
        char byte;
        CHECK_INT(recv(peer, &byte, 1, 0), 0);
        shutdown(peer, SHUT_WR);
        turn();
        check_gone();
    }
}

static void test_a_reset_and_a_close_have_none(void) {
    for (int i = 0; i < 2; i++) {
        rd_conn *conn = open_shaken();
        if (i == 0)
            rd_conn_reset(conn);
        else
            rd_conn_close(conn);
        turn();
        char bytes[8];
        CHECK_INT(hear(bytes, sizeof(bytes)), -1);
        check_gone();
    }
}

static void test_one_direction_may_end_alone(void) {
    rd_conn *conn = open_shaken();
    bool ended;
    CHECK(rd_conn_end_output(conn));
    check_heard("\0\0", 2);
    say_record("more", 4);
    turn();
    CHECK_BYTES(told.bytes, told.len, "more");
    end(conn);

    conn = open_shaken();
    fill_transport_only(conn);
    CHECK(!rd_conn_end_output(conn));
    drain(conn, &ended);
    CHECK_INT(told.drained, 1); /* then everything is sent: */
    CHECK(!ended);
    CHECK(rd_conn_end_output(conn));
    drain(conn, &ended);
    CHECK(ended);
    end(conn);
}

/* ---- files ---- */

static void test_a_file_goes_through_the_transport(void) {
    rd_conn *conn = open_shaken();
    char path[] = "/tmp/rondo-layer-XXXXXX";
    bool ended;
    const int fd = mkstemp(path);
    unlink(path);
    CHECK_INT(write(fd, zeros, 100000), 100000);
    rd_file *file = rd_file_new(&loop, fd, 0);
    file->memory = RD_FILE_IS_MEMORY;
    rd_outq_file(&conn->out, file, 0, 100000);
    rd_file_unref(file);
    rd_conn_mark_dirty(conn);
    CHECK(drain(conn, &ended) > 100000);
    CHECK_INT(conn->out.bytes, 0);
    end(conn);
    rd_disk_wait_idle(&loop);
}

/* ---- bytes before the transport ---- */

static void hold(rd_conn *conn) {
    rd_layer_hold(conn);
}

static void test_bytes_before_the_transport_are_read_as_they_are(void) {
    static rd_protocol held;
    rd_conn *conn;
    int pair[2];
    const rd_address nobody = {0};
    held = notes;
    held.on_open = hold;
    held.on_handshake = note_handshake;
    memset(&told, 0, sizeof(told));
    shaken = 1;
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    peer = pair[1];
    conn = rd_conn_open(&set, pair[0], &rd_transport_xor, &held, &nobody);
    say("PROXY ", 6);
    rd_conn_read_now(conn);
    CHECK_BYTES(told.bytes, told.len, "PROXY ");
    rd_layer_begin(conn, "XOR?1XO", 7);
    say(&HELLO[7], sizeof(HELLO) - 1 - 7);
    say_record("then", 4);
    for (int i = 0; i < 2; i++) turn();
    CHECK_INT(shaken, 0);
    CHECK_BYTES(told.bytes, told.len, "PROXY then");
    end(conn);
}

static void test_all(void) {
    test_nothing_is_read_before_the_handshake();
    test_a_handshake_may_be_cut_anywhere();
    test_a_handshake_byte_by_byte();
    test_bytes_that_came_with_the_handshake_are_read();
    test_another_handshake_fails_and_is_told_so();
    test_a_transport_that_failed_reads_no_more();
    test_one_that_lingers_in_its_handshake();
    test_a_peer_that_leaves_in_its_handshake();
    test_a_slow_handshake_hits_its_deadline();
    test_one_that_ends_in_line_has_no_handshake();
    test_what_is_decoded_is_served_without_readiness();
    test_what_is_decoded_waits_while_reading_is_paused();
    test_the_last_record_is_the_end_though_the_socket_stays_open();
    test_one_that_closes_in_its_reaction();
    test_unsent_bytes_wait_for_the_socket();
    test_unsent_bytes_hold_the_deadline_of_writing();
    test_a_handshake_that_sends_the_rest_ends_the_deadline();
    test_unsent_bytes_hold_tell_empty();
    test_unsent_bytes_hold_the_close();
    test_what_is_read_ahead_is_counted();
    test_there_is_no_room_for_what_is_read_ahead();
    test_no_room_does_not_cut_a_last_answer();
    test_there_is_no_room_for_a_handshake();
    test_what_is_unsent_is_counted();
    test_an_orderly_close_ends_with_the_last_message();
    test_a_linger_has_sent_the_last_message();
    test_a_cut_answer_has_none();
    test_a_reset_and_a_close_have_none();
    test_one_direction_may_end_alone();
    test_a_file_goes_through_the_transport();
    test_bytes_before_the_transport_are_read_as_they_are();
}

int main(void) {
    return check_on_both_pollers(test_all);
}
