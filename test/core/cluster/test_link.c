/* SPDX-License-Identifier: MIT
 *
 * A worker's side of the hub, two of them on one loop that this test turns by hand, against a hub
 * that runs: messages and their echo, the seam between replay and messages, what is asked for and
 * not wanted any more, a hub that rests, goes, or talks nonsense.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "check.h"
#include "cluster/hub_link.h"
#include "cluster/hub_thread.h"
#include "cluster/link.h"

enum { WORKERS = 2, TURN_US = 10000000, NEWS_MAX = 100000 };

typedef struct worker {
    rd_link *link;
    int64_t number;
    bool wants_news;
    int heard[NEWS_MAX]; /* numbers of messages, live or replayed */
    int count;
    int rules;
    uint64_t last_id;
} worker;

static rd_hub_thread *hub;
static rd_loop loop;
static rd_settings settings;
static worker workers[WORKERS];

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

/* ---- what the links tell ---- */

static void note(worker *worker, const rd_relay_frame *frame) {
    char digits[16] = "";
    memcpy(digits, frame->payload.ptr, frame->payload.len < 15 ? frame->payload.len : 15);
    if (!CHECK(worker->count < NEWS_MAX)) return;
    worker->heard[worker->count++] = atoi(digits);
    if (frame->id != 0) {
        CHECK(frame->id > worker->last_id);
        worker->last_id = frame->id;
    }
}

static void on_message(rd_link *link, const rd_relay_frame *frame) {
    worker *worker = link->owner;
    if (worker->wants_news && rd_slice_equal(frame->channel, text("news"))) note(worker, frame);
}

static void on_rule(rd_link *link, const rd_relay_frame *frame) {
    CHECK(rd_slice_equal(frame->channel, text("news")));
    ((worker *)link->owner)->rules++;
}

static bool is_wanted(rd_link *link, rd_slice name, bool is_pattern) {
    const worker *worker = link->owner;
    return !is_pattern && worker->wants_news && rd_slice_equal(name, text("news"));
}

static const rd_link_ops ops = {on_message, on_rule, is_wanted};

/* ---- one who comes back ---- */

typedef struct asker {
    rd_link_replay replay;
    worker *worker;
    bool is_over, stays;
    rd_replay kind;
    int messages;
} asker;

static void on_replayed(rd_link_replay *replay, const rd_relay_frame *frame) {
    asker *asker = RD_CONTAINER(replay, struct asker, replay);
    asker->messages++;
    if (asker->stays) note(asker->worker, frame);
}

static void on_replay_end(rd_link_replay *replay, rd_replay kind) {
    asker *asker = RD_CONTAINER(replay, struct asker, replay);
    CHECK(!asker->is_over);
    asker->is_over = true;
    asker->kind = kind;
    if (!asker->stays) return;
    asker->worker->wants_news = true;
    rd_link_subscribe(asker->worker->link, text("news"), false);
}

static bool ask(asker *asker, worker *worker, const char *channel, uint64_t since, bool stays) {
    memset(asker, 0, sizeof(*asker));
    asker->replay.on_message = on_replayed;
    asker->replay.on_end = on_replay_end;
    asker->replay.bytes_max = SIZE_MAX;
    asker->worker = worker;
    asker->stays = stays;
    return rd_link_replay_begin(worker->link, &asker->replay, text(channel), false, since);
}

static bool ask_from(asker *asker, worker *worker, uint8_t address) {
    memset(asker, 0, sizeof(*asker));
    asker->replay = (rd_link_replay){.on_message = on_replayed, .on_end = on_replay_end};
    asker->replay.bytes_max = 1000;
    asker->replay.from = (rd_address){.kind = RD_ADDRESS_V4, .bytes = {127, 0, 0, address}};
    asker->worker = worker;
    return rd_link_replay_begin(worker->link, &asker->replay, text("news"), false, 0);
}

/* ---- the loop ---- */

static void turn(void) {
    static rd_ready_set found;
    bool is_behind = false;
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].link == NULL) continue;
        rd_link_flush(workers[i].link);
        is_behind |= rd_link_is_behind(workers[i].link);
    }
    rd_loop_wait(&loop, &found, is_behind ? 0 : TURN_US);
    CHECK(is_behind || found.count > 0);
    rd_loop_process(&loop, &found);
}

static void turn_until(const bool *done) {
    while (!*done && check_failed == 0) turn();
}

/* Until the hub has done all that this worker has asked for. */
static void settle(worker *worker) {
    asker asker;
    CHECK(ask(&asker, worker, "settle", 0, false));
    turn_until(&asker.is_over);
}

