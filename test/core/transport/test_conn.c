/* SPDX-License-Identifier: MIT
 *
 * Connections with a protocol that only takes note: reading, flushing in slices, watermarks,
 * deadlines, the three ways to an end, and what a connection does that ends inside a reaction; on
 * both pollers.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "conn_notes.h"
#include "hand_clock.h"

static int peer;
static const char zeros[3000000]; /* more bytes than a socket takes */

static rd_conn *open_conn(void) {
    int pair[2];
    rd_address nobody = {0};
    memset(&told, 0, sizeof(told));
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    peer = pair[1];
    return rd_conn_open(&set, pair[0], &rd_transport_tcp, &notes, &nobody);
}

static void turn(void) {
    rd_conn_set_flush(&set);
    rd_loop_wait(&loop, &found, 0);
    rd_loop_process(&loop, &found);
}

static void later(uint64_t ms) {
    pass_ms(ms);
    turn();
}

static rd_conn *open_registered(void) {
    rd_conn *conn = open_conn();
    rd_conn_read_now(conn);
    CHECK(conn->source.registered);
    return conn;
}

static void queue(rd_conn *conn, const char *bytes, size_t len) {
    rd_outq_copy(&conn->out, &set.chunks, bytes, len);
    rd_conn_mark_dirty(conn);
}

