/* SPDX-License-Identifier: MIT
 *
 * transport/conn_send: long sends in turns. Short answers leave before them, a turn has a fraction
 * of a millisecond for all of them, and the next one goes on where it ended.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "conn_notes.h"
#include "hand_clock.h"

#define COUNT    5
#define SLICE    262144
#define SLICE_NS 100000

static rd_conn *conns[COUNT];
static int peers[COUNT];
static const char zeros[4 * SLICE];
static char order[64]; /* the connections that sent, a letter each */

/* A transport that takes everything it is offered, in a tenth of a millisecond. */
static ssize_t write_slowly(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    size_t taken = 0;
    (void)more;
    for (int i = 0; i < count; i++) taken += iov[i].iov_len;
    for (int i = 0; i < COUNT; i++) {
        if (conns[i] == conn) order[strlen(order)] = (char)((taken > 1000 ? 'A' : 'a') + i);
    }
    hand_clock_ns += SLICE_NS;
    return (ssize_t)taken;
}

static void open_all(void) {
    static rd_transport slow;
    slow = rd_transport_tcp;
    slow.write = write_slowly;
    rd_address nobody = {0};
    for (int i = 0; i < COUNT; i++) {
        int pair[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        peers[i] = pair[1];
        conns[i] = rd_conn_open(&set, pair[0], &slow, &notes, &nobody);
        rd_conn_read_now(conns[i]);
    }
    set.long_sent_ns = hand_clock_ns;
}

static void close_all(void) {
    for (int i = 0; i < COUNT; i++) {
        if (conns[i] != NULL) rd_conn_close(conns[i]);
        close(peers[i]);
    }
    rd_loop_wait(&loop, &found, 0);
    rd_loop_process(&loop, &found);
    CHECK(!rd_conn_set_has_long(&set));
}

static void queue(int who, size_t len) {
    rd_outq_copy(&conns[who]->out, &set.chunks, zeros, len);
    rd_conn_mark_dirty(conns[who]);
}

/* The connections that send until the end of a turn. */
static const char *turn(void) {
    memset(order, 0, sizeof(order));
    rd_conn_set_flush(&set);
    rd_conn_set_send_long(&set);
    rd_loop_wait(&loop, &found, 0);
    rd_loop_process(&loop, &found);
    return order;
}

static void test_short_answers_come_first(void) {
    open_all();
    for (int i = 0; i < COUNT - 1; i++) queue(i, sizeof(zeros));
    queue(COUNT - 1, 100);
    rd_conn_set_send_long(&set); /* they are in no line yet, so nothing is sent */
    CHECK_STR(turn(), "eABC");
    CHECK(rd_conn_set_has_long(&set));
    CHECK_INT(conns[0]->out.bytes, sizeof(zeros) - SLICE);
    CHECK_INT(conns[3]->out.bytes, sizeof(zeros));
    close_all();
}

/* A connection that can take more goes behind those that have sent nothing yet. */
static void test_each_in_turn_until_all_is_sent(void) {
    char all[64] = "";
    open_all();
    for (int i = 0; i < COUNT; i++) queue(i, sizeof(zeros));
    for (int turns = 0; turns < 12; turns++) strcat(all, turn());
    CHECK_STR(all, "ABCDEABCDEABCDEABCDE");
    for (int i = 0; i < COUNT; i++) CHECK_INT(conns[i]->out.bytes, 0);
    CHECK_STR(turn(), "");
    close_all();
}

/* Half of the time at most, and at most a millisecond. */
static void test_as_long_as_the_application_took(void) {
    open_all();
    for (int i = 0; i < COUNT; i++) queue(i, sizeof(zeros));
    CHECK_INT(strlen(turn()), 3);
    hand_clock_ns += 4 * SLICE_NS;
    CHECK_INT(strlen(turn()), 4);
    pass_ms(50);
    CHECK_INT(strlen(turn()), 10);
    close_all();
}

static void test_what_ends_in_the_line(void) {
    open_all();
    for (int i = 0; i < COUNT; i++) queue(i, sizeof(zeros));
    CHECK_STR(turn(), "ABC");
    rd_conn_close(conns[3]);
    conns[3] = NULL;
    rd_conn_finish(conns[4], false); /* everything queued is still sent */
    CHECK_INT(memchr(turn(), 'E', sizeof(order)) != NULL, 1);
    for (int turns = 0; turns < 12; turns++) turn();
    CHECK_INT(told.closed, 2);
    conns[4] = NULL;
    close_all();
}

/* The thread was held up, or the line is long: the peer did not cause that. */
static void test_a_deadline_in_the_line(void) {
    open_all();
    for (int i = 0; i < COUNT; i++) queue(i, sizeof(zeros));
    CHECK_STR(turn(), "ABC");
    pass_ms((uint64_t)settings.write_timeout_ms);
    memset(order, 0, sizeof(order));
    rd_loop_wait(&loop, &found, 0);
    rd_loop_process(&loop, &found);
    CHECK_INT(strlen(order), 3);
    CHECK_INT(set.write_timeouts, 0);
    CHECK_STR(turn(), "DEDEDEDE"); /* the others are in the line again */
    close_all();
}

/* A set without turns sends everything it can at once. */
static void test_a_set_without_turns(void) {
    set.shares_sending = false;
    open_all();
    for (int i = 0; i < COUNT; i++) queue(i, sizeof(zeros));
    memset(order, 0, sizeof(order));
    rd_conn_set_flush(&set);
    CHECK_STR(order, "ABCDE");
    CHECK(!rd_conn_set_has_long(&set));
    close_all();
    set.shares_sending = true;
}

static void test_all(void) {
    set.shares_sending = true;
    test_short_answers_come_first();
    test_each_in_turn_until_all_is_sent();
    test_as_long_as_the_application_took();
    memset(&told, 0, sizeof(told));
    test_what_ends_in_the_line();
    test_a_deadline_in_the_line();
    test_a_set_without_turns();
}

int main(void) {
    return check_on_both_pollers(test_all);
}