static void begin(void) {
    hub = rd_hub_thread_new((rd_history_limits){1000, 1 << 24}, 1 << 20);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    CHECK_INT(rd_loop_init(&loop, false), 0);
    rd_settings_init(&settings);
    settings.hub_queue_bytes = 1 << 20;
    rd_loop_lock(&loop);
    memset(workers, 0, sizeof(workers));
    for (int i = 0; i < WORKERS; i++) {
        int fds[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        workers[i].number = rd_hub_thread_add(hub, fds[0], RD_HUB_WORKER, NULL);
        workers[i].link = rd_link_open(&loop, &settings, fds[1], &ops, &workers[i]);
        CHECK(rd_link_is_open(workers[i].link));
    }
}

static void finish(void) {
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].link != NULL) rd_link_free(workers[i].link);
    }
    rd_loop_unlock(&loop);
    rd_loop_clear(&loop);
    if (hub != NULL) rd_hub_thread_free(hub);
}

static void want(worker *worker) {
    worker->wants_news = true;
    rd_link_subscribe(worker->link, text("news"), false);
    settle(worker);
}

static int publish(worker *worker, int number, unsigned flags) {
    char payload[16];
    (void)snprintf(payload, sizeof(payload), "%d", number);
    return rd_link_publish(worker->link, text("news"), text(payload), flags);
}

static void hear(worker *worker, int count) {
    while (worker->count < count && check_failed == 0) turn();
}

/* ---- tests ---- */

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
    rd_link_keep(workers[0].link, text("news"), false, 10, 0);
    settle(&workers[0]);
    settle(&workers[1]);
    CHECK(workers[0].rules == 1 && workers[1].rules == 1);
    want(&workers[0]);
    publish(&workers[0], 7, RD_RELAY_ECHO);
    hear(&workers[0], 1);
    CHECK(workers[0].last_id > 0);
    finish();
}

