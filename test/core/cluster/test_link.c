/* SPDX-License-Identifier: MIT
 *
 * A worker's side of the hub, two of them on one loop that this test turns by hand, against a hub
 * that runs: messages and their echo, a hub that rests, goes, or talks nonsense.
 */
#include "base/error.h"
#include "link_workers.h"

static void test_messages_and_their_echo(void) {
    begin();
    want(&workers[0]);
    want(&workers[1]);
    CHECK_INT(publish(&workers[0], 1, RD_RELAY_TEXT), 1);
    CHECK_INT(publish(&workers[0], 2, RD_RELAY_ECHO), 1);
    hear(&workers[0], 1);
    hear(&workers[1], 2);
    CHECK_INT(workers[0].heard[0], 2);
    CHECK_INT(workers[1].heard[0], 1);
    CHECK_INT(workers[1].heard[1], 2);
    CHECK_INT(rd_link_publish(workers[0].link, text(""), text("x"), 0), RD_ERR_RELAY_CHANNEL);
    CHECK_INT(workers[0].link->published, 2);
    finish();
}

static void test_rules_come_back(void) {
    begin();
    rd_link_keep(workers[0].link, text("news"), false, &(rd_relay_terms){10, 0, 0});
    settle(&workers[0]);
    settle(&workers[1]);
    CHECK(workers[0].rules == 1 && workers[1].rules == 1);
    want(&workers[0]);
    publish(&workers[0], 7, RD_RELAY_ECHO);
    hear(&workers[0], 1);
    CHECK(workers[0].last_id > 0);
    finish();
}

/* A restart of the hub takes a while: messages that fit are kept, then publishing returns false. */
static void test_a_hub_that_rests(void) {
    static char payload[10000];
    int taken = 0;
    begin();
    want(&workers[0]);
    rd_hub_thread_stop(hub);
    while (rd_link_publish(workers[1].link, text("news"), rd_slice_of(payload, sizeof(payload)),
                           0) == 1) {
        taken++;
        rd_link_flush(workers[1].link);
    }
    CHECK(taken > 90 && taken < 200);
    CHECK(workers[1].link->conn->out.bytes <= 1 << 20);
    CHECK_INT(workers[1].link->refused, 1);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    settle(&workers[1]);
    hear(&workers[0], taken);
    finish();
}

/* Rules have more room, but not without limit. */
static void test_a_hub_that_never_comes_back(void) {
    begin();
    rd_hub_thread_stop(hub);
    char name[1000];
    memset(name, 'n', sizeof(name));
    int told = 0;
    for (; rd_link_is_open(workers[0].link) && told < 100000; told++) {
        rd_link_keep(workers[0].link, rd_slice_of(name, sizeof(name)), false,
                     &(rd_relay_terms){1, 0, 0});
    }
    CHECK(told > 1000 && told < 4000);
    finish();
}

static rd_slice long_name(int number) {
    static char name[1000];
    memset(name, 'n', sizeof(name));
    (void)snprintf(name, sizeof(name), "%d", number);
    return rd_slice_of(name, sizeof(name));
}

/* Four times as many subscriptions as the queue holds while the hub rests, and half of them end:
 * the link stays, and the hub learns of those that are left. */
static void test_subscriptions_are_state(void) {
    enum { ALL = 4000, LEFT = ALL / 2 };
    begin();
    rd_hub_thread_stop(hub);
    for (int i = 0; i < ALL; i++) rd_link_subscribe(workers[0].link, long_name(i), false);
    CHECK(workers[0].link->conn->out.bytes <= 1 << 20);
    for (int i = 0; i < ALL; i += 2) rd_link_unsubscribe(workers[0].link, long_name(i), false);
    CHECK(workers[0].link->changes.names.count < ALL);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    while (!rd_changes_is_empty(&workers[0].link->changes) && check_failed == 0) turn();
    settle(&workers[0]);
    CHECK_INT(channels_at_hub(), LEFT);
    for (int i = 1; i < ALL; i += 2) rd_link_unsubscribe(workers[0].link, long_name(i), false);
    while (!rd_changes_is_empty(&workers[0].link->changes) && check_failed == 0) turn();
    settle(&workers[0]);
    CHECK_INT(channels_at_hub(), 0);
    finish();
}

static void test_a_hub_that_goes(void) {
    asker asker, late;
    begin();
    want(&workers[0]);
    rd_hub_thread_stop(hub);
    CHECK(ask(&asker, &workers[0], "news", 1, false));
    rd_hub_thread_free(hub);
    hub = NULL;
    turn_until(&asker.is_over);
    CHECK_INT(asker.kind, RD_REPLAY_GAP);
    CHECK(!rd_link_is_open(workers[0].link));
    CHECK_INT(publish(&workers[0], 1, 0), 0);
    CHECK(!ask(&late, &workers[0], "news", 1, false));
    rd_link_subscribe(workers[0].link, text("news"), false);
    rd_link_unsubscribe(workers[0].link, text("news"), false);
    rd_loop_unlock(&loop);
    rd_link_finish(workers[0].link, 1000);
    rd_loop_lock(&loop);
    finish();
}

