/* SPDX-License-Identifier: MIT
 *
 * OpenSSL's buffers of connections, which are kept for a number of them and freed for all others;
 * see tls_flow.h.
 */

#include "check.h"
#include "hand_clock.h"
#include "heap_use.h"
#include "tls/tls_flow.h"
#include "tls_conn.h"

#define ALL (RD_TLS_KEPT + 8)

static rd_conn *conns[ALL];
static int peers[ALL];
static tls_client clients[ALL];

static bool is_kept(int i) {
    return rd_tls_of(conns[i])->keeper > 0;
}

static void choose(int i) {
    peer = peers[i];
    client = clients[i];
}

static void ask(int i) {
    choose(i);
    told.len = 0;
    say("hello", 5);
    carry_in_pieces(SIZE_MAX);
    CHECK_BYTES(told.bytes, told.len, "hello");
    queue(conns[i], "answer", 6);
    turn();
    check_reads("answer");
}

static void open_all(void) {
    for (int i = 0; i < ALL; i++) {
        conns[i] = open_shaken();
        peers[i] = peer;
        clients[i] = client;
        ask(i);
    }
}

static void close_one(int i) {
    choose(i);
    rd_conn_close(conns[i]);
    rd_conn_unref(conns[i]);
    turn();
    close(peer);
    free_client(&client);
}

static void close_all(void) {
    for (int i = 0; i < ALL; i++) close_one(i);
}

static int count_kept(void) {
    int count = 0;
    for (int i = 0; i < ALL; i++) count += is_kept(i);
    return count;
}

static void test_as_many_as_there_are_places_keep_their_buffers(void) {
    open_all();
    for (int i = 0; i < ALL; i++) CHECK_INT(is_kept(i), i < RD_TLS_KEPT);
    for (int i = 0; i < ALL; i++) ask(i); /* those without one do not take another's */
    for (int i = 0; i < ALL; i++) CHECK_INT(is_kept(i), i < RD_TLS_KEPT);
    close_all();
}

static void test_a_place_goes_over_when_its_owner_is_idle(void) {
    open_all();
    pass_ms(RD_TLS_KEPT_IDLE_MS - 1);
    turn();
    ask(ALL - 1);
    CHECK(!is_kept(ALL - 1));
    pass_ms(1);
    turn();
    ask(ALL - 1);
    CHECK(is_kept(ALL - 1));
    CHECK_INT(count_kept(), RD_TLS_KEPT);
    for (int i = 0; i < ALL; i++) ask(i);
    CHECK_INT(count_kept(), RD_TLS_KEPT);
    close_all();
}

static void test_a_place_is_free_when_its_connection_is_closed(void) {
    open_all();
    close_one(3);
    conns[3] = open_shaken();
    peers[3] = peer;
    clients[3] = client;
    for (int tries = 0; tries < RD_TLS_KEPT && !is_kept(3); tries++) ask(3);
    CHECK(is_kept(3));
    CHECK_INT(count_kept(), RD_TLS_KEPT);
    close_all();
}

/* The beginning of a record lies in the buffers, which are not freed with it. */
static void test_an_owner_with_a_part_of_a_record_keeps_its_place(void) {
    char *bytes;
    open_all();
    choose(0);
    told.len = 0;
    say("and more", 8);
    const size_t len = take_ciphertext(&client, &bytes);
    send_raw(bytes, len - 3);
    turn();
    pass_ms(2 * RD_TLS_KEPT_IDLE_MS);
    turn();
    for (int i = RD_TLS_KEPT; i < ALL; i++) {
        for (int tries = 0; tries < 4; tries++) ask(i);
        CHECK(is_kept(i));
    }
    CHECK(is_kept(0));
    choose(0);
    told.len = 0;
    send_raw(bytes + len - 3, 3);
    turn();
    CHECK_BYTES(told.bytes, told.len, "and more");
    free(bytes);
    close_all();
}

/* With a sanitizer there is nothing to compare. */
static void test_others_have_no_buffers(void) {
    open_all();
    const size_t before = heap_use();
    for (int i = RD_TLS_KEPT; i < ALL; i++) ask(i);
    const size_t after = heap_use();
    CHECK(before == 0 || after < before + 8192);
    close_all();
}

static void test_all(void) {
    test_as_many_as_there_are_places_keep_their_buffers();
    test_a_place_goes_over_when_its_owner_is_idle();
    test_a_place_is_free_when_its_connection_is_closed();
    test_an_owner_with_a_part_of_a_record_keeps_its_place();
    test_others_have_no_buffers();
}

int main(void) {
    return check_tls(test_all, false);
}
