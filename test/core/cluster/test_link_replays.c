/* SPDX-License-Identifier: MIT
 *
 * The replays of a link: the seam between replay and messages, what is asked for and not wanted any
 * more, who waits for whom, and what becomes of a replay without an answer.
 */
#include "base/alloc.h"
#include "link_workers.h"

/* A client comes and goes while the other worker publishes: it gets every message once, in order.
 */
static void test_the_seam(void) {
    enum { ROUNDS = 300, EACH = 7 };
    worker *reader = &workers[0];
    int published = 0;
    begin();
    rd_link_keep(workers[1].link, text("news"), false, &(rd_relay_terms){1000, 0, 0});
    settle(&workers[1]);
    for (int round = 0; round < ROUNDS; round++) {
        asker asker;
        for (int i = 0; i < EACH; i++) publish(&workers[1], published++, 0);
        CHECK(ask(&asker, reader, "news", reader->last_id, true));
        for (int i = 0; i < round % EACH; i++) publish(&workers[1], published++, 0);
        turn_until(&asker.is_over);
        CHECK_INT(asker.kind, RD_REPLAY_WHOLE);
        for (int i = 0; i < EACH; i++) publish(&workers[1], published++, 0);
        if (round % 3 == 0) turn();
        reader->wants_news = false;
        rd_link_unsubscribe(reader->link, text("news"), false);
        if (check_failed > 0) break;
    }
    settle(&workers[1]);
    asker last;
    CHECK(ask(&last, reader, "news", reader->last_id, true));
    turn_until(&last.is_over);
    CHECK_INT(reader->count, published);
    for (int i = 0; i < published && check_failed == 0; i++) CHECK_INT(reader->heard[i], i);
    finish();
}

static uint64_t sent_to_all(void) {
    rd_hub_stats stats;
    rd_hub_thread_stats(hub, &stats);
    return stats.sent;
}

/* The hub subscribes a process that asks. If the process no longer wants the channel, the hub sends
 * it nothing. */
static void test_asked_for_and_not_wanted(void) {
    asker asker, second;
    begin();
    CHECK(ask(&asker, &workers[0], "news", 1, true));
    rd_link_replay_cancel(&asker.replay);
    rd_link_replay_cancel(&asker.replay);
    settle(&workers[0]);
    settle(&workers[0]);
    CHECK(!asker.is_over);
    publish(&workers[1], 1, 0);
    settle(&workers[1]);
    CHECK_INT(sent_to_all(), 0);
    /* The last subscriber unsubscribes while the answer for another one is due. */
    want(&workers[0]);
    CHECK(ask(&second, &workers[0], "news", 1, true));
    workers[0].wants_news = false;
    rd_link_unsubscribe(workers[0].link, text("news"), false);
    turn_until(&second.is_over);
    CHECK_INT(second.kind, RD_REPLAY_NONE);
    publish(&workers[1], 2, 0);
    hear(&workers[0], 1);
    finish();
}

/* A few replays are at the hub. The others wait here, and a replay that is cancelled here costs
 * nothing. */
static void test_replays_wait_for_each_other(void) {
    enum { ALL = 1000, AT_ONCE = 8 };
    static asker askers[ALL];
    begin();
    rd_hub_thread_stop(hub);
    for (int i = 0; i < ALL; i++) CHECK(ask(&askers[i], &workers[0], "news", 1, false));
    CHECK_INT(workers[0].link->asked, AT_ONCE);
    const size_t queued = workers[0].link->conn->out.bytes;
    for (int i = AT_ONCE; i < ALL - 1; i++) rd_link_replay_cancel(&askers[i].replay);
    CHECK_INT(workers[0].link->conn->out.bytes, queued);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    turn_until(&askers[ALL - 1].is_over);
    for (int i = 0; i < AT_ONCE; i++) CHECK(askers[i].is_over);
    for (int i = AT_ONCE; i < ALL - 1; i++) CHECK(!askers[i].is_over);
    CHECK_INT(workers[0].link->asked, 0);
    finish();
}

static void turn_with_timers(void) {
    static rd_ready_set found;
    for (int i = 0; i < WORKERS; i++) rd_link_flush(workers[i].link);
    rd_loop_wait(&loop, &found, rd_loop_timeout(&loop));
    rd_loop_process(&loop, &found);
}

/* Whether their replays were sent to the hub or not, the clients are subscribed, and published
 * messages reach them. */
