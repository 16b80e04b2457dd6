/* SPDX-License-Identifier: MIT
 *
 * What is kept for the log: a flood of one kind is one line a second, and what there is no room for
 * is counted.
 */
#include "serving.h"

static void add(int code) {
    const rd_address peer = {.kind = RD_ADDRESS_UNIX};
    rd_loop_lock(&server->loop);
    rd_incidents_add(server, &peer, code);
    rd_loop_unlock(&server->loop);
}

static uint32_t take(rd_incidents_taken *taken) {
    rd_loop_lock(&server->loop);
    rd_incidents_take(server, taken);
    rd_loop_unlock(&server->loop);
    return taken->count;
}

static void test_a_flood_is_a_line_a_second(void) {
    static const int codes[] = {RD_ERR_ANSWER_SHORT, RD_ERR_ANSWER_LONG, RD_ERR_FILE_CUT,
                                RD_ERR_GIVEN_UP, RD_ERR_REPLY_CUT};
    rd_incidents_taken taken;
    start(answer_path);
    for (int i = 0; i < 5; i++) {
        for (int times = 0; times < 10; times++) add(codes[i]);
        CHECK_INT(take(&taken), 1);
        CHECK_INT(taken.kept[0].code, codes[i]);
        later(999);
        add(codes[i]);
        CHECK_INT(take(&taken), 0);
        later(1);
        add(codes[i]);
        CHECK_INT(take(&taken), 1);
        CHECK_INT(taken.lost, 0);
    }
    end();
}

/* Two more have lines again. The first one has the number of those that had none. */
static void check_next_second(int first, int second, uint32_t unnamed) {
    rd_incidents_taken taken;
    later(1000);
    add(first);
    add(second);
    CHECK_INT(take(&taken), 2);
    CHECK_INT(taken.kept[0].unnamed, unnamed);
    CHECK_INT(taken.kept[1].unnamed, 0);
    CHECK_INT(taken.lost, 0);
}

/* Scanners come in floods: a few lines a second, the first of the next second has the number of the
 * others. */
static void test_failed_handshakes(void) {
    rd_incidents_taken taken;
    start(answer_path);
    later(1000);
    for (int times = 0; times < 12; times++) add(RD_ERR_TLS_VERSION);
    CHECK_INT(take(&taken), 5);
    CHECK_INT(taken.kept[4].unnamed, 0);
    check_next_second(RD_ERR_TLS_MISSING, RD_ERR_HANDSHAKE, 7);
    end();
}

/* One client can break a rule thousands of times a second. All rules together have 100 lines. */
static void test_a_client_that_goes_on_breaking_rules(void) {
    static const int codes[] = {RD_ERR_EXPECTATION, RD_ERR_WS_OPCODE};
    rd_incidents_taken taken;
    uint32_t lines = 0;
    start(answer_path);
    later(1000);
    for (int times = 0; times < 1000; times++) {
        add(codes[times % 2]);
        lines += take(&taken);
        CHECK_INT(taken.lost, 0);
    }
    CHECK_INT(lines, 100);
    add(RD_ERR_ANSWER_SHORT); /* has its own */
    CHECK_INT(take(&taken), 1);
    check_next_second(RD_ERR_EXPECTATION, RD_ERR_EXPECTATION, 900);
    end();
}

/* A line without room does not use up the second of its kind. */
static void test_more_than_there_is_room_for(void) {
    rd_incidents_taken taken;
    start(answer_path);
    for (int i = 0; i < RD_INCIDENTS_KEPT + 3; i++) add(RD_ERR_METHOD_INVALID);
    add(RD_ERR_ANSWER_SHORT);
    add(RD_ERR_NO_DESCRIPTOR);
    CHECK_INT(take(&taken), RD_INCIDENTS_KEPT);
    CHECK_INT(taken.lost, 5);
    add(RD_ERR_ANSWER_SHORT);
    add(RD_ERR_NO_DESCRIPTOR);
    CHECK_INT(take(&taken), 2);
    CHECK_INT(taken.lost, 0);
    CHECK_INT(taken.kept[0].code, RD_ERR_ANSWER_SHORT);
    CHECK_INT(taken.kept[1].code, RD_ERR_NO_DESCRIPTOR);
    CHECK_INT(take(&taken), 0);
    end();
}

static void give_back(const rd_incidents_taken *taken, uint32_t from) {
    rd_loop_lock(&server->loop);
    rd_incidents_give_back(server, taken, from);
    rd_loop_unlock(&server->loop);
}

/* What comes back stands before what has come meanwhile, which is counted if there is no room. */
static void test_what_was_taken_and_not_logged(void) {
    rd_incidents_taken taken, again;
    start(answer_path);
    for (int i = 0; i < RD_INCIDENTS_KEPT + 3; i++) add(RD_ERR_METHOD_INVALID);
    CHECK_INT(take(&taken), RD_INCIDENTS_KEPT);
    for (int i = 0; i < 3; i++) add(RD_ERR_HOST_INVALID);
    give_back(&taken, 1);
    CHECK(rd_has_incidents(&server->incidents));
    CHECK_INT(take(&again), RD_INCIDENTS_KEPT);
    CHECK_INT(again.kept[RD_INCIDENTS_KEPT - 2].code, RD_ERR_METHOD_INVALID);
    CHECK_INT(again.kept[RD_INCIDENTS_KEPT - 1].code, RD_ERR_HOST_INVALID);
    CHECK_INT(again.lost, 3 + 2);
    CHECK(!rd_has_incidents(&server->incidents));
    give_back(&again, again.count);
    CHECK(rd_has_incidents(&server->incidents));
    CHECK_INT(take(&again), 0);
    CHECK_INT(again.lost, 5);
    end();
}

static void test_all(void) {
    test_what_was_taken_and_not_logged();
    test_a_flood_is_a_line_a_second();
    test_failed_handshakes();
    test_more_than_there_is_room_for();
    test_a_client_that_goes_on_breaking_rules();
}

int main(void) {
    return test_both_pollers(test_all);
}