/* Somebody comes and goes while the other one publishes: all of it once, in order. */
static void test_the_seam(void) {
    enum { ROUNDS = 300, EACH = 7 };
    worker *reader = &workers[0];
    int published = 0;
    begin();
    rd_link_keep(workers[1].link, text("news"), false, 1000, 0);
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

/* The hub subscribes who asks; whoever does not want that any more is not sent anything. */
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
    /* The last one unsubscribes while another one's answer is due. */
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

/* A program that changes takes a while: what fits is kept, and then publishing says no. */
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

/* Rules have more room, but not for ever. */
static void test_a_hub_that_never_comes_back(void) {
    begin();
    rd_hub_thread_stop(hub);
    char name[1000];
    memset(name, 'n', sizeof(name));
    int told = 0;
    for (; rd_link_is_open(workers[0].link) && told < 100000; told++) {
        rd_link_keep(workers[0].link, rd_slice_of(name, sizeof(name)), false, 1, 0);
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

/* But for the one of settle(), which has come just before. */
static uint32_t channels_at_hub(void) {
    rd_loop_lock(&hub->loop);
    const uint32_t count = hub->hub.names.count - 1;
    rd_loop_unlock(&hub->loop);
    return count;
}

/* Four times as many subscriptions as the queue holds while the hub rests, half of which end: the
 * link stays, and the hub hears of what is left. */
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

/* A few replays are at the hub, the others wait here, where one that is not wanted any more costs
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

/* Asked for or not: the clients are subscribed, and what is published reaches them. */
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

/* The hub has no room for answers: whoever waits there is subscribed all the same. */
static void test_a_hub_that_has_no_room_to_answer(void) {
    asker asker;
    begin();
    rd_link_keep(workers[0].link, text("news"), false, 10, 0);
    settle(&workers[0]);
    rd_loop_lock(&hub->loop);
    rd_hub_room *room = hub->hub.room;
    hub->hub.room = no_room;
    rd_loop_unlock(&hub->loop);
    workers[0].link->wait_ms = 5;
    CHECK(ask(&asker, &workers[0], "news", 1, true));
    while (!asker.is_over && check_failed == 0) turn_with_timers();
    publish(&workers[1], 1, 0);
    while (workers[0].count < 1 && check_failed == 0) turn_with_timers();
    rd_loop_lock(&hub->loop);
    hub->hub.room = room;
    rd_loop_unlock(&hub->loop);
    publish(&workers[1], 2, 0); /* wakes the hub */
    rd_link_flush(workers[1].link);
    while (workers[0].link->asked > 0 && check_failed == 0) turn_with_timers();
    while (workers[0].count < 2 && check_failed == 0) turn_with_timers();
    CHECK_INT(asker.messages, 0); /* the answer came too late for it */
    finish();
}

static void begin_with_large_messages(int count, int bytes) {
    char *payload = rd_alloc_zero((size_t)bytes);
    begin();
    rd_hub_thread_free(hub);
    hub = NULL;
    for (int i = 0; i < WORKERS; i++) rd_link_free(workers[i].link);
    hub = rd_hub_thread_new((rd_history_limits){1000, 1 << 26}, 1 << 26);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    settings.hub_queue_bytes = 1 << 26;
    for (int i = 0; i < WORKERS; i++) {
        int fds[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        workers[i].number = rd_hub_thread_add(hub, fds[0], RD_HUB_WORKER, NULL);
        workers[i].link = rd_link_open(&loop, &settings, fds[1], &ops, &workers[i]);
    }
    rd_link_keep(workers[0].link, text("news"), false, (uint32_t)count, 0);
    for (int i = 0; i < count; i++) {
        rd_link_publish(workers[0].link, text("news"), rd_slice_of(payload, (size_t)bytes), 0);
    }
    settle(&workers[0]);
    rd_free(payload);
}

/* Clients that ask for much wait for each other, and nobody waits for all of theirs. */
static void test_a_client_that_asks_for_much(void) {
    enum { ALL = 400, OTHERS = 3 }; /* several: one may share a line with the greedy one */
    static asker askers[ALL], others[OTHERS];
    begin_with_large_messages(90, 100000);
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

/* More than all replays may have in one go: the rest waits for the timer, and comes. */
static void test_replays_have_a_budget(void) {
    enum { ALL = 12 };
    static asker askers[ALL];
    begin_with_large_messages(90, 100000);
    CHECK(workers[0].link->credit > 0);
    for (int i = 0; i < ALL; i++) CHECK(ask(&askers[i], &workers[0], "news", 0, false));
    turn_until(&askers[7].is_over);
    CHECK(workers[0].link->credit < 0);
    CHECK(rd_timer_is_armed(&workers[0].link->pause));
    CHECK(!askers[8].is_over);
    for (int i = 8; i < ALL; i++) rd_link_replay_cancel(&askers[i].replay);
    finish();
}

/* A replay that had to wait for room leaves in the turn that makes it. */
static void test_a_replay_waits_for_room(void) {
    asker asker;
    begin();
    rd_link *link = workers[0].link;
    rd_link_keep(link, text("news"), false, 1, 0);
    settle(&workers[0]);
    link->settings.hub_queue_bytes = 1000;
    while (link->conn->out.bytes < 1960) rd_link_keep(link, text("news"), false, 1, 0);
    CHECK(ask(&asker, &workers[0], "news", 0, false));
    CHECK_INT(link->asked, 0);
    turn_until(&asker.is_over);
    finish();
}

/* Where a replay subscribes, a change that had to wait is none any more. */
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

/* A worker that ends publishes more than a socket holds, and nobody turns its loop any more. */
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
    const rd_slice news = RD_SLICE("news"), own = RD_SLICE("\0\0\0\0\0\0\0\1");
    const rd_relay_frame begins[] = {{RD_RELAY_REPLAY_BEGIN, 0, 0, news, own},
                                     {RD_RELAY_REPLAY_BEGIN, 0, 0, news, own}};
    const rd_relay_frame ends[] = {{RD_RELAY_REPLAY_END, 0, 0, news, own}};
    const rd_relay_frame others[] = {{RD_RELAY_REPLAY_BEGIN, 0, 0, news, RD_SLICE("another")}};
    const rd_relay_frame kinds[] = {{RD_RELAY_REPLAY_BEGIN, 0, 0, news, own},
                                    {RD_RELAY_REPLAY_END, 0, 4, news, own}};
    const rd_relay_frame asks[] = {{RD_RELAY_REPLAY, 0, 0, news, own}};
    check_refused(begins, 2);
    check_refused(ends, 1);
    check_refused(others, 1);
    check_refused(kinds, 2);
    check_refused(asks, 1);
}

int main(void) {
    test_messages_and_their_echo();
    test_rules_come_back();
    test_the_seam();
    test_asked_for_and_not_wanted();
    test_a_hub_that_rests();
    test_a_hub_that_never_comes_back();
    test_subscriptions_are_state();
    test_replays_wait_for_each_other();
    test_replays_have_a_budget();
    test_a_client_that_asks_for_much();
    test_replays_without_an_answer();
    test_a_hub_that_has_no_room_to_answer();
    test_a_replay_waits_for_room();
    test_a_replay_is_a_subscription();
    test_a_hub_that_goes();
    test_the_end_of_a_worker();
    test_a_deadline_for_the_end();
    test_a_hub_that_talks_nonsense();
    return check_summary();
}