static void test_replays_without_an_answer(void) {
    enum { ALL = 600 };
    static asker askers[ALL];
    begin();
    rd_hub_thread_stop(hub);
    workers[0].link->wait_ms = 5;
    for (int i = 0; i < ALL; i++) CHECK(ask(&askers[i], &workers[0], "news", 1, i % 2 == 0));
    rd_link_replay_cancel(&askers[0].replay);
    rd_link_replay_cancel(&askers[100].replay);
    while (!askers[ALL - 1].is_over && check_failed == 0) turn_with_timers();
    for (int i = 0; i < ALL; i++) {
        if (!CHECK(askers[i].is_over != (i == 0 || i == 100))) break;
        CHECK(!askers[i].is_over || (askers[i].kind == RD_REPLAY_GAP && askers[i].replay.is_late));
    }
    CHECK_INT(workers[0].link->waiting, 0);
    CHECK(!rd_timer_is_armed(&workers[0].link->deadline));
    workers[0].link->wait_ms = 60000;
    CHECK_INT(rd_hub_thread_start(hub), 0);
    settle(&workers[0]);
    publish(&workers[1], 4711, 0);
    hear(&workers[0], 1);
    CHECK_INT(workers[0].link->asked, 0);
    finish();
}

static size_t no_room(const rd_hub_link *link) {
    (void)link;
    return 0;
}

/* The timer may still be armed for what was settled. */
static void wait_only(rd_link *link, uint64_t wait_ms) {
    if (rd_timer_is_armed(&link->deadline)) rd_timer_cancel(&link->deadline);
    link->wait_ms = wait_ms;
}

/* The hub may read this message before the subscription, which comes by another link. */
static void publish_and_look(void) {
    static rd_ready_set found;
    publish(&workers[1], 1, 0);
    for (int i = 0; i < WORKERS; i++) rd_link_flush(workers[i].link);
    rd_loop_wait(&loop, &found, 1000);
    rd_loop_process(&loop, &found);
}

static int last_heard(const worker *worker) {
    return worker->count == 0 ? 0 : worker->heard[worker->count - 1];
}

/* The hub has no room for answers: clients that wait there are subscribed all the same. */
static void test_a_hub_that_has_no_room_to_answer(void) {
    asker asker;
    begin();
    rd_link_keep(workers[0].link, text("news"), false, &(rd_relay_terms){10, 0, 0});
    settle(&workers[0]);
    rd_loop_lock(&hub->loop);
    rd_hub_room *room = hub->hub.room;
    hub->hub.room = no_room;
    rd_loop_unlock(&hub->loop);
    wait_only(workers[0].link, 5);
    CHECK(ask(&asker, &workers[0], "news", 1, true));
    while (!asker.is_over && check_failed == 0) turn_with_timers();
    while (workers[0].count == 0 && check_failed == 0) publish_and_look();
    rd_loop_lock(&hub->loop);
    hub->hub.room = room;
    rd_loop_unlock(&hub->loop);
    publish(&workers[1], 2, 0); /* wakes the hub */
    rd_link_flush(workers[1].link);
    while (workers[0].link->asked > 0 && check_failed == 0) turn_with_timers();
    while (last_heard(&workers[0]) != 2 && check_failed == 0) turn_with_timers();
    CHECK_INT(asker.messages, 0); /* the answer came too late for this replay */
    finish();
}

