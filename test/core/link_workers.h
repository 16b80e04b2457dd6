/* SPDX-License-Identifier: MIT
 *
 * The workers' side of the hub, for tests: two links on one loop that the test turns by hand,
 * against a hub that runs.
 */
#ifndef RD_TEST_LINK_WORKERS_H
#define RD_TEST_LINK_WORKERS_H

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "cluster/hub_link.h"
#include "cluster/hub_thread.h"
#include "cluster/link.h"

enum { WORKERS = 2, TURN_US = 10000000, NEWS_MAX = 100000 };

typedef struct worker {
    rd_link *link;
    int64_t number;
    bool wants_news;
    int heard[NEWS_MAX]; /* numbers of messages, live and replayed ones */
    int count;
    int rules;
    uint64_t last_id;
} worker;

static rd_hub_thread *hub;
static rd_loop loop;
static rd_settings settings;
static worker workers[WORKERS];

__attribute__((unused)) static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

/* ---- what the links report ---- */

__attribute__((unused)) static void note(worker *worker, const rd_relay_frame *frame) {
    char digits[16] = "";
    memcpy(digits, frame->payload.ptr, frame->payload.len < 15 ? frame->payload.len : 15);
    if (!CHECK(worker->count < NEWS_MAX)) return;
    worker->heard[worker->count++] = atoi(digits);
    if (frame->id != 0) {
        CHECK(frame->id > worker->last_id);
        worker->last_id = frame->id;
    }
}

__attribute__((unused)) static void on_message(rd_link *link, const rd_relay_frame *frame) {
    worker *worker = link->owner;
    if (worker->wants_news && rd_slice_equal(frame->channel, text("news"))) note(worker, frame);
}

__attribute__((unused)) static void on_rule(rd_link *link, const rd_relay_frame *frame) {
    CHECK(rd_slice_equal(frame->channel, text("news")));
    ((worker *)link->owner)->rules++;
}

__attribute__((unused)) static bool is_wanted(rd_link *link, rd_slice name, bool is_pattern) {
    const worker *worker = link->owner;
    return !is_pattern && worker->wants_news && rd_slice_equal(name, text("news"));
}

static const rd_link_ops ops = {on_message, on_rule, is_wanted};

/* ---- a client that comes back ---- */

typedef struct asker {
    rd_link_replay replay;
    worker *worker;
    bool is_over, stays;
    rd_replay kind;
    int messages;
} asker;

__attribute__((unused)) static void on_replayed(rd_link_replay *replay,
                                                const rd_relay_frame *frame) {
    asker *asker = RD_CONTAINER(replay, struct asker, replay);
    asker->messages++;
    if (asker->stays) note(asker->worker, frame);
}

__attribute__((unused)) static void on_replay_end(rd_link_replay *replay, rd_replay kind) {
    asker *asker = RD_CONTAINER(replay, struct asker, replay);
    CHECK(!asker->is_over);
    asker->is_over = true;
    asker->kind = kind;
    if (!asker->stays) return;
    asker->worker->wants_news = true;
    rd_link_subscribe(asker->worker->link, text("news"), false);
}

__attribute__((unused)) static bool ask(asker *asker, worker *worker, const char *channel,
                                        uint64_t since, bool stays) {
    memset(asker, 0, sizeof(*asker));
    asker->replay.on_message = on_replayed;
    asker->replay.on_end = on_replay_end;
    asker->replay.bytes_max = SIZE_MAX;
    asker->worker = worker;
    asker->stays = stays;
    return rd_link_replay_begin(worker->link, &asker->replay, text(channel), false, since);
}

__attribute__((unused)) static bool ask_from(asker *asker, worker *worker, uint8_t address) {
    memset(asker, 0, sizeof(*asker));
    asker->replay = (rd_link_replay){.on_message = on_replayed, .on_end = on_replay_end};
    asker->replay.bytes_max = 1000;
    asker->replay.from = (rd_address){.kind = RD_ADDRESS_V4, .bytes = {127, 0, 0, address}};
    asker->worker = worker;
    return rd_link_replay_begin(worker->link, &asker->replay, text("news"), false, 0);
}

/* ---- the loop ---- */

__attribute__((unused)) static void turn(void) {
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

__attribute__((unused)) static void turn_until(const bool *done) {
    while (!*done && check_failed == 0) turn();
}

/* Turns until the hub has done everything that this worker has asked for. */
__attribute__((unused)) static void settle(worker *worker) {
    asker asker;
    CHECK(ask(&asker, worker, "settle", 0, false));
    turn_until(&asker.is_over);
    rd_link_replay_cancel(&asker.replay); /* after a failed check it may be without an answer */
}

__attribute__((unused)) static void begin(void) {
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

__attribute__((unused)) static void finish(void) {
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].link != NULL) rd_link_free(workers[i].link);
    }
    rd_loop_unlock(&loop);
    rd_loop_clear(&loop);
    if (hub != NULL) rd_hub_thread_free(hub);
}

__attribute__((unused)) static void want(worker *worker) {
    worker->wants_news = true;
    rd_link_subscribe(worker->link, text("news"), false);
    settle(worker);
}

__attribute__((unused)) static int publish(worker *worker, int number, unsigned flags) {
    char payload[16];
    (void)snprintf(payload, sizeof(payload), "%d", number);
    return rd_link_publish(worker->link, text("news"), text(payload), flags);
}

__attribute__((unused)) static void hear(worker *worker, int count) {
    while (worker->count < count && check_failed == 0) turn();
}

/* Without the replay of settle(), which came just before. */
__attribute__((unused)) static uint32_t channels_at_hub(void) {
    rd_loop_lock(&hub->loop);
    const uint32_t count = hub->hub.names.count - 1;
    rd_loop_unlock(&hub->loop);
    return count;
}

#endif