static void from_peer(const char *text) {
    CHECK_INT(send(peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Takes all bytes that are there; returns their number, or -1 if the end came without bytes. */
static ssize_t take_all(void) {
    static char room[65536];
    ssize_t total = 0, got;
    while ((got = recv(peer, room, sizeof(room), 0)) > 0) total += got;
    return got == 0 && total == 0 ? -1 : total;
}

static void check_gone(unsigned closed) {
    turn();
    CHECK_INT(told.closed, closed);
    CHECK_INT(set.count, 0);
    CHECK(rd_list_is_empty(&set.conns) && rd_list_is_empty(&set.dirty));
    later(86400000); /* no timer is left that could find it */
    close(peer);
}

static void end(rd_conn *conn) {
    rd_conn_close(conn);
    check_gone(1);
}

/* ---- reading ---- */

static void test_reading(void) {
    rd_conn *conn = open_conn();
    CHECK_INT(told.opened, 1);
    CHECK(!conn->source.registered);
    from_peer("one");
    rd_conn_read_now(conn);
    CHECK(conn->source.registered);
    rd_conn_pause_reading(conn);
    from_peer("two");
    turn();
    CHECK_BYTES(told.bytes, told.len, "one");
    rd_conn_resume_reading(conn);
    turn();
    CHECK_BYTES(told.bytes, told.len, "onetwo");
    CHECK_INT(set.bytes_in, 6);
    end(conn);
}

static void test_a_half_closed_peer_is_answered(void) {
    rd_conn *conn = open_registered();
    shutdown(peer, SHUT_WR);
    for (int i = 0; i < 3; i++) turn();
    CHECK_INT(told.eofs, 1); /* reported once, although the descriptor stays readable */
    CHECK_INT(conn->source.interest, 0);
    queue(conn, "answer", 6);
    turn();
    CHECK_INT(take_all(), 6);
    end(conn);
}

static void test_a_waiting_connection_is_registered_by_its_flush(void) {
    rd_conn *conn = open_conn();
    conn->awaits_answer = true;
    rd_conn_read_now(conn);
    CHECK(!conn->source.registered);
    queue(conn, "a", 1);
    rd_conn_set_flush(&set);
    CHECK(conn->source.registered);
    end(conn);
}

static void leave_with_unread_bytes(rd_conn *conn) {
    queue(conn, "unread", 6);
    turn();
    close(peer);
}

static void leave(rd_conn *conn) {
    (void)conn;
    close(peer);
}

static void leave_while_nobody_reads(rd_conn *conn) {
    rd_conn_pause_reading(conn);
    close(peer);
}

static void leave_before_the_answer(rd_conn *conn) {
    rd_conn_pause_reading(conn);
    close(peer);
    queue(conn, "late", 4);
}

static void leave_a_file_that_shrank(rd_conn *conn) {
    rd_file *file = rd_file_new(&loop, memfd_create("shrunk", MFD_CLOEXEC), 0);
    rd_outq_file(&conn->out, file, 0, 10);
    rd_file_unref(file);
    rd_conn_mark_dirty(conn);
    turn();
    rd_disk_wait_idle(&loop); /* a job has found out the kind of file */
    rd_loop_run_posted(&loop);
}

static const struct {
    void (*leave)(rd_conn *conn);
    unsigned eofs, closed, files_cut;
} departures[] = {
    {leave, 1, 0, 0},
    {leave_with_unread_bytes, 0, 1, 0},
    {leave_while_nobody_reads, 0, 1, 0},
    {leave_before_the_answer, 0, 1, 0},
    {leave_a_file_that_shrank, 0, 1, 1},
};

static void test_peers_that_leave(void) {
    for (size_t i = 0; i < sizeof(departures) / sizeof(departures[0]); i++) {
        rd_conn *conn = open_registered();
        rd_conn_ref(conn);
        departures[i].leave(conn);
        turn();
        CHECK_INT(told.eofs, departures[i].eofs);
        CHECK_SAYS(told.closed == departures[i].closed, "row %zu", i);
        CHECK_INT(told.files_cut, departures[i].files_cut);
        rd_conn_close(conn);
        rd_conn_unref(conn);
        peer = -1;
        check_gone(1);
    }
}

static void react_close(rd_conn *conn) {
    rd_conn_close(conn);
    rd_conn_close(conn); /* allowed in any state */
}

static void react_finish(rd_conn *conn) {
    queue(conn, "bye", 3);
    rd_conn_finish(conn, false);
    rd_conn_finish(conn, true); /* the first one counts */
}

static void react_flush_and_close(rd_conn *conn) {
    queue(conn, "bye", 3);
    rd_conn_flush(conn);
    rd_conn_close(conn);
    rd_conn_flush(conn);
    rd_conn_mark_dirty(conn);
}

static void test_ends_inside_a_reaction(void) {
    static void (*const reactions[])(rd_conn *) = {react_close, react_finish,
                                                   react_flush_and_close};
    for (size_t i = 0; i < 2 * sizeof(reactions) / sizeof(reactions[0]); i++) {
        rd_conn *conn = open_conn();
        told.react = reactions[i / 2];
        if (i % 2 == 0) rd_conn_read_now(conn); /* nothing to read yet */
        from_peer("x");
        if (i % 2 == 1) rd_conn_read_now(conn);
        turn();
        turn();
        CHECK_INT(take_all(), i / 2 == 0 ? -1 : 3);
        check_gone(1);
    }
}

/* ---- indexes and references ---- */

static void test_indexes(void) {
    rd_conn *conns[150];
    int peers[150];
    bool seen[256] = {false};
    for (unsigned i = 0; i < 150; i++) {
        conns[i] = open_conn();
        peers[i] = peer;
        CHECK(conns[i]->index < 256 && !seen[conns[i]->index]);
        seen[conns[i]->index & 255] = true;
    }
    uint32_t index = conns[70]->index;
    rd_conn_close(conns[70]);
    close(peers[70]);
    conns[70] = open_conn();
    peers[70] = peer;
    CHECK_INT(conns[70]->index, index);
    CHECK_INT(set.count, 150);
    for (unsigned i = 0; i < 150; i++) {
        rd_conn_close(conns[i]);
        close(peers[i]);
    }
    peer = -1;
    check_gone(150);
}

static void test_a_reference_outlives_the_turn(void) {
    rd_conn *conn = open_registered();
    rd_conn_ref(conn);
    rd_conn_close(conn);
    turn();
    turn();
    CHECK_INT(conn->state, RD_CONN_CLOSED); /* the sanitizer checks it, too */
    CHECK_INT(conn->refs, 1);
    rd_conn_unref(conn);
    check_gone(1);
}

static void test_detaching(void) {
    rd_conn *conn = open_registered();
    rd_conn_set_deadline(conn, loop.now_ms + 100);
    int fd = rd_conn_detach(conn);
    later(1000);
    CHECK_INT(told.timeouts, 0);
    CHECK_INT(write(fd, "mine", 4), 4);
    CHECK_INT(take_all(), 4);
    close(fd);
    check_gone(1);
}

/* ---- writing ---- */

/* A queue larger than the socket takes: the rest is sent when the peer has read, nothing is lost,
 * and the protocol is notified at the low watermark. */
static void test_a_large_answer(void) {
    rd_conn *conn = open_registered();
    uint64_t before = set.bytes_out;
    size_t total = 0;
    queue(conn, zeros, sizeof(zeros));
    conn->above_high = true;
    for (int i = 0; i < 1000 && conn->out.bytes > 0; i++) {
        turn();
        CHECK_INT(conn->source.interest, RD_READABLE | (conn->out.bytes > 0 ? RD_WRITABLE : 0));
        CHECK_INT(told.drained, conn->out.bytes <= (size_t)settings.output_low_bytes);
        total += (size_t)take_all();
    }
    CHECK_INT(total, sizeof(zeros));
    CHECK_INT(set.bytes_out - before, sizeof(zeros));
    CHECK_INT(rd_conn_write_deadline(conn), UINT64_MAX);
    end(conn);
}

static ssize_t write_endless(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    ssize_t taken = 0;
    (void)conn, (void)more;
    for (int i = 0; i < count; i++) taken += (ssize_t)iov[i].iov_len;
    return taken;
}

/* A socket that takes everything is offered one slice per turn, so others get their turn. */
static void test_a_slice_a_turn(void) {
    static rd_transport endless;
    endless = rd_transport_tcp;
    endless.write = write_endless;
    rd_conn *conn = open_registered();
    conn->transport = &endless;
    queue(conn, zeros, sizeof(zeros));
    rd_conn_set_flush(&set);
    CHECK_INT(conn->out.bytes, sizeof(zeros) - 262144);
    turn();
    CHECK_INT(conn->out.bytes, sizeof(zeros) - 2 * 262144);
    end(conn);
}

static void test_tell_empty_tells_once(void) {
    rd_conn *conn = open_registered();
    conn->notify_drained = true;
    queue(conn, "a", 1);
    turn();
    CHECK_INT(told.drained, 1);
    queue(conn, "b", 1);
    turn();
    CHECK_INT(told.drained, 1);
    end(conn);
}

/* ---- deadlines ---- */

static void test_deadlines(void) {
    rd_conn *conn = open_registered();
    rd_conn_set_deadline(conn, loop.now_ms + 100);
    rd_conn_set_deadline(conn, loop.now_ms + 300); /* moved away: fires early, set again */
    later(299);
    CHECK_INT(told.timeouts, 0);
    later(1);
    CHECK_INT(told.timeouts, 1);
    later(1000);
    CHECK_INT(told.timeouts, 1);
    rd_conn_set_deadline(conn, loop.now_ms + 300);
    rd_conn_set_deadline(conn, loop.now_ms + 10); /* moved closer */
    later(10);
    CHECK_INT(told.timeouts, 2);
    rd_conn_set_deadline(conn, loop.now_ms + 10);
    rd_conn_set_deadline(conn, UINT64_MAX);
    later(1000);
    CHECK_INT(told.timeouts, 2);
    end(conn);
}

static void give_time(rd_conn *conn) {
    rd_conn_set_deadline(conn, loop.now_ms + 100);
}

/* The thread is held up between the poller, which has no events, and the deadlines. */
static void turn_held_up(void (*meanwhile)(void)) {
    rd_loop_wait(&loop, &found, 0);
    pass_ms(100);
    meanwhile();
    rd_loop_process(&loop, &found);
}

static void say_one_more(void) {
    from_peer("x");
}

static void leave_peer(void) {
    shutdown(peer, SHUT_WR);
}

static void test_what_came_unseen_came_in_time(void) {
    rd_conn *conn = open_registered();
    told.react = give_time;
    give_time(conn);
    turn_held_up(say_one_more);
    CHECK_INT(told.len, 1);
    CHECK_INT(told.timeouts, 0);
    told.react = NULL;
    turn_held_up(say_one_more);
    CHECK_INT(told.len, 2);
    CHECK_INT(told.timeouts, 1); /* these bytes give it no more time */
    give_time(conn);
    told.react = rd_conn_close;
    turn_held_up(say_one_more);
    CHECK_INT(told.timeouts, 1);
    check_gone(1);
    conn = open_registered();
    give_time(conn);
    turn_held_up(leave_peer);
    CHECK_INT(told.eofs, 1);
    end(conn);
}

static void test_write_timeout(void) {
    uint64_t before = set.write_timeouts;
    rd_conn *conn = open_registered();
    rd_conn_set_deadline(conn, UINT64_MAX);
    queue(conn, zeros, sizeof(zeros));
    turn();
    for (int i = 0; i < 3; i++) { /* a slow reader lives as long as it reads */
        later((uint64_t)settings.write_timeout_ms - 1);
        CHECK_INT(told.closed, 0);
        CHECK(take_all() > 0);
        turn();
    }
    later(1);
    queue(conn, "more", 4); /* none of these bytes is taken, so they do not count */
    later((uint64_t)settings.write_timeout_ms - 1);
    CHECK_INT(set.write_timeouts, before + 1);
    check_gone(1);
}

static uint32_t unread;

static uint32_t count_unread_by_hand(rd_conn *conn) {
    (void)conn;
    return unread;
}

/* A socket that takes no more bytes until its peer has read very much. */
static rd_conn *begin_full(void) {
    static rd_transport full;
    full = rd_transport_tcp;
    full.count_unread = count_unread_by_hand;
    unread = 1000;
    rd_conn *conn = open_registered();
    conn->transport = &full;
    rd_conn_set_deadline(conn, UINT64_MAX);
    queue(conn, zeros, sizeof(zeros));
    turn();
    CHECK(conn->out.bytes > 0);
    return conn;
}

/* Bytes that the peer takes before the last quarter of a deadline start a new one. */
static void test_a_peer_that_takes_what_the_kernel_has(void) {
    const uint64_t timeout = (uint64_t)settings.write_timeout_ms, step = timeout / 4;
    uint64_t before = set.write_timeouts;
    rd_conn *conn = begin_full();
    for (int i = 0; i < 20; i++) { /* a byte in each three quarters: there is no minimum rate */
        later(3 * step);
        CHECK_INT(told.closed, 0);
        unread--;
    }
    later(step);            /* this is noticed */
    queue(conn, "more", 4); /* an attempt without success changes nothing */
    turn();
    later(timeout - 1);
    CHECK_INT(told.closed, 0);
    later(1);
    CHECK_INT(set.write_timeouts, before + 1);
    check_gone(1);
}

static void test_a_kernel_that_does_not_tell(void) {
    uint64_t before = set.write_timeouts;
    rd_conn *conn = begin_full();
    unread = 0;
    conn->stall->full_unread = 0;
    later((uint64_t)settings.write_timeout_ms - 1);
    CHECK_INT(told.closed, 0);
    later(1);
    CHECK_INT(set.write_timeouts, before + 1);
    CHECK_INT(told.write_deadline, loop.now_ms); /* its protocol may say why it ended */
    check_gone(1);
}

/* ---- ends ---- */

static void begin_lingering(void) {
    rd_conn *conn = open_registered();
    queue(conn, "last", 4);
    rd_conn_finish(conn, true);
    turn();
    CHECK_INT(conn->state, RD_CONN_LINGERING);
    CHECK_INT(take_all(), 4);
    CHECK_INT(take_all(), -1); /* half closed */
    from_peer("ignored");
    turn();
    CHECK_INT(told.len, 0);
}

static void linger_to_the_end(void) {
    shutdown(peer, SHUT_WR);
    turn();
}

static void linger_to_the_deadline(void) {
    later((uint64_t)settings.linger_timeout_ms - 1);
    CHECK_INT(told.closed, 0);
    later(1);
}

static void linger_until_too_much_came(void) {
    static char much[65536];
    for (int i = 0; i < 5 && told.closed == 0; i++) {
        CHECK(send(peer, much, sizeof(much), MSG_NOSIGNAL) > 0);
        turn();
    }
}

static void test_lingering(void) {
    static void (*const ends[])(void) = {linger_to_the_end, linger_to_the_deadline,
                                         linger_until_too_much_came};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        begin_lingering();
        ends[i]();
        CHECK_SAYS(told.closed == 1, "row %zu", i);
        CHECK_INT(told.timeouts, 0);
        check_gone(1);
    }
}

static void finish(bool linger, bool eof_before) {
    rd_conn *conn = open_registered();
    if (eof_before) shutdown(peer, SHUT_WR);
    turn();
    queue(conn, "last", 4);
    rd_conn_finish(conn, linger);
    turn();
    CHECK_INT(take_all(), 4);
    check_gone(1);
}

/* A slow reader's last answer is sent as long as the reader takes some bytes in each
 * linger_timeout_ms. */
static void test_lingering_while_the_peer_reads(void) {
    static rd_transport slow;
    slow = rd_transport_tcp;
    slow.count_unread = count_unread_by_hand;
    begin_lingering();
    rd_conn *conn = RD_CONTAINER(set.conns.next, rd_conn, in_set);
    conn->transport = &slow;
    conn->stall->full_unread = 6;
    for (unread = 5; unread > 0; unread--) {
        later((uint64_t)settings.linger_timeout_ms);
        CHECK_INT(told.closed, 0);
    }
    unread = 1;
    later((uint64_t)settings.linger_timeout_ms);
    check_gone(1);
}

/* But not for ever: with a byte in each linger_timeout_ms a client would hold a connection for
 * days. */
static void check_longest_linger(int64_t write_timeout_ms, uint64_t longest) {
    static rd_transport slow;
    slow = rd_transport_tcp;
    slow.count_unread = count_unread_by_hand;
    settings.write_timeout_ms = write_timeout_ms;
    begin_lingering();
    rd_conn *conn = RD_CONTAINER(set.conns.next, rd_conn, in_set);
    conn->transport = &slow;
    conn->stall->full_unread = unread = 1000;
    for (uint64_t lingered = 0; lingered < longest; lingered += 500) {
        CHECK_SAYS(told.closed == 0, "after %llu", (unsigned long long)lingered);
        unread--;
        later(500);
    }
    check_gone(1);
}

static void test_the_longest_linger(void) {
    const int64_t before = settings.write_timeout_ms;
    check_longest_linger(9000, 9000);
    check_longest_linger(1000, (uint64_t)settings.linger_timeout_ms);
    settings.write_timeout_ms = before;
}

static void test_finishing_without_a_linger(void) {
    finish(false, false);
    finish(false, true);
    finish(true, true); /* no byte can be unread */
    settings.linger_timeout_ms = 0;
    finish(true, false);
    settings.linger_timeout_ms = 2000;
}

static void test_all(void) {
    test_reading();
    test_a_half_closed_peer_is_answered();
    test_a_waiting_connection_is_registered_by_its_flush();
    test_peers_that_leave();
    test_ends_inside_a_reaction();
    test_indexes();
    test_a_reference_outlives_the_turn();
    test_detaching();
    test_a_large_answer();
    test_a_slice_a_turn();
    test_tell_empty_tells_once();
    test_deadlines();
    test_what_came_unseen_came_in_time();
    test_write_timeout();
    test_a_peer_that_takes_what_the_kernel_has();
    test_a_kernel_that_does_not_tell();
    test_lingering();
    test_lingering_while_the_peer_reads();
    test_the_longest_linger();
    test_finishing_without_a_linger();
}

int main(void) {
    return check_on_both_pollers(test_all);
}