static void begin_with_messages(int count, int bytes, size_t queue_bytes) {
    char *payload = rd_alloc_zero((size_t)bytes);
    begin();
    rd_hub_thread_free(hub);
    hub = NULL;
    for (int i = 0; i < WORKERS; i++) rd_link_free(workers[i].link);
    hub = rd_hub_thread_new((rd_history_limits){1000, 1 << 26}, queue_bytes);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    settings.hub_queue_bytes = (int64_t)queue_bytes;
    for (int i = 0; i < WORKERS; i++) {
        int fds[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        workers[i].number = rd_hub_thread_add(hub, fds[0], RD_HUB_WORKER, NULL);
        workers[i].link = rd_link_open(&loop, &settings, fds[1], &ops, &workers[i]);
    }
    rd_link_keep(workers[0].link, text("news"), false, &(rd_relay_terms){(uint32_t)count, 0, 0});
    for (int i = 0; i < count; i++) {
        rd_link_publish(workers[0].link, text("news"), rd_slice_of(payload, (size_t)bytes), 0);
    }
    settle(&workers[0]);
    rd_free(payload);
}

/* Clients that ask for much wait for each other. A client that asks for little does not wait for
 * all of them. */
static void test_a_client_that_asks_for_much(void) {
    enum { ALL = 400, OTHERS = 3 }; /* one may share a line with the greedy client */
    static asker askers[ALL], others[OTHERS];
    begin_with_messages(90, 100000, 1 << 26);
    for (int i = 0; i < ALL; i++) CHECK(ask(&askers[i], &workers[0], "news", 0, false));
    turn_until(&askers[7].is_over);
    for (int i = 0; i < OTHERS; i++) {
        CHECK(ask_from(&others[i], &workers[0], (uint8_t)(i + 1)));
    }
    while (!others[0].is_over && !others[1].is_over && check_failed == 0) turn_with_timers();
    CHECK(!askers[ALL / 2].is_over);
    for (int i = 0; i < ALL; i++) rd_link_replay_cancel(&askers[i].replay);
    for (int i = 0; i < OTHERS; i++) rd_link_replay_cancel(&others[i].replay);
    finish();
}

/* One answer fills what a link may have of a small queue, and the flush empties it at once: no
 * event of the poller announces the room for the next answer. The hub's timer, every 5 s, would be
 * too late. */
static void test_answers_that_fill_a_small_queue(void) {
    enum { ALL = 8 };
    static asker askers[ALL];
    begin_with_messages(10, 2000, 1 << 16);
    wait_only(workers[0].link, 3000);
    for (int i = 0; i < ALL; i++) CHECK(ask(&askers[i], &workers[0], "news", 0, false));
    CHECK_INT(workers[0].link->asked, ALL);
    while (!askers[ALL - 1].is_over && check_failed == 0) turn_with_timers();
    for (int i = 0; i < ALL; i++) CHECK(askers[i].is_over && !askers[i].replay.is_late);
    finish();
}

/* All replays together have had more bytes than their budget: the next ones wait for the timer, and
 * then come. The debt is more than the time since the beginning can have repaid. */
static void test_replays_have_a_budget(void) {
    enum { ALL = 3, DEBT = 9 << 20 };
    static asker askers[ALL];
    begin_with_messages(90, 100000, 1 << 26);
    rd_link *link = workers[0].link;
    CHECK(link->credit > 0);
    const int64_t before = link->credit;
    CHECK(ask(&askers[0], &workers[0], "news", 0, false));
    turn_until(&askers[0].is_over);
    CHECK(link->credit < before);
    link->credit = -DEBT;
    for (int i = 1; i < ALL; i++) CHECK(ask(&askers[i], &workers[0], "news", 0, false));
    CHECK_INT(link->asked, 0);
    CHECK(rd_timer_is_armed(&link->pause));
    while (!askers[ALL - 1].is_over && check_failed == 0) turn_with_timers();
    CHECK_INT(askers[ALL - 1].kind, RD_REPLAY_WHOLE);
    finish();
}

/* A replay that waited for room leaves in the turn that makes the room. */
static void test_a_replay_waits_for_room(void) {
    asker asker;
    begin();
    rd_link *link = workers[0].link;
    rd_link_keep(link, text("news"), false, &(rd_relay_terms){1, 0, 0});
    settle(&workers[0]);
    link->settings.hub_queue_bytes = 1000;
    while (link->conn->out.bytes < 1960)
        rd_link_keep(link, text("news"), false, &(rd_relay_terms){1, 0, 0});
    CHECK(ask(&asker, &workers[0], "news", 0, false));
    CHECK_INT(link->asked, 0);
    turn_until(&asker.is_over);
    finish();
}

/* When a replay subscribes, a change that waited for the same channel is dropped. */
static void test_a_replay_is_a_subscription(void) {
    static char payload[10000];
    asker asker;
    begin();
    want(&workers[0]);
    rd_hub_thread_stop(hub);
    while (rd_link_publish(workers[0].link, text("other"), rd_slice_of(payload, sizeof(payload)),
                           0) == 1) {
        rd_link_flush(workers[0].link);
    }
    while (rd_link_publish(workers[0].link, text("other"), RD_SLICE("x"), 0) == 1) continue;
    workers[0].wants_news = false;
    rd_link_unsubscribe(workers[0].link, text("news"), false);
    CHECK(!rd_changes_is_empty(&workers[0].link->changes));
    CHECK(ask(&asker, &workers[0], "news", 0, true));
    CHECK(rd_changes_is_empty(&workers[0].link->changes));
    CHECK_INT(rd_hub_thread_start(hub), 0);
    turn_until(&asker.is_over);
    const int before = workers[0].count;
    publish(&workers[1], 4711, 0);
    while (workers[0].count == before && check_failed == 0) turn();
    CHECK_INT(workers[0].heard[before], 4711);
    workers[0].wants_news = false;
    rd_link_unsubscribe(workers[0].link, text("news"), false);
    settle(&workers[0]);
    CHECK_INT(channels_at_hub(), 0);
    finish();
}

int main(void) {
    test_the_seam();
    test_asked_for_and_not_wanted();
    test_replays_wait_for_each_other();
    test_answers_that_fill_a_small_queue();
    test_replays_have_a_budget();
    test_a_client_that_asks_for_much();
    test_replays_without_an_answer();
    test_a_hub_that_has_no_room_to_answer();
    test_a_replay_waits_for_room();
    test_a_replay_is_a_subscription();
    return check_summary();
}
