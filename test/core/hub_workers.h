/* SPDX-License-Identifier: MIT
 *
 * A hub that runs on its thread, and workers that the test plays, for tests: their ends of the
 * links, with waiting reads.
 */
#ifndef RD_TEST_HUB_WORKERS_H
#define RD_TEST_HUB_WORKERS_H

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "cluster/hub_thread.h"

enum { PATIENCE_MS = 60000, LINKS = 4, QUEUE = 1 << 20 };

typedef struct worker {
    int fd;
    int64_t number;
    rd_relay_reader reader;
    char bytes[65536];
    size_t at, len;
} worker;

static const rd_history_limits limits = {1000, 1 << 24};
static rd_hub_thread *hub;
static worker workers[LINKS];

__attribute__((unused)) static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

__attribute__((unused)) static void join_as(worker *worker, rd_hub_kind kind) {
    int fds[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    worker->fd = fds[1];
    worker->at = worker->len = 0;
    worker->number = rd_hub_thread_add(hub, fds[0], kind, NULL);
    CHECK(worker->number > 0);
    rd_relay_reader_init(&worker->reader, RD_RELAY_PAYLOAD_MAX);
}

__attribute__((unused)) static void begin(int count) {
    hub = rd_hub_thread_new(limits, QUEUE);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    for (int i = 0; i < LINKS; i++) workers[i].fd = -1;
    for (int i = 0; i < count; i++) join_as(&workers[i], RD_HUB_WORKER);
}

__attribute__((unused)) static void go(worker *worker) {
    if (worker->fd >= 0) close(worker->fd);
    rd_relay_reader_clear(&worker->reader);
    worker->fd = -1;
}

__attribute__((unused)) static void finish(void) {
    rd_hub_thread_free(hub);
    for (int i = 0; i < LINKS; i++) {
        if (workers[i].fd >= 0) go(&workers[i]);
    }
}

/* ---- a worker's end, with waiting reads ---- */

__attribute__((unused)) static void put(worker *worker, const char *bytes, size_t len) {
    while (len > 0) {
        const ssize_t sent = send(worker->fd, bytes, len, MSG_NOSIGNAL);
        if (!CHECK(sent > 0)) return;
        bytes += sent;
        len -= (size_t)sent;
    }
}

__attribute__((unused)) static void say(worker *worker, rd_relay_type type, int flags,
                                        const char *channel, rd_slice payload, uint64_t id) {
    rd_buffer out = {0};
    const rd_relay_frame frame = {type, (uint8_t)flags, id, text(channel), payload};
    CHECK_INT(rd_relay_write(&frame, RD_RELAY_PAYLOAD_MAX, &out), 0);
    put(worker, rd_buffer_ptr(&out), rd_buffer_len(&out));
    rd_buffer_clear(&out);
}

__attribute__((unused)) static void subscribe(worker *worker, const char *channel) {
    say(worker, RD_RELAY_SUBSCRIBE, 0, channel, text(""), 0);
}

__attribute__((unused)) static void publish(worker *worker, const char *channel,
                                            const char *payload) {
    say(worker, RD_RELAY_PUBLISH, 0, channel, text(payload), 0);
}

/* The next frame, valid until the next call; false at the end of the stream. */
__attribute__((unused)) static bool hear(worker *worker, rd_relay_frame *frame) {
    for (;;) {
        size_t used;
        const int got = rd_relay_read(&worker->reader, worker->bytes + worker->at,
                                      worker->len - worker->at, &used, frame);
        worker->at += used;
        if (got != 0) return CHECK_INT(got, 1);
        struct pollfd ready = {.fd = worker->fd, .events = POLLIN};
        if (check_failed > 0 || !CHECK_INT(poll(&ready, 1, PATIENCE_MS), 1)) return false;
        const ssize_t len = recv(worker->fd, worker->bytes, sizeof(worker->bytes), 0);
        if (len <= 0) return false;
        worker->at = 0;
        worker->len = (size_t)len;
    }
}

__attribute__((unused)) static void check_message(worker *worker, const char *channel,
                                                  const char *payload) {
    rd_relay_frame frame;
    if (!CHECK(hear(worker, &frame))) return;
    CHECK_INT(frame.type, RD_RELAY_PUBLISH);
    CHECK_BYTES(frame.channel.ptr, frame.channel.len, channel);
    CHECK_BYTES(frame.payload.ptr, frame.payload.len, payload);
}

__attribute__((unused)) static void check_end(worker *worker) {
    rd_relay_frame frame;
    CHECK(!hear(worker, &frame));
}

/* Asks for the history of its channels. When the answer comes, everything it sent before is done.
 */
__attribute__((unused)) static void settle(worker *worker, const char *channel) {
    rd_relay_frame frame;
    say(worker, RD_RELAY_REPLAY, 0, channel, text("note"), 0);
    do {
        if (!CHECK(hear(worker, &frame))) return;
    } while (frame.type != RD_RELAY_REPLAY_END);
}

#endif
