/* SPDX-License-Identifier: MIT
 *
 * The hub as it runs, on its thread; this one plays the workers: messages cross, a process that
 * does not read costs only its own messages, one that breaks off or dies leaves nothing undone.
 */
#include <errno.h>
#include <stdlib.h>

#include "hub_workers.h"

static void test_messages_cross(void) {
    begin(3);
    subscribe(&workers[0], "news");
    subscribe(&workers[2], "other");
    settle(&workers[0], "news");
    settle(&workers[2], "other");
    publish(&workers[1], "news", "one");
    publish(&workers[1], "other", "two");
    CHECK_INT(rd_hub_thread_publish(hub, text("news"), text("master"), RD_RELAY_TEXT), 1);
    CHECK(rd_hub_thread_publish(hub, text(""), text("nameless"), 0) < 0);
    check_message(&workers[2], "other", "two");
    rd_relay_frame frame;
    bool by_master = false, by_worker = false;
    for (int i = 0; i < 2 && hear(&workers[0], &frame); i++) {
        by_master |= frame.flags == RD_RELAY_TEXT && frame.payload.len == 6;
        by_worker |= frame.flags == 0 && frame.payload.len == 3;
    }
    CHECK(by_master && by_worker);
    rd_hub_stats stats;
    rd_hub_thread_stats(hub, &stats);
    CHECK_INT(stats.links, 3);
    CHECK_INT(stats.published, 3);
    CHECK_INT(stats.sent, 3);
    finish();
}

static char *long_text(size_t len, char letter) {
    char *bytes = malloc(len + 1);
    memset(bytes, letter, len);
    bytes[len] = '\0';
    return bytes;
}

static void test_long_messages(void) {
    char *payload = long_text(3000000, 'x');
    begin(3);
    subscribe(&workers[0], "news");
    subscribe(&workers[1], "news");
    settle(&workers[0], "news");
    settle(&workers[1], "news");
    for (int i = 0; i < 2; i++) {
        publish(&workers[2], "news", payload);
        for (int reader = 0; reader < 2; reader++) {
            check_message(&workers[reader], "news", payload);
        }
    }
    free(payload);
    finish();
}

/* 20 MB for a process that does not read. The socket and QUEUE hold the first part of it. The other
 * process gets all of it. */
static void test_one_that_does_not_read(void) {
    enum { COUNT = 20000 };
    char *payload = long_text(1000, 'x');
    rd_hub_stats stats;
    begin(3);
    subscribe(&workers[0], "news");
    subscribe(&workers[1], "news");
    settle(&workers[0], "news");
    settle(&workers[1], "news");
    for (int i = 0; i < COUNT; i++) {
        publish(&workers[2], "news", payload);
        check_message(&workers[1], "news", payload);
    }
    rd_hub_thread_stats(hub, &stats);
    CHECK(stats.queue_bytes <= QUEUE && stats.queue_bytes > QUEUE / 2);
    CHECK(stats.dropped > COUNT / 2);
    CHECK_INT(stats.sent + stats.dropped, 2 * COUNT);
    CHECK_INT(rd_hub_thread_outage(hub), workers[0].number);
    CHECK_INT(rd_hub_thread_outage(hub), 0);
    const uint64_t left = stats.sent - COUNT;
    for (uint64_t i = 0; i < left; i++) check_message(&workers[0], "news", payload);
    publish(&workers[2], "news", "again");
    check_message(&workers[0], "news", "again");
    free(payload);
    finish();
}

/* A worker that keeps asking and never reads the answers loses its link. */
static void test_one_that_only_asks(void) {
    rd_relay_frame frame;
    begin(2);
    struct pollfd wanted = {.fd = workers[0].fd, .events = POLLOUT};
    bool is_open = true;
    char *terms = long_text(64, 'n');
    rd_buffer out = {0};
    const rd_relay_frame question = {RD_RELAY_REPLAY, 0, 1, text("a"), text(terms)};
    for (int i = 0; i < 100; i++) rd_relay_write(&question, 100, &out);
    for (int i = 0; is_open && i < 10000; i++) {
        if (!CHECK(poll(&wanted, 1, PATIENCE_MS) == 1)) break;
        is_open = send(workers[0].fd, rd_buffer_ptr(&out), rd_buffer_len(&out), MSG_NOSIGNAL) > 0;
    }
    CHECK(!is_open);
    while (hear(&workers[0], &frame)) CHECK(frame.type != RD_RELAY_PUBLISH);
    settle(&workers[1], "news");
    rd_buffer_clear(&out);
    free(terms);
    finish();
}

/* Replays for a process that does not read at the moment take only a part of its queue: no message
 * is lost because of them. */
