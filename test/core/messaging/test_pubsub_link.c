/* SPDX-License-Identifier: MIT
 *
 * The pub/sub of two workers with a hub between them (pubsub.c and subscribing.c with
 * cluster/link.c), on one loop that this test turns: what is delivered at once and what comes back
 * with an id, replays that are asked for at the hub, and subscriptions that change while the answer
 * is due.
 */
#include "pubsub_workers.h"

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

/* It waits for nothing, so it gets what is published before the answer of the other client. */
static void test_a_subscription_beside_a_replay(void) {
    begin();
    client *returns = new_client(&workers[0]), *plain = new_client(&workers[0]);
    keep(&workers[0], "kept");
    CHECK_INT(subscribe_since(returns, "kept", 0), 1);
    CHECK_INT(subscribe(plain, "kept"), 1);
    publish(&workers[0], "kept", "one");
    hear(plain, "one ");
    hear(returns, "one ");
    CHECK_STR(plain->got, "one ");
    close_client(returns);
    close_client(plain);
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
    CHECK(reader->endpoint.hold == NULL);
    publish(&workers[1], "kept", "two");
    hear(reader, "two ");
    CHECK_INT(rd_channels_subscribers(&pubsub->channels, text("kept"), false), 1);
    CHECK_INT(subscribe_since(reader, "kept", 0), 0);
    CHECK_INT(subscribe_since(reader, "kept", 0), 0);
    hear(reader, "two one two ");
    close_client(reader);
    finish();
}

/* It has nothing to wait for once the rules are known, which come before the first answer. */
static void test_a_channel_without_a_rule(void) {
    begin();
    client *early = new_client(&workers[0]), *reader = new_client(&workers[0]);
    CHECK_INT(rd_pubsub_keep(&workers[1].pubsub, text("kept"), false, (rd_relay_terms){9, 0, 0}),
              0);
    publish(&workers[1], "kept", "old");
    settle(&workers[1]);
    CHECK_INT(subscribe_since(early, "kept", 0), 1); /* this worker may not know of the rule yet */
    hear(early, "old ");
    CHECK_INT(subscribe_since(reader, "plain", 1), 1);
    CHECK(reader->endpoint.hold == NULL);
    CHECK_INT(publish(&workers[0], "plain", "x"), 1);
    rd_pubsub_run(&workers[0].pubsub);
    CHECK_STR(reader->got, "x ");
    CHECK_INT(subscribe_since(reader, "plain", 1), 0);
    CHECK_INT(publish(&workers[0], "plain", "y"), 1);
    rd_pubsub_run(&workers[0].pubsub);
    CHECK_STR(reader->got, "x y ");
    close_client(early);
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

/* A channel whose replay is due keeps its place, and each can still be subscribed to anew. */
static void test_a_limit_with_replays(void) {
    begin();
    client *reader = new_client(&workers[0]);
    CHECK_INT(subscribe(reader, "a"), 1);
    CHECK_INT(subscribe_since(reader, "b", 1), 1);
    CHECK_INT(subscribe_since(reader, "c", 1), 1);
    CHECK_INT(subscribe(reader, "d"), RD_ERR_CHANNEL_LIMIT);
    CHECK_INT(subscribe(reader, "a"), 0);
    CHECK_INT(subscribe(reader, "b"), 1);
    settle(&workers[0]);
    CHECK_INT(reader->endpoint.subscriber.count, 3);
    publish(&workers[1], "c", "one");
    hear(reader, "one ");
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
    CHECK_INT(refused_with, RD_ERR_REPLAY_LATE);
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
    test_a_subscription_beside_a_replay();
    test_changes_while_the_answer_is_due();
    test_a_channel_without_a_rule();
    test_limits();
    test_a_limit_with_replays();
    test_bytes_of_names();
    test_without_the_hub();
    test_a_client_that_goes_before_its_turn();
    test_a_replay_without_an_answer();
    return check_summary();
}
