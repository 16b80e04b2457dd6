/* SPDX-License-Identifier: MIT
 *
 * The pub/sub of two workers with a hub between them, for tests: clients that write down what they
 * get, on one loop that the test turns by hand.
 */
#ifndef RD_TEST_PUBSUB_WORKERS_H
#define RD_TEST_PUBSUB_WORKERS_H

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "check.h"
#include "cluster/hub_thread.h"
#include "messaging/pubsub.h"

enum { WORKERS = 2, TURN_US = 10000000, CLIENT_IDS = 512 };

typedef struct worker {
    rd_conn_set conns;
    rd_http_shared shared;
    rd_pubsub pubsub;
} worker;

/* A client that records what it gets. */
typedef struct client {
    rd_endpoint endpoint;
    worker *worker;
    char got[1 << 16];
    uint64_t ids[CLIENT_IDS]; /* of what it got; 0: it was told that something is missing */
    int count;
    int given; /* of them, when it got something that had been held back */
    uint64_t last_id;
} client;

static rd_hub_thread *hub;
static rd_settings settings;
static rd_loop loop;
static worker workers[WORKERS];

__attribute__((unused)) static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

/* ---- clients ---- */

__attribute__((unused)) static void note_publish(rd_endpoint *endpoint, rd_message *message,
                                                 rd_receive_as as) {
    client *client = RD_CONTAINER(endpoint, struct client, endpoint);
    const rd_slice payload = rd_message_payload(message);
    const size_t at = strlen(client->got);
    (void)as;
    if (client->count < CLIENT_IDS) client->ids[client->count++] = message->id;
    if (!client->worker->pubsub.channels.fanout.is_running) client->given = client->count;
    if (message->is_gap) {
        const rd_slice channel = rd_message_channel(message);
        (void)snprintf(client->got + at, sizeof(client->got) - at, "reset:%.*s ", (int)channel.len,
                       channel.ptr);
        return;
    }
    (void)snprintf(client->got + at, sizeof(client->got) - at, "%.*s ", (int)payload.len,
                   payload.ptr);
    if (message->id != 0) client->last_id = message->id;
}

__attribute__((unused)) static void nothing(rd_endpoint *endpoint) {
    (void)endpoint;
}

__attribute__((unused)) static void no_close(rd_endpoint *endpoint, unsigned code,
                                             rd_slice reason) {
    (void)endpoint, (void)code, (void)reason;
}

__attribute__((unused)) static void free_client(rd_endpoint *endpoint) {
    rd_free(RD_CONTAINER(endpoint, client, endpoint));
}

static const rd_endpoint_ops ops = {.events = RD_ENDPOINT_EVENTS(RD_EVENTS_OF_SUBSCRIBER),
                                    .deliver = note_publish,
                                    .overflow = nothing,
                                    .close = no_close,
                                    .handled = nothing,
                                    .free = free_client};

/* As a stream of events has it. */
__attribute__((unused)) static const rd_endpoint_ops ops_with_ids = {
    .events = RD_ENDPOINT_EVENTS(RD_EVENTS_OF_SUBSCRIBER),
    .has_ids = true,
    .deliver = note_publish,
    .overflow = nothing,
    .close = no_close,
    .handled = nothing,
    .free = free_client};

__attribute__((unused)) static client *new_client_of(worker *worker, const rd_endpoint_ops *ops) {
    client *added = rd_alloc_zero(sizeof(*added));
    added->worker = worker;
    rd_endpoint_init(&added->endpoint, ops, &worker->shared, NULL);
    added->endpoint.subscriber.kind = &worker->shared.subscribers;
    return added;
}

__attribute__((unused)) static client *new_client(worker *worker) {
    return new_client_of(worker, &ops);
}

__attribute__((unused)) static void close_client(client *client) {
    client->endpoint.is_closing = true;
    rd_subscriber_clear(&client->worker->pubsub.channels, &client->endpoint.subscriber);
    rd_endpoint_unref(&client->endpoint);
}

__attribute__((unused)) static int subscribe(client *client, const char *name) {
    const rd_pubsub_terms terms = {.as = RD_AS_SENT};
    return rd_pubsub_subscribe(&client->worker->pubsub, &client->endpoint, text(name), false,
                               &terms);
}