/* A worker that ends publishes more than a socket holds, and its loop does not turn any more. */
static void test_the_end_of_a_worker(void) {
    static char payload[1000];
    begin();
    want(&workers[0]);
    for (int i = 0; i < 900; i++) {
        rd_link_publish(workers[1].link, text("news"), rd_slice_of(payload, sizeof(payload)), 0);
    }
    rd_loop_unlock(&loop);
    rd_link_finish(workers[1].link, 10000);
    rd_loop_lock(&loop);
    rd_link_free(workers[1].link);
    workers[1].link = NULL;
    hear(&workers[0], 900);
    finish();
}

static void test_a_deadline_for_the_end(void) {
    static char payload[1000];
    begin();
    rd_hub_thread_stop(hub);
    for (int i = 0; i < 900; i++) {
        rd_link_publish(workers[1].link, text("news"), rd_slice_of(payload, sizeof(payload)), 0);
    }
    rd_loop_unlock(&loop);
    rd_link_finish(workers[1].link, 5);
    rd_loop_lock(&loop);
    CHECK(workers[1].link->conn->out.bytes > 0);
    finish();
}

static void check_refused(const rd_relay_frame *frames, int count) {
    int fds[2];
    rd_buffer out = {0};
    asker asker;
    begin();
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    rd_link_free(workers[0].link);
    workers[0].link = rd_link_open(&loop, &settings, fds[1], &ops, &workers[0]);
    CHECK(ask(&asker, &workers[0], "news", 1, false));
    for (int i = 0; i < count; i++) rd_relay_write(&frames[i], 100, &out);
    CHECK(write(fds[0], rd_buffer_ptr(&out), rd_buffer_len(&out)) > 0);
    while (rd_link_is_open(workers[0].link) && check_failed == 0) turn();
    CHECK(asker.is_over && asker.kind == RD_REPLAY_GAP);
    rd_buffer_clear(&out);
    close(fds[0]);
    finish();
}

static void test_a_hub_that_talks_nonsense(void) {
    const rd_slice news = RD_SLICE("news");
    const rd_slice own = RD_SLICE("\0\0\0\0\0\0\0\1 as it came"),
                   short_note = RD_SLICE("\0\0\0\0\0\0\0\1");
    const rd_slice other = RD_SLICE("\0\0\0\0\0\0\0\2 as it came");
    const rd_relay_frame begins[] = {{RD_RELAY_REPLAY_BEGIN, 0, 0, news, own},
                                     {RD_RELAY_REPLAY_BEGIN, 0, 0, news, own}};
    const rd_relay_frame ends[] = {{RD_RELAY_REPLAY_END, 0, 0, news, own}};
    const rd_relay_frame others[] = {{RD_RELAY_REPLAY_BEGIN, 0, 0, news, RD_SLICE("another")}};
    const rd_relay_frame kinds[] = {{RD_RELAY_REPLAY_BEGIN, 0, 0, news, own},
                                    {RD_RELAY_REPLAY_END, 0, 4, news, own}};
    const rd_relay_frame asks[] = {{RD_RELAY_REPLAY, 0, 0, news, own}};
    const rd_relay_frame shorts[] = {{RD_RELAY_REPLAY_BEGIN, 0, 0, news, short_note}};
    const rd_relay_frame not_asked[] = {{RD_RELAY_REPLAY_WAITS, 0, 0, news, other}};
    const rd_relay_frame late[] = {{RD_RELAY_REPLAY_BEGIN, 0, 0, news, own},
                                   {RD_RELAY_REPLAY_WAITS, 0, 0, news, own}};
    const rd_relay_frame mixed[] = {{RD_RELAY_REPLAY_WAITS, 0, 0, news, own},
                                    {RD_RELAY_REPLAY_WAITS, 0, 0, news, own},
                                    {RD_RELAY_REPLAY_BEGIN, 0, 0, RD_SLICE("old"), own}};
    check_refused(begins, 2);
    check_refused(ends, 1);
    check_refused(others, 1);
    check_refused(kinds, 2);
    check_refused(asks, 1);
    check_refused(shorts, 1);
    check_refused(not_asked, 1);
    check_refused(late, 2);
    check_refused(mixed, 3);
}

int main(void) {
    test_messages_and_their_echo();
    test_rules_come_back();
    test_a_hub_that_rests();
    test_a_hub_that_never_comes_back();
    test_subscriptions_are_state();
    test_a_hub_that_goes();
    test_the_end_of_a_worker();
    test_a_deadline_for_the_end();
    test_a_hub_that_talks_nonsense();
    return check_summary();
}
