/* SPDX-License-Identifier: MIT
 *
 * transport/parting: connections that are told of a stop one by one: when, in which order, how many
 * in a turn, and what becomes of those that end before or are left over.
 */
#include "transport/parting.h"

#include <unistd.h>

#include "conn_notes.h"
#include "hand_clock.h"

enum { CROWD = 300, SPAN_MS = 10000 };

static rd_conn *crowd[CROWD];
static int peers[CROWD];
static int order[CROWD]; /* of those that were told */
static int count;

/* ---- a protocol that waits, and closes when it is told ---- */

static int number_of(const rd_conn *conn) {
    int number = 0;
    while (number < CROWD && crowd[number] != conn) number++;
    return number;
}

static void on_shutdown(rd_conn *conn) {
    if (!rd_parting_is_ending(conn) && rd_parting_add(conn)) return;
    order[count++] = number_of(conn);
    rd_conn_close(conn);
}

static rd_protocol waiting;

static void tell(rd_conn *conn) {
    rd_conn_shut_down(conn);
}

static void gather(uint64_t span_ms) {
    waiting = notes;
    waiting.on_shutdown = on_shutdown;
    count = 0;
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = open_pair_with(&rd_transport_tcp, &waiting, &peers[i]);
    }
    rd_parting_begin(&set, span_ms);
    rd_conn_set_each(&set, tell);
}

static void leave(void) {
    rd_parting_end(&set);
    rd_conn_set_each(&set, rd_conn_close);
    for (int i = 0; i < CROWD; i++) close(peers[i]);
    CHECK(rd_list_is_empty(&set.conns));
    CHECK_INT(set.count, 0);
}

static void turn(void) {
    rd_loop_unlock(&loop);
    rd_loop_wait(&loop, &found, 0);
    rd_loop_lock(&loop);
    rd_loop_process(&loop, &found);
}

/* ---- the span ---- */

static bool is_ascending(void) {
    for (int i = 1; i < CROWD; i++) {
        if (order[i] < order[i - 1]) return false;
    }
    return true;
}

/* Each tenth of the time has its part. 300 fall into ten tenths so that one stays empty once in
 * 10^12 times. */
static void test_spread(void) {
    int at_once = 0, before[CROWD];
    for (int round = 0; round < 2; round++) {
        gather(SPAN_MS);
        CHECK_INT(count, 0);
        CHECK(rd_list_is_empty(&set.conns));
        for (int tenth = 0; tenth < 10; tenth++) {
            const int then = count;
            for (int ms = 0; ms < SPAN_MS / 10; ms++) {
                const int told_before = count;
                CHECK(rd_parting_is_in_use(&set) == (count < CROWD));
                pass_ms(1);
                turn();
                if (count - told_before > at_once) at_once = count - told_before;
            }
            CHECK(count > then);
        }
        CHECK_INT(count, CROWD);
        CHECK(at_once <= RD_PARTING_PER_TURN);
        CHECK(!is_ascending());
        if (round == 1) CHECK(memcmp(order, before, sizeof(order)) != 0);
        memcpy(before, order, sizeof(order));
        CHECK(!rd_parting_is_in_use(&set));
        leave();
    }
}

/* The loop was busy for all that time. */
static void test_few_in_a_turn(void) {
    gather(SPAN_MS);
    pass_ms(2 * SPAN_MS);
    for (int turns = 1; count < CROWD; turns++) {
        turn();
        CHECK_INT(count, turns * RD_PARTING_PER_TURN < CROWD ? turns * RD_PARTING_PER_TURN : CROWD);
        if (count != turns * RD_PARTING_PER_TURN) break;
        pass_ms(1);
    }
    CHECK_INT(count, CROWD);
    leave();
}

static void test_shorter_than_its_slots(void) {
    gather(1);
    turn();
    CHECK_INT(count, 0);
    for (int i = 0; i < CROWD; i++) {
        pass_ms(1);
        turn();
    }
    CHECK_INT(count, CROWD);
    leave();
}

/* ---- without it ---- */

static void test_no_span(void) {
    gather(0);
    CHECK(set.parting == NULL);
    CHECK_INT(count, CROWD);
    CHECK(!rd_parting_is_in_use(&set));
    leave();
}

static void test_too_late(void) {
    int peer;
    gather(SPAN_MS);
    pass_ms(SPAN_MS);
    while (count < CROWD) {
        turn();
        pass_ms(1);
    }
    turn();
    rd_conn *late = open_pair_with(&rd_transport_tcp, &waiting, &peer);
    CHECK(!rd_parting_add(late));
    close(peer);
    leave();
}

static void test_later_than_others(void) {
    int peer;
    gather(SPAN_MS);
    for (int ms = 0; ms < SPAN_MS / 2; ms++) {
        pass_ms(1);
        turn();
    }
    const int before = count;
    rd_conn *late = open_pair_with(&rd_transport_tcp, &waiting, &peer);
    rd_conn_shut_down(late);
    CHECK(rd_conn_is_open(late));
    CHECK_INT(count, before);
    order[0] = 0; /* makes room: it is no member of the crowd */
    count--;
    for (int ms = 0; ms < SPAN_MS / 2; ms++) {
        pass_ms(1);
        turn();
    }
    CHECK_INT(count, CROWD);
    close(peer);
    leave();
}

/* ---- what ends before ---- */

static void test_clients_that_leave(void) {
    gather(SPAN_MS);
    for (int i = 0; i < CROWD; i += 2) rd_conn_close(crowd[i]);
    turn();
    pass_ms(SPAN_MS);
    while (count < CROWD / 2) {
        turn();
        pass_ms(1);
    }
    for (int i = 0; i < count; i++) CHECK_INT(order[i] % 2, 1);
    CHECK(!rd_parting_is_in_use(&set));
    leave();
}

static void test_the_end_of_all(void) {
    gather(SPAN_MS);
    rd_parting_end(&set);
    CHECK(set.parting == NULL);
    CHECK_INT(count, 0);
    rd_conn_set_each(&set, tell);
    CHECK_INT(count, CROWD);
    pass_ms(SPAN_MS);
    turn();
    leave();
}

static void test_all(void) {
    test_spread();
    test_few_in_a_turn();
    test_shorter_than_its_slots();
    test_no_span();
    test_too_late();
    test_later_than_others();
    test_clients_that_leave();
    test_the_end_of_all();
}

int main(void) {
    return check_on_both_pollers(test_all);
}