__attribute__((unused)) static int subscribe_since(client *client, const char *name,
                                                   uint64_t since) {
    const rd_pubsub_terms terms = {.replays = true, .since = since};
    return rd_pubsub_subscribe(&client->worker->pubsub, &client->endpoint, text(name), false,
                               &terms);
}

__attribute__((unused)) static int publish(worker *worker, const char *name, const char *payload) {
    return rd_pubsub_publish(&worker->pubsub, text(name), text(payload), true, RD_REACH_CLUSTER);
}

/* ---- the loop ---- */

__attribute__((unused)) static void on_event(rd_handler *handler, rd_event_source *source) {
    (void)handler, (void)source;
}

static int refused, refused_with;

__attribute__((unused)) static void on_refused(rd_handler *handler, rd_conn *conn, int code) {
    (void)handler, (void)conn;
    refused_with = code;
    refused++;
}

static rd_handler handler = {.on_event = on_event, .on_refused = on_refused};

__attribute__((unused)) static void turn(void) {
    static rd_ready_set found;
    bool waits = false;
    for (int i = 0; i < WORKERS; i++) {
        rd_pubsub_run(&workers[i].pubsub);
        waits |= rd_pubsub_waits(&workers[i].pubsub);
    }
    rd_loop_wait(&loop, &found, waits ? 0 : TURN_US);
    if (!waits) CHECK(found.count > 0);
    rd_loop_process(&loop, &found);
    for (int i = 0; i < WORKERS; i++) rd_pubsub_run(&workers[i].pubsub);
}

__attribute__((unused)) static void hear(const client *client, const char *expected) {
    while (strlen(client->got) < strlen(expected) && check_failed == 0) turn();
    CHECK_STR(client->got, expected);
}

__attribute__((unused)) static void on_settled(rd_link_replay *replay, rd_replay kind) {
    (void)replay, (void)kind;
}

/* Turns until the hub has done what this worker asked for, and all earlier messages are delivered.
 */
__attribute__((unused)) static void settle(worker *worker) {
    rd_link_replay replay = {.on_end = on_settled};
    CHECK(rd_link_replay_begin(worker->pubsub.link, &replay, text("settle"), false, 0));
    while (replay.ticket != NULL && check_failed == 0) turn();
}

__attribute__((unused)) static void begin(void) {
    rd_settings_init(&settings);
    settings.max_subscriptions = 3;
    hub = rd_hub_thread_new((rd_history_limits){1000, 1 << 24}, 1 << 20);
    CHECK_INT(rd_hub_thread_start(hub), 0);
    CHECK_INT(rd_loop_init(&loop, false), 0);
    rd_loop_lock(&loop);
    for (int i = 0; i < WORKERS; i++) {
        worker *worker = &workers[i];
        int fds[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        CHECK(rd_hub_thread_add(hub, fds[0], RD_HUB_WORKER, NULL) > 0);
        rd_conn_set_init(&worker->conns, &loop, &settings);
        worker->shared = (rd_http_shared){.handler = &handler, .settings = &settings};
        rd_endpoint_set_limits(&worker->shared);
        worker->pubsub = (rd_pubsub){0};
        rd_pubsub_init(&worker->pubsub, &worker->conns, &worker->shared);
        CHECK_INT(rd_pubsub_link(&worker->pubsub, fds[1]), 0);
    }
}

__attribute__((unused)) static void finish(void) {
    for (int i = 0; i < WORKERS; i++) {
        rd_pubsub_clear(&workers[i].pubsub);
        rd_conn_set_clear(&workers[i].conns);
    }
    rd_loop_unlock(&loop);
    rd_loop_clear(&loop);
    if (hub != NULL) rd_hub_thread_free(hub);
}

__attribute__((unused)) static void keep(worker *worker, const char *name) {
    CHECK_INT(rd_pubsub_keep(&worker->pubsub, text(name), false, (rd_relay_terms){100, 0, 0}), 0);
    for (int i = 0; i < WORKERS; i++) settle(&workers[i]);
    for (int i = 0; i < WORKERS; i++) settle(&workers[i]);
}

#endif
