/* SPDX-License-Identifier: MIT
 *
 * A connection whose transport is no plain one, hijacked: what the application writes and reads on
 * its end goes through the transport, each way ends alone, and what is queued has limits. On both
 * pollers.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "check.h"
#include "hand_clock.h"
#include "transport/pump.h"
#include "xor_conn.h"

static int app; /* the application's end */
static const char zeros[3000000];

static rd_conn *open_with_head(rd_pump_head head) {
    rd_conn *conn = open_shaken();
    app = rd_pump_begin(conn, head);
    CHECK(app >= 0);
    CHECK_INT(told.closed, 1);
    return conn;
}

static rd_conn *open_pumped(void) {
    return open_with_head(NULL);
}

static void turns(int count) {
    while (count-- > 0) turn();
}

/* Reads what the application gets; -1: the end. */
static ssize_t app_hears(char *bytes, size_t size) {
    const ssize_t got = recv(app, bytes, size, 0);
    return got == 0 ? -1 : got < 0 ? 0 : got;
}

static void check_app_hears(const char *expected) {
    char bytes[64];
    const ssize_t len = app_hears(bytes, sizeof(bytes));
    CHECK_BYTES(bytes, len < 0 ? 0 : (size_t)len, expected);
}

static void app_says(const char *text) {
    CHECK_INT(send(app, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void check_all_gone(void) {
    turns(3);
    CHECK_INT(set.count, 0);
    CHECK_INT(set.ledger.rows[RD_LEDGER_DESCRIPTORS].held, 0);
    CHECK(rd_list_is_empty(&set.conns));
    close(peer);
}

static void test_bytes_go_both_ways(void) {
    rd_conn *conn = open_pumped();
    CHECK_INT(set.count, 1);
    CHECK_INT(set.ledger.rows[RD_LEDGER_DESCRIPTORS].held, 2);
    say_record("question", 8);
    turns(2);
    check_app_hears("question");
    app_says("U");
    turns(2);
    check_heard("\0\1\0", 3);
    close(app);
    rd_conn_close(conn);
    check_all_gone();
}

static void test_the_client_may_end_first(void) {
    open_pumped();
    say_record("last", 4);
    say_record("", 0);
    turns(4);
    check_app_hears("last");
    char byte;
    CHECK_INT(app_hears(&byte, 1), -1);
    app_says("U");
    turns(2);
    check_heard("\0\1\0", 3);
    close(app);
    turns(3);
    check_heard("\0\0", 2);
    check_all_gone();
}

static void test_the_application_may_end_first(void) {
    open_pumped();
    app_says("U");
    shutdown(app, SHUT_WR);
    turns(3);
    check_heard("\0\1\0\0\0", 5);
    say_record("more", 4);
    turns(2);
    check_app_hears("more");
    say_record("", 0);
    turns(3);
    check_all_gone();
    close(app);
}

static void test_an_application_that_closes_ends_it_all(void) {
    open_pumped();
    app_says("U");
    close(app);
    turns(4);
    check_heard("\0\1\0\0\0", 5);
    shutdown(peer, SHUT_WR);
    turns(2);
    check_all_gone();
}

static void test_a_client_that_vanishes_ends_it_all(void) {
    open_pumped();
    close(peer);
    turns(4);
    char byte;
    CHECK_INT(app_hears(&byte, 1), -1);
    close(app);
    peer = -1;
    turns(3);
    CHECK_INT(set.count, 0);
    CHECK(rd_list_is_empty(&set.conns));
}

static rd_conn *other_of(rd_conn *conn) {
    rd_conn *first = RD_CONTAINER(set.conns.next, rd_conn, in_set);
    return first == conn ? RD_CONTAINER(first->in_set.next, rd_conn, in_set) : first;
}

static void test_an_application_that_reads_late_holds_the_client_up_without_end(void) {
    static char record[XOR_RECORD_MAX], bytes[65536];
    rd_conn *conn = open_pumped(), *inner = other_of(conn);
    size_t said = 0, heard = 0;
    for (int i = 0; i < 400; i++) {
        if (send(peer, "\x40\0", 2, MSG_NOSIGNAL) != 2) break;
        if (send(peer, record, sizeof(record), MSG_NOSIGNAL) != (ssize_t)sizeof(record)) break;
        said += sizeof(record);
        turns(6);
    }
    CHECK(said < 400 * sizeof(record));
    CHECK(conn->read_paused);
    CHECK(inner->out.bytes <= (size_t)settings.output_high_bytes + sizeof(loop.receive));
    pass_ms((uint64_t)settings.write_timeout_ms * 3);
    turns(3);
    CHECK(rd_conn_is_open(conn));
    for (int idle = 0; idle < 5; turns(2)) {
        const ssize_t got = app_hears(bytes, sizeof(bytes));
        heard += got > 0 ? (size_t)got : 0;
        idle = got > 0 ? 0 : idle + 1;
    }
    CHECK(heard >= said);
    CHECK(!conn->read_paused);
    rd_conn_close(conn);
    turns(2);
    close(app);
    check_all_gone();
}

/* The application has ended its writing, so the pump does not wait for more bytes from it. */
static void test_an_application_that_only_reads_has_a_deadline(void) {
    static char record[XOR_RECORD_MAX], bytes[4096];
    rd_conn *conn = open_pumped(), *inner = other_of(conn);
    for (int i = 0; i < 400 && !conn->read_paused; i++) {
        if (send(peer, "\x40\0", 2, MSG_NOSIGNAL) != 2) break;
        if (send(peer, record, sizeof(record), MSG_NOSIGNAL) != (ssize_t)sizeof(record)) break;
        turns(6);
    }
    CHECK(inner->out.bytes > 0);
    CHECK_INT(rd_conn_write_deadline(inner), UINT64_MAX);
    shutdown(app, SHUT_WR);
    turns(3);
    CHECK(rd_conn_write_deadline(inner) != UINT64_MAX);
    const uint64_t before = set.write_timeouts;
    for (int i = 0; i < 3; i++) { /* while it reads a little, it continues */
        for (int n = 0; n < 12; n++) (void)!recv(app, bytes, sizeof(bytes), 0);
        pass_ms((uint64_t)settings.write_timeout_ms / 2);
        turns(3);
    }
    CHECK(rd_conn_is_open(inner));
    CHECK_INT(set.write_timeouts - before, 0);
    pass_ms((uint64_t)settings.write_timeout_ms * 2);
    turns(3);
    CHECK_INT(set.write_timeouts - before, 1);
    close(app);
    shutdown(peer, SHUT_WR);
    rd_conn_close(conn);
    check_all_gone();
}

static void test_a_client_that_reads_late_holds_the_application_up_until_its_deadline(void) {
    rd_conn *conn = open_pumped();
    size_t said = 0;
    for (int idle = 0; idle < 5 && said < 40 * sizeof(zeros); turns(2)) {
        const ssize_t sent = send(app, zeros, sizeof(zeros), MSG_NOSIGNAL);
        said += sent > 0 ? (size_t)sent : 0;
        idle = sent > 0 ? 0 : idle + 1;
    }
    CHECK(said < 40 * sizeof(zeros));
    CHECK(conn->out.bytes <= (size_t)settings.output_high_bytes + sizeof(loop.receive));
    const uint64_t before = set.write_timeouts;
    pass_ms((uint64_t)settings.write_timeout_ms + 2);
    turns(4);
    CHECK_INT(set.write_timeouts - before, 1);
    close(app);
    check_all_gone();
}

/* Reads what the client gets, until no more comes for a while. */
static size_t client_reads_all(void) {
    static char bytes[65536];
    size_t heard = 0;
    for (int idle = 0; idle < 5; turns(2)) {
        const ssize_t got = recv(peer, bytes, sizeof(bytes), 0);
        heard += got > 0 ? (size_t)got : 0;
        idle = got > 0 ? 0 : idle + 1;
    }
    return heard;
}

/* What has come, without a turn. */
static void client_reads_all_at_once(void) {
    static char bytes[65536];
    while (recv(peer, bytes, sizeof(bytes), 0) > 0) continue;
}

static void test_a_client_that_reads_late_gets_all_that_was_written_before_the_close(void) {
    rd_conn *conn = open_pumped(), *inner = other_of(conn);
    size_t said = 0;
    for (int idle = 0; idle < 5; turns(2)) {
        const ssize_t sent = send(app, zeros, sizeof(zeros), MSG_NOSIGNAL);
        said += sent > 0 ? (size_t)sent : 0;
        idle = sent > 0 ? 0 : idle + 1;
    }
    CHECK(inner->read_paused);
    close(app);
    turns(3);
    CHECK(client_reads_all() > said); /* records have heads */
    shutdown(peer, SHUT_WR);
    check_all_gone();
}

/* The application closes its end without reading: bytes that the client sends then have no reader.
 */
static void test_a_client_that_goes_on_gets_all_that_was_written_before_the_close(void) {
    open_pumped();
    say_record("question", 8);
    turns(2);
    size_t said = 0;
    for (int idle = 0; idle < 5; turns(2)) {
        const ssize_t sent = send(app, zeros, sizeof(zeros), MSG_NOSIGNAL);
        said += sent > 0 ? (size_t)sent : 0;
        idle = sent > 0 ? 0 : idle + 1;
    }
    close(app);
    say_record("more", 4);
    turns(2);
    say_record("and more", 8);
    turns(2);
    CHECK(client_reads_all() > said);
    shutdown(peer, SHUT_WR);
    check_all_gone();
}

/* The application ends its output just when the client has caught up: what the transport held then
 * leaves with its last message, and nothing waits any more. */
static void test_a_client_that_caught_up_at_the_end_has_no_deadline(void) {
    rd_conn *conn = open_pumped();
    do {
        if (send(app, zeros, 8192, MSG_NOSIGNAL) <= 0) break;
        turns(2);
    } while (rd_conn_unsent(conn) <= RD_LEDGER_FREE || conn->out.bytes > 0);
    CHECK(rd_conn_unsent(conn) > RD_LEDGER_FREE && conn->out.bytes == 0);
    CHECK(rd_conn_write_deadline(conn) != UINT64_MAX);
    CHECK(conn->stall != NULL);
    shutdown(app, SHUT_WR);
    client_reads_all_at_once();
    turns(4);
    client_reads_all_at_once();
    CHECK_INT(rd_conn_unsent(conn), 0);
    CHECK_INT(rd_conn_write_deadline(conn), UINT64_MAX);
    CHECK_INT(set.ledger.rows[RD_LEDGER_OUTPUT].held, 0);
    CHECK(conn->stall == NULL);
    const uint64_t before = set.write_timeouts;
    pass_ms((uint64_t)settings.write_timeout_ms + 2);
    say_record("more", 4);
    turns(2);
    check_app_hears("more");
    CHECK_INT(set.write_timeouts - before, 0);
    say_record("", 0);
    turns(3);
    check_all_gone();
    close(app);
}

static void test_a_client_that_ended_before_the_hijack_has_ended(void) {
    open_shaken();
    rd_conn *conn = RD_CONTAINER(set.conns.next, rd_conn, in_set);
    say_record("", 0);
    turns(2);
    CHECK(conn->read_eof);
    app = rd_pump_begin(conn, NULL);
    turns(2);
    char byte;
    CHECK_INT(app_hears(&byte, 1), -1);
    app_says("U");
    turns(2);
    check_heard("\0\1\0", 3);
    close(app);
    check_all_gone();
}

static void test_when_the_server_stops_the_application_reads_the_end_and_may_write(void) {
    rd_conn *conn = open_pumped();
    say_record("before", 6);
    turns(2);
    rd_conn_shut_down(other_of(conn));
    rd_conn_shut_down(conn);
    say_record("after", 5);
    turns(3);
    check_app_hears("before");
    char byte;
    CHECK_INT(app_hears(&byte, 1), -1);
    app_says("U");
    turns(2);
    check_heard("\0\1\0", 3);
    close(app);
    turns(3);
    check_heard("\0\0", 2);
    shutdown(peer, SHUT_WR);
    check_all_gone();
}

static int watch_nothing(rd_poller *poller, rd_source *source) {
    (void)poller, (void)source;
    errno = ENOSPC;
    return -1;
}

/* The kernel watches no more descriptors, and the client has ended its writing before. */
static void test_an_end_that_cannot_be_watched(void) {
    const rd_poller_ops *before = loop.ops;
    rd_poller_ops full = *before;
    rd_conn *conn = open_shaken();
    char byte;
    full.add = watch_nothing;
    conn->read_eof = true;
    loop.ops = &full;
    app = rd_pump_begin(conn, NULL);
    loop.ops = before;
    CHECK_INT(app_hears(&byte, 1), -1);
    close(app);
    turns(3);
    check_all_gone();
}

/* Up to a line feed. The connection says it in its own way. */
static int head_line(rd_conn *conn, const char *bytes, size_t len) {
    const char *end = memchr(bytes, '\n', len);
    if (end == NULL) return len < 8 ? 0 : RD_ERR_TAKEN_HEAD;
    rd_outq_copy(&conn->out, &set.chunks, "H", 1);
    rd_conn_mark_dirty(conn);
    return (int)(end + 1 - bytes);
}

static int why; /* the last answer was cut */

static void note_why(rd_conn *conn, int code) {
    CHECK(rd_conn_is_open(conn));
    why = code;
}

static void test_a_head_is_said_by_the_connection(void) {
    rd_conn *conn = open_with_head(head_line);
    say_record("early", 5);
    app_says("he");
    turns(3);
    check_app_hears("early");
    check_heard("", 0);
    app_says("ad\nU");
    turns(3);
    check_heard("\0\2\x1d\0", 4); /* H and U, XOR 0x55 */
    app_says("\n");
    turns(2);
    check_heard("\0\1\x5f", 3);
    CHECK_INT(set.ledger.rows[RD_LEDGER_INPUT].held, 0);
    close(app);
    rd_conn_close(conn);
    check_all_gone();
}

/* Too long, or an end before it. */
static void test_what_is_no_head_resets_the_connection(void) {
    set.on_cut = note_why;
    for (int ends = 0; ends < 2; ends++) {
        why = 0;
        open_with_head(head_line);
        app_says(ends ? "head" : "no head of that kind");
        if (ends) shutdown(app, SHUT_WR);
        turns(4);
        CHECK_INT(why, RD_ERR_TAKEN_HEAD);
        char byte;
        CHECK_INT(app_hears(&byte, 1), -1);
        close(app);
        check_all_gone();
    }
    set.on_cut = note_cut;
}

/* Nothing is missing then. */
static void test_a_client_that_leaves_before_the_head_ends_it_all(void) {
    set.on_cut = note_why;
    why = 0;
    rd_conn *conn = open_with_head(head_line);
    app_says("he");
    turns(2);
    rd_conn_close(conn);
    app_says("ad\nU");
    turns(3);
    close(app);
    check_all_gone();
    CHECK_INT(why, 0);
    set.on_cut = note_cut;
}

static void test_all(void) {
    test_a_head_is_said_by_the_connection();
    test_what_is_no_head_resets_the_connection();
    test_a_client_that_leaves_before_the_head_ends_it_all();
    test_bytes_go_both_ways();
    test_the_client_may_end_first();
    test_the_application_may_end_first();
    test_an_application_that_closes_ends_it_all();
    test_a_client_that_vanishes_ends_it_all();
    test_an_application_that_reads_late_holds_the_client_up_without_end();
    test_an_application_that_only_reads_has_a_deadline();
    test_a_client_that_reads_late_holds_the_application_up_until_its_deadline();
    test_a_client_that_reads_late_gets_all_that_was_written_before_the_close();
    test_a_client_that_goes_on_gets_all_that_was_written_before_the_close();
    test_a_client_that_caught_up_at_the_end_has_no_deadline();
    test_a_client_that_ended_before_the_hijack_has_ended();
    test_when_the_server_stops_the_application_reads_the_end_and_may_write();
    test_an_end_that_cannot_be_watched();
}

int main(void) {
    return check_on_both_pollers(test_all);
}