static void test_replays_give_way(void) {
    enum { KEPT = 900, ASKED = 200, LIVE = 200 };
    char terms[RD_RELAY_TERMS_BYTES], live[16];
    char *payload = long_text(1000, 'k');
    rd_relay_frame frame;
    rd_hub_stats stats;
    begin(2);
    say(&workers[1], RD_RELAY_KEEP, 0, "kept",
        rd_relay_put_terms(terms, &(rd_relay_terms){KEPT, 0, 0}), 0);
    for (int i = 0; i < KEPT; i++) publish(&workers[1], "kept", payload);
    subscribe(&workers[0], "live");
    settle(&workers[0], "live");
    settle(&workers[1], "live");
    for (int i = 0; i < ASKED; i++) {
        say(&workers[0], RD_RELAY_REPLAY, 0, "kept", text("note"), 0);
    }
    subscribe(&workers[0], "asked");
    do {
        CHECK_INT(rd_hub_thread_publish(hub, text("asked"), text("?"), 0), 1);
        rd_hub_thread_stats(hub, &stats);
    } while (stats.queue_bytes == 0);
    for (int i = 0; i < LIVE; i++) {
        (void)snprintf(live, sizeof(live), "%d", i);
        CHECK_INT(rd_hub_thread_publish(hub, text("live"), text(live), 0), 1);
    }
    int answers = 0, next = 0;
    while (answers < ASKED && hear(&workers[0], &frame)) {
        answers += frame.type == RD_RELAY_REPLAY_END;
        if (!rd_slice_equal(frame.channel, text("live"))) continue;
        CHECK_INT(atoi(frame.payload.ptr), next);
        next++;
    }
    CHECK_INT(next, LIVE);
    rd_hub_thread_stats(hub, &stats);
    CHECK_INT(stats.dropped, 0);
    free(payload);
    finish();
}

static void test_a_broken_stream(void) {
    begin(3);
    subscribe(&workers[0], "news");
    settle(&workers[0], "news");
    put(&workers[1], "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    check_end(&workers[1]);
    publish(&workers[2], "news", "goes on");
    check_message(&workers[0], "news", "goes on");
    finish();
}

/* More bytes than one turn reads, while others send to it: everything it has sent counts. */
static void test_last_words(void) {
    char *payload = long_text(20000, 'x');
    begin(3);
    subscribe(&workers[0], "news");
    subscribe(&workers[1], "flood");
    settle(&workers[0], "news");
    settle(&workers[1], "flood");
    rd_hub_thread_stop(hub);
    for (int i = 0; i < 5; i++) publish(&workers[1], "news", payload);
    publish(&workers[2], "flood", "x");
    go(&workers[1]);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    for (int i = 0; i < 5; i++) check_message(&workers[0], "news", payload);
    free(payload);
    finish();
}

/* A child of the process holds the socket. */
static void test_one_whose_socket_lives_on(void) {
    rd_hub_stats stats;
    begin(2);
    subscribe(&workers[0], "news");
    settle(&workers[0], "news");
    const int copy = dup(workers[1].fd);
    for (int i = 0; i < 100; i++) publish(&workers[1], "news", "last words");
    go(&workers[1]);
    rd_hub_thread_remove(hub, workers[1].number);
    rd_hub_thread_remove(hub, workers[1].number);
    rd_hub_thread_stats(hub, &stats);
    CHECK_INT(stats.links, 1);
    for (int i = 0; i < 100; i++) check_message(&workers[0], "news", "last words");
    close(copy);
    finish();
}

static void test_the_engine(void) {
    begin(2);
    subscribe(&workers[0], "news");
    settle(&workers[0], "news");
    join_as(&workers[2], RD_HUB_ENGINE);
    rd_relay_frame frame;
    CHECK(hear(&workers[2], &frame) && frame.type == RD_RELAY_SUBSCRIBE);
    CHECK_BYTES(frame.channel.ptr, frame.channel.len, "news");
    int fds[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    CHECK(rd_hub_thread_add(hub, fds[0], RD_HUB_ENGINE, NULL) == -1 && errno == EEXIST);
    close(fds[0]);
    close(fds[1]);
    CHECK_INT(rd_hub_thread_add(hub, 12345, RD_HUB_WORKER, NULL), -1);
    say(&workers[1], RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "news", text("out"), 0);
    check_message(&workers[2], "news", "out");
    publish(&workers[2], "news", "back");
    check_message(&workers[0], "news", "back");
    finish();
}

/* An engine does not read while more channels come and go than its queue holds. In the end it knows
 * exactly the channels that are left. */
static void test_an_engine_that_is_stuck(void) {
    enum { ALL = 20000, LEFT = 123 };
    static bool known[ALL];
    char name[200], digits[16];
    rd_relay_frame frame;
    begin(1);
    join_as(&workers[1], RD_HUB_ENGINE);
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    for (int round = 0; round < 2; round++) {
        const rd_relay_type type = round == 0 ? RD_RELAY_SUBSCRIBE : RD_RELAY_UNSUBSCRIBE;
        for (int i = round == 0 ? 0 : LEFT; i < ALL; i++) {
            (void)snprintf(digits, sizeof(digits), "%05d", i);
            memcpy(name, digits, 5);
            say(&workers[0], type, 0, name, text(""), 0);
        }
        settle(&workers[0], "00000");
    }
    say(&workers[0], RD_RELAY_SUBSCRIBE, 0, "last", text(""), 0);
    while (hear(&workers[1], &frame)) {
        if (rd_slice_equal(frame.channel, text("last"))) break;
        CHECK(frame.type == RD_RELAY_SUBSCRIBE || frame.type == RD_RELAY_UNSUBSCRIBE);
        const int told = atoi(frame.channel.ptr);
        if (frame.channel.len == 5) continue; /* the answer that settle() asks for */
        CHECK(known[told] == (frame.type == RD_RELAY_UNSUBSCRIBE));
        known[told] = !known[told];
    }
    for (int i = 0; i < ALL; i++) CHECK(known[i] == (i < LEFT));
    finish();
}

int main(void) {
    test_messages_cross();
    test_long_messages();
    test_one_that_does_not_read();
    test_one_that_only_asks();
    test_replays_give_way();
    test_a_broken_stream();
    test_last_words();
    test_one_whose_socket_lives_on();
    test_the_engine();
    test_an_engine_that_is_stuck();
    return check_summary();
}
