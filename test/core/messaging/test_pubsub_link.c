/* SPDX-License-Identifier: MIT
 *
 * The pub/sub of two workers with a hub between them (pubsub.c and subscribing.c with
 * cluster/link.c), on one loop that this test turns: what is delivered at once and what comes back
 * with an id, replays that are asked for at the hub, and subscriptions that change while the answer
 * is due.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "check.h"
#include "cluster/hub_thread.h"
#include "messaging/pubsub.h"

enum { WORKERS = 2, TURN_US = 10000000 };

typedef struct worker {
    rd_conn_set conns;
    rd_http_shared shared;
    rd_pubsub pubsub;
} worker;

/* A client that records what it gets. */
typedef struct client {
    rd_endpoint endpoint;
    worker *worker;
    char got[8192];
    uint64_t last_id;
} client;

static rd_hub_thread *hub;
static rd_settings settings;
static rd_loop loop;
static worker workers[WORKERS];

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

/* ---- clients ---- */

static void note_publish(rd_endpoint *endpoint, rd_message *message, rd_receive_as as) {
    client *client = RD_CONTAINER(endpoint, struct client, endpoint);
    const rd_slice payload = rd_message_payload(message);
    const size_t at = strlen(client->got);
    (void)as;
    (void)snprintf(client->got + at, sizeof(client->got) - at, "%.*s ", (int)payload.len,
                   payload.ptr);
    if (message->id != 0) client->last_id = message->id;
}

static void nothing(rd_endpoint *endpoint) {
    (void)endpoint;
}

static void no_close(rd_endpoint *endpoint, unsigned code, rd_slice reason) {
    (void)endpoint, (void)code, (void)reason;
}

static void free_client(rd_endpoint *endpoint) {
    rd_free(RD_CONTAINER(endpoint, client, endpoint));
}

static const rd_endpoint_ops ops = {.events = RD_ENDPOINT_EVENTS(RD_EVENTS_OF_SUBSCRIBER),
                                    .deliver = note_publish,
                                    .overflow = nothing,
                                    .close = no_close,
                                    .handled = nothing,
                                    .free = free_client};

static client *new_client(worker *worker) {
    client *added = rd_alloc_zero(sizeof(*added));
    added->worker = worker;
    rd_endpoint_init(&added->endpoint, &ops, &worker->shared, NULL);
    added->endpoint.subscriber.kind = &worker->shared.subscribers;
    return added;
}

static void close_client(client *client) {
    client->endpoint.is_closing = true;
    rd_subscriber_clear(&client->worker->pubsub.channels, &client->endpoint.subscriber);
    rd_endpoint_unref(&client->endpoint);
}

static int subscribe(client *client, const char *name) {
    const rd_pubsub_terms terms = {.as = RD_AS_SENT};
    return rd_pubsub_subscribe(&client->worker->pubsub, &client->endpoint, text(name), false,
                               &terms);
}

static int subscribe_since(client *client, const char *name, uint64_t since) {
    const rd_pubsub_terms terms = {.replays = true, .since = since};
    return rd_pubsub_subscribe(&client->worker->pubsub, &client->endpoint, text(name), false,
                               &terms);
}

static int publish(worker *worker, const char *name, const char *payload) {
    return rd_pubsub_publish(&worker->pubsub, text(name), text(payload), true, RD_REACH_CLUSTER);
}

/* ---- the loop ---- */

static void on_event(rd_handler *handler, rd_event_source *source) {
    (void)handler, (void)source;
}

static int refused;

static void on_refused(rd_handler *handler, rd_conn *conn, int code) {
    (void)handler, (void)conn;
    CHECK_INT(code, RD_ERR_REPLAY_LATE);
    refused++;
}

static rd_handler handler = {.on_event = on_event, .on_refused = on_refused};

static void turn(void) {
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

static void hear(const client *client, const char *expected) {
    while (strlen(client->got) < strlen(expected) && check_failed == 0) turn();
    CHECK_STR(client->got, expected);
}

static void on_settled(rd_link_replay *replay, rd_replay kind) {
    (void)replay, (void)kind;
}

/* Turns until the hub has done what this worker asked for, and all earlier messages are delivered.
 */
static void settle(worker *worker) {
    rd_link_replay replay = {.on_end = on_settled};
    CHECK(rd_link_replay_begin(worker->pubsub.link, &replay, text("settle"), false, 0));
    while (replay.ticket != NULL && check_failed == 0) turn();
}

static void begin(void) {
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

static void finish(void) {
    for (int i = 0; i < WORKERS; i++) {
        rd_pubsub_clear(&workers[i].pubsub);
        rd_conn_set_clear(&workers[i].conns);
    }
    rd_loop_unlock(&loop);
    rd_loop_clear(&loop);
    if (hub != NULL) rd_hub_thread_free(hub);
}

static void keep(worker *worker, const char *name) {
    CHECK_INT(rd_pubsub_keep(&worker->pubsub, text(name), false, (rd_relay_terms){100, 0, 0}), 0);
    for (int i = 0; i < WORKERS; i++) settle(&workers[i]);
    for (int i = 0; i < WORKERS; i++) settle(&workers[i]);
}

/* A client of the worker that hears "news". */
static client *reader_of_news(worker *worker) {
    client *reader = new_client(worker);
    subscribe(reader, "news");
    settle(worker);
    return reader;
}

/* ---- tests ---- */

static void test_at_once_and_over_there(void) {
    begin();
    client *here = reader_of_news(&workers[0]), *there = reader_of_news(&workers[1]);
    CHECK_INT(publish(&workers[0], "news", "one"), 1);
    rd_pubsub_run(&workers[0].pubsub);
    CHECK_STR(here->got, "one ");
    hear(there, "one ");
    rd_pubsub_publish(&workers[1].pubsub, text("news"), text("inside"), true, RD_REACH_PROCESS);
    publish(&workers[1], "news", "two");
    hear(there, "one inside two ");
    hear(here, "one two ");
    close_client(here);
    close_client(there);
    finish();
}

static int publish_elsewhere(worker *worker, const char *payload, rd_reach reach) {
    return rd_pubsub_publish(&worker->pubsub, text("news"), text(payload), true, reach);
}

/* The other processes, and the one that has the hub: nobody has subscribed there. */
static void test_reaches_that_leave_out_this_process(void) {
    begin();
    client *here = reader_of_news(&workers[0]), *there = reader_of_news(&workers[1]);
    CHECK_INT(publish_elsewhere(&workers[0], "sideways", RD_REACH_SIBLINGS), 1);
    CHECK_INT(publish_elsewhere(&workers[0], "up", RD_REACH_ROOT), 1);
    publish(&workers[0], "news", "all");
    hear(here, "all ");
    hear(there, "sideways all ");
    rd_link_free(workers[0].pubsub.link);
    workers[0].pubsub.link = NULL;
    CHECK_INT(publish_elsewhere(&workers[0], "sideways", RD_REACH_SIBLINGS), 1);
    CHECK_INT(publish_elsewhere(&workers[0], "alone", RD_REACH_ROOT), 1);
    rd_pubsub_run(&workers[0].pubsub);
    CHECK_STR(here->got, "all alone ");
    close_client(here);
    close_client(there);
    finish();
}

/* Channels from before the link are reported to the hub as well. */
static void test_a_link_that_comes_late(void) {
    int fds[2];
    begin();
    client *here = new_client(&workers[0]);
    rd_link_free(workers[0].pubsub.link);
    workers[0].pubsub.link = NULL;
    subscribe(here, "news");
    CHECK_INT(rd_pubsub_keep(&workers[0].pubsub, text("news"), false, (rd_relay_terms){5, 0, 0}),
              0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    CHECK(rd_hub_thread_add(hub, fds[0], RD_HUB_WORKER, NULL) > 0);
    CHECK_INT(rd_pubsub_link(&workers[0].pubsub, fds[1]), 0);
    settle(&workers[0]);
    publish(&workers[1], "news", "one");
    hear(here, "one ");
    CHECK(here->last_id > 0);
    close_client(here);
    finish();
}

/* The clients of the worker that publishes see the id, too. */
static void test_ids_for_everybody(void) {
    begin();
    client *here = new_client(&workers[0]), *there = new_client(&workers[1]);
    keep(&workers[1], "kept");
    subscribe(here, "kept");
    subscribe(there, "kept");
    settle(&workers[0]);
    settle(&workers[1]);
    publish(&workers[0], "kept", "one");
    rd_pubsub_run(&workers[0].pubsub);
    CHECK_STR(here->got, "");
    hear(here, "one ");
    hear(there, "one ");
    CHECK(here->last_id > 0 && here->last_id == there->last_id);
    CHECK_INT(workers[0].pubsub.history.count, 0);
    close_client(here);
    close_client(there);
    finish();
}

static void test_replays(void) {
    begin();
    client *reader = new_client(&workers[0]);
    keep(&workers[1], "kept");
    publish(&workers[1], "kept", "one");
    publish(&workers[1], "kept", "two");
    settle(&workers[1]);
    CHECK_INT(subscribe_since(reader, "kept", 0), 1);
    publish(&workers[1], "kept", "three");
    hear(reader, "one two three ");
    const uint64_t last_id = reader->last_id;
    publish(&workers[1], "kept", "four");
    hear(reader, "one two three four ");
    reader->got[0] = '\0'; /* again: the old subscription is replaced */
    CHECK_INT(subscribe_since(reader, "kept", last_id), 0);
    publish(&workers[1], "kept", "five");
    hear(reader, "four five ");
    close_client(reader);
    finish();
}

static void test_changes_while_the_answer_is_due(void) {
    begin();
    client *reader = new_client(&workers[0]), *leaver = new_client(&workers[0]);
    keep(&workers[1], "kept");
    publish(&workers[1], "kept", "one");
    settle(&workers[1]);
    rd_pubsub *pubsub = &workers[0].pubsub;
    CHECK_INT(subscribe_since(reader, "kept", 0), 1);
    CHECK(rd_pubsub_unsubscribe(pubsub, &reader->endpoint, text("kept"), false));
    CHECK(!rd_pubsub_unsubscribe(pubsub, &reader->endpoint, text("kept"), false));
    CHECK_INT(subscribe_since(reader, "kept", 0), 1);
    CHECK_INT(subscribe(reader, "kept"), 1); /* from now on, without older messages */
    CHECK_INT(subscribe_since(leaver, "kept", 0), 1);
    close_client(leaver);
    settle(&workers[0]);
    CHECK_STR(reader->got, "");
    CHECK(reader->endpoint.replays == NULL);
    publish(&workers[1], "kept", "two");
    hear(reader, "two ");
    CHECK_INT(rd_channels_subscribers(&pubsub->channels, text("kept"), false), 1);
    CHECK_INT(subscribe_since(reader, "kept", 0), 0);
    CHECK_INT(subscribe_since(reader, "kept", 0), 0);
    hear(reader, "two one two ");
    close_client(reader);
    finish();
}

static void test_limits(void) {
    begin();
    client *reader = new_client(&workers[0]);
    char *payload = rd_alloc_zero((size_t)settings.max_publish_bytes + 1);
    CHECK_INT(subscribe(reader, "a"), 1);
    CHECK_INT(subscribe_since(reader, "b", 1), 1);
    CHECK_INT(subscribe_since(reader, "c", 1), 1);
    CHECK_INT(subscribe_since(reader, "d", 1), RD_ERR_CHANNEL_LIMIT);
    CHECK_INT(subscribe_since(reader, "a", 1), 0);
    CHECK_INT(subscribe_since(reader, "", 1), RD_ERR_CHANNEL_NAME);
    settle(&workers[0]);
    CHECK_INT(reader->endpoint.subscriber.count, 3);
    for (size_t extra = 0; extra < 2; extra++) {
        const rd_slice body = rd_slice_of(payload, (size_t)settings.max_publish_bytes + extra);
        CHECK_INT(rd_pubsub_publish(&workers[0].pubsub, text("x"), body, true, RD_REACH_CLUSTER),
                  extra > 0 ? RD_ERR_RELAY_PAYLOAD : 1);
    }
    rd_free(payload);
    close_client(reader);
    finish();
}

/* A client that waits for a replay has its subscription already. */
static void test_bytes_of_names(void) {
    rd_ledger ledger;
    const uint64_t *held = &ledger.rows[RD_LEDGER_SUBSCRIPTIONS].held;
    begin();
    rd_ledger_init(&ledger);
    rd_ledger_limit(&ledger, RD_LEDGER_SUBSCRIPTIONS, 2 * RD_SUBSCRIPTION_BYTES + 2);
    client *reader = new_client(&workers[0]);
    workers[0].shared.subscribers.ledger = &ledger;
    workers[0].shared.subscribers.name_limit = 100;
    CHECK_INT(subscribe_since(reader, "b", 1), 1);
    CHECK_INT(subscribe(reader, "c"), 1);
    CHECK_INT(*held, 2 * RD_SUBSCRIPTION_BYTES + 2);
    CHECK_INT(subscribe(reader, "d"), RD_ERR_SUBSCRIPTIONS_FULL);
    CHECK_INT(subscribe_since(reader, "d", 1), RD_ERR_SUBSCRIPTIONS_FULL);
    settle(&workers[0]);
    CHECK_INT(reader->endpoint.subscriber.count, 2);
    CHECK_INT(*held, 2 * RD_SUBSCRIPTION_BYTES + 2);
    CHECK_INT(subscribe_since(reader, "c", 1), 0);
    CHECK_INT(*held, 2 * RD_SUBSCRIPTION_BYTES + 2);
    CHECK(rd_pubsub_unsubscribe(&workers[0].pubsub, &reader->endpoint, text("c"), false));
    CHECK_INT(*held, RD_SUBSCRIPTION_BYTES + 1);
    CHECK_INT(subscribe_since(reader, "d", 1), 1); /* and leaves before the answer comes */
    close_client(reader);
    finish();
    CHECK_INT(*held, 0);
}

/* The worker continues alone, with a history of its own from then on. */
static void test_without_the_hub(void) {
    begin();
    client *reader = new_client(&workers[0]);
    keep(&workers[0], "kept");
    rd_hub_thread_stop(hub);
    CHECK_INT(subscribe_since(reader, "kept", 1), 1);
    rd_hub_thread_free(hub);
    hub = NULL;
    while (rd_link_is_open(workers[0].pubsub.link) && check_failed == 0) turn();
    CHECK_INT(workers[0].pubsub.replay_gaps, 1); /* the hub could not count it */
    CHECK_INT(publish(&workers[0], "kept", "one"), 1);
    rd_pubsub_run(&workers[0].pubsub);
    CHECK_STR(reader->got, "one ");
    CHECK(reader->last_id > 0);
    CHECK_INT(subscribe_since(reader, "kept", 0), 0);
    CHECK_STR(reader->got, "one one ");
    close_client(reader);
    finish();
}

/* A client that has gone is not asked for any more, and a client that stays gets its answer. */
static void test_a_client_that_goes_before_its_turn(void) {
    begin();
    client *gone[20], *stays = new_client(&workers[0]);
    rd_pubsub_keep(&workers[0].pubsub, text("news"), false, (rd_relay_terms){10, 0, 0});
    settle(&workers[0]);
    CHECK_INT(publish(&workers[0], "news", "kept"), 1);
    settle(&workers[0]);
    for (int i = 0; i < 20; i++) {
        gone[i] = new_client(&workers[0]);
        CHECK_INT(subscribe_since(gone[i], "news", 0), 1);
    }
    CHECK(workers[0].pubsub.link->waiting > 0);
    CHECK_INT(subscribe_since(stays, "news", 0), 1);
    for (int i = 0; i < 20; i++) {
        rd_endpoint_end_subscriptions(&gone[i]->endpoint);
        CHECK_INT(gone[i]->endpoint.source.refs, 1);
        close_client(gone[i]);
    }
    hear(stays, "kept ");
    CHECK_INT(rd_channels_subscribers(&workers[0].pubsub.channels, text("news"), false), 1);
    close_client(stays);
    finish();
}

/* The client is subscribed, and the log and the metrics report it. */
static void test_a_replay_without_an_answer(void) {
    rd_conn conn = {.peer = {.kind = RD_ADDRESS_V6}};
    begin();
    rd_pubsub *pubsub = &workers[0].pubsub;
    client *reader = new_client(&workers[0]);
    rd_hub_thread_stop(hub);
    pubsub->link->wait_ms = 1;
    reader->endpoint.conn = &conn;
    CHECK_INT(subscribe_since(reader, "news", 1), 1);
    while (pubsub->replay_timeouts == 0 && check_failed == 0) {
        static rd_ready_set found;
        rd_loop_wait(&loop, &found, rd_loop_timeout(&loop));
        rd_loop_process(&loop, &found);
    }
    reader->endpoint.conn = NULL;
    CHECK_INT(refused, 1);
    CHECK_INT(rd_channels_subscribers(&pubsub->channels, text("news"), false), 1);
    pubsub->link->wait_ms = 60000;
    CHECK_INT(rd_hub_thread_start(hub), 0);
    settle(&workers[0]);
    publish(&workers[1], "news", "one");
    hear(reader, "one ");
    CHECK_INT(pubsub->replay_timeouts, 1);
    close_client(reader);
    finish();
}

int main(void) {
    test_at_once_and_over_there();
    test_reaches_that_leave_out_this_process();
    test_a_link_that_comes_late();
    test_ids_for_everybody();
    test_replays();
    test_changes_while_the_answer_is_due();
    test_limits();
    test_bytes_of_names();
    test_without_the_hub();
    test_a_client_that_goes_before_its_turn();
    test_a_replay_without_an_answer();
    return check_summary();
}
