/* SPDX-License-Identifier: MIT
 *
 * The pub/sub of a process: what an endpoint is told of what is published, history and its end, the
 * observer, and what is bounded. Connections are not needed: an endpoint without one has the same
 * rules for blocks, and records what would go to a client.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "check.h"
#include "hand_clock.h"
#include "messaging/pubsub.h"

static rd_settings settings;
static rd_loop loop;
static rd_conn_set conns;
static rd_http_shared shared;
static rd_pubsub pubsub;
static unsigned told;

static void on_event(rd_handler *handler, rd_event_source *source) {
    (void)handler, (void)source;
    told++;
}

static rd_handler handler = {.on_event = on_event};

static void begin(void) {
    rd_settings_init(&settings);
    CHECK_INT(rd_loop_init(&loop, false), 0);
    rd_conn_set_init(&conns, &loop, &settings);
    shared = (rd_http_shared){.handler = &handler, .settings = &settings};
    pubsub = (rd_pubsub){0};
    rd_pubsub_init(&pubsub, &conns, &shared);
    told = 0;
}

static void end(void) {
    rd_pubsub_clear(&pubsub);
    rd_conn_set_clear(&conns);
    rd_loop_clear(&loop);
}

/* ---- an endpoint that records what its client would get ---- */

static char sent[4096];
static unsigned overflows;

static void note_publish(rd_endpoint *endpoint, rd_message *message, rd_receive_as as) {
    (void)endpoint;
    const rd_slice payload = rd_message_payload(message);
    const size_t at = strlen(sent);
    (void)snprintf(sent + at, sizeof(sent) - at, "%.*s%s ", (int)payload.len, payload.ptr,
                   as == RD_AS_BINARY ? "!" : "");
}

static void note_overflow(rd_endpoint *endpoint) {
    (void)endpoint;
    overflows++;
}

static void nothing(rd_endpoint *endpoint) {
    (void)endpoint;
}

static void free_push(rd_endpoint *endpoint) {
    rd_free(endpoint);
}

static void no_close(rd_endpoint *endpoint, unsigned code, rd_slice reason) {
    (void)endpoint, (void)code, (void)reason;
}

static const rd_endpoint_ops ops = {.events = RD_ENDPOINT_EVENTS(RD_EVENTS_OF_SUBSCRIBER),
                                    .deliver = note_publish,
                                    .overflow = note_overflow,
                                    .close = no_close,
                                    .handled = nothing,
                                    .free = free_push};

static rd_endpoint *new_push(void) {
    rd_endpoint *endpoint = rd_alloc_zero(sizeof(*endpoint));
    rd_endpoint_init(endpoint, &ops, &shared, NULL);
    sent[0] = '\0';
    overflows = 0;
    return endpoint;
}

static void free_it(rd_endpoint *endpoint) {
    rd_subscriber_clear(&pubsub.channels, &endpoint->subscriber);
    rd_endpoint_unref(endpoint);
}

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

static void publish(const char *name, const char *payload) {
    CHECK_INT(rd_pubsub_publish(&pubsub, text(name), text(payload), true, RD_REACH_PROCESS), 1);
}

static void deliver(void) {
    while (rd_pubsub_waits(&pubsub)) rd_pubsub_run(&pubsub);
}

static int subscribe(rd_endpoint *endpoint, const char *name, const rd_pubsub_terms *terms) {
    return rd_pubsub_subscribe(&pubsub, endpoint, text(name), false, terms);
}

/* The next event and its payload as text. */
static const char *take(rd_endpoint *endpoint) {
    static char line[256];
    static const char *const names[] = {"nothing", "open",  "handler", "message", "published",
                                        "gap",     "close", "drained", "shutdown"};
    const rd_endpoint_event event = rd_endpoint_next(endpoint);
    unsigned kind;
    rd_endpoint_message *message = rd_endpoint_take(endpoint, &kind);
    (void)snprintf(line, sizeof(line), "%s", names[event]);
    if (message != NULL && message->published != NULL) {
        const rd_slice payload = rd_message_payload(message->published);
        (void)snprintf(line, sizeof(line), "%s %u%s %.*s", names[event], (unsigned)message->block,
                       message->is_text ? "" : "!", (int)payload.len, payload.ptr);
    }
    if (message != NULL) rd_endpoint_message_free(&shared, message);
    return line;
}

/* ---- the tests ---- */

static void test_straight_to_the_client(void) {
    begin();
    rd_endpoint *endpoint = new_push();
    CHECK_INT(subscribe(endpoint, "news", &(rd_pubsub_terms){0}), 1);
    CHECK_INT(subscribe(endpoint, "data", &(rd_pubsub_terms){.as = RD_AS_BINARY}), 1);
    publish("news", "a");
    publish("data", "b");
    publish("other", "c");
    CHECK_STR(sent, "");
    deliver();
    CHECK_STR(sent, "a b! ");
    CHECK(rd_pubsub_unsubscribe(&pubsub, endpoint, text("news"), false));
    CHECK(!rd_pubsub_unsubscribe(&pubsub, endpoint, text("news"), false));
    publish("news", "d");
    deliver();
    CHECK_STR(sent, "a b! ");
    CHECK_INT(told, 0);
    CHECK_INT(pubsub.published, 4);
    free_it(endpoint);
    end();
}

static void test_blocks_are_told_in_order(void) {
    begin();
    rd_endpoint *endpoint = new_push();
    subscribe(endpoint, "news", &(rd_pubsub_terms){.block = 7});
    publish("news", "a");
    publish("news", "b");
    deliver();
    CHECK_INT(told, 2);
    CHECK_STR(take(endpoint), "published 7 a");
    subscribe(endpoint, "news", &(rd_pubsub_terms){.block = 8, .as = RD_AS_BINARY});
    publish("news", "c");
    deliver();
    CHECK_STR(take(endpoint), "published 7 b");
    CHECK_STR(take(endpoint), "published 8! c");
    CHECK_STR(take(endpoint), "nothing");
    CHECK_INT(endpoint->message_bytes, 0);
    endpoint->source.is_handling = true; /* it returns to the queue by itself */
    publish("news", "d");
    deliver();
    CHECK_INT(told, 3);
    CHECK_STR(sent, "");
    free_it(endpoint);
    end();
}

static void test_a_slow_block_is_bounded(void) {
    static char big[40000];
    memset(big, 'x', sizeof(big) - 1);
    begin();
    settings.max_pending_bytes = 65536;
    rd_endpoint *endpoint = new_push();
    subscribe(endpoint, "news", &(rd_pubsub_terms){.block = 1});
    publish("news", big);
    publish("news", big);
    publish("news", "small");
    deliver();
    CHECK_INT(overflows, 1);
    CHECK_INT(strlen(take(endpoint)), 255);
    CHECK_STR(take(endpoint), "published 1 small");
    free_it(endpoint);
    rd_endpoint *own = rd_pubsub_subscriber(&pubsub);
    CHECK(rd_endpoint_is_own(own));
    subscribe(own, "news", &(rd_pubsub_terms){.block = 1});
    publish("news", big);
    publish("news", big);
    deliver();
    CHECK_INT(shared.messages_dropped, 1);
    rd_pubsub_release(&pubsub, own);
    end();
}

static void test_handler_changes_come_before_messages(void) {
    begin();
    rd_endpoint *endpoint = new_push();
    subscribe(endpoint, "news", &(rd_pubsub_terms){.block = 1});
    publish("news", "a");
    deliver();
    rd_endpoint_set_due(endpoint, RD_ENDPOINT_SHUTDOWN);
    rd_endpoint_set_due(endpoint, RD_ENDPOINT_DRAINED);
    rd_endpoint_set_due(endpoint, RD_ENDPOINT_HANDLER);
    CHECK_STR(take(endpoint), "handler");
    CHECK_STR(take(endpoint), "published 1 a");
    CHECK_STR(take(endpoint), "drained");
    CHECK_STR(take(endpoint), "shutdown");
    rd_endpoint_ref(endpoint);
    rd_endpoint_closed(endpoint);
    publish("news", "nobody");
    deliver();
    CHECK_STR(take(endpoint), "close");
    CHECK_STR(take(endpoint), "nothing");
    CHECK_INT(pubsub.channels.subscription_count, 0);
    rd_endpoint_unref(endpoint);
    end();
}

static void test_history_is_replayed_once(void) {
    begin();
    rd_pubsub_keep(&pubsub, text("kept"), false, (rd_relay_terms){2, 1000, 0});
    rd_endpoint *endpoint = new_push();
    publish("kept", "a");
    publish("kept", "b");
    publish("kept", "c");
    subscribe(endpoint, "kept", &(rd_pubsub_terms){.replays = true});
    CHECK_STR(sent, "b c ");
    deliver(); /* messages that were queued when it subscribed are not delivered again */
    CHECK_STR(sent, "b c ");
    publish("kept", "d");
    deliver();
    CHECK_STR(sent, "b c d ");
    subscribe(endpoint, "kept", &(rd_pubsub_terms){.replays = true, .since = UINT64_MAX});
    CHECK_STR(sent, "b c d ");
    CHECK_INT(pubsub.replay_gaps, 0); /* no client asked for older messages */
    subscribe(endpoint, "kept", &(rd_pubsub_terms){.replays = true, .since = 1});
    CHECK_STR(sent, "b c d c d ");
    CHECK_INT(pubsub.replay_gaps, 1);
    CHECK(rd_timer_is_armed(&pubsub.expiry));
    pass_ms(20000);
    loop.now_ms = rd_clock_ms();
    rd_timer_advance(&loop.timers, loop.now_ms);
    CHECK_INT(pubsub.history.count, 0);
    CHECK(!rd_timer_is_armed(&pubsub.expiry));
    free_it(endpoint);
    end();
}

static void test_ids_only_where_somebody_keeps(void) {
    begin();
    rd_endpoint *endpoint = new_push();
    subscribe(endpoint, "news", &(rd_pubsub_terms){.block = 1});
    publish("news", "a");
    rd_pubsub_keep(&pubsub, text("kept"), false, (rd_relay_terms){2, 0, 0});
    publish("news", "b");
    deliver();
    unsigned kind;
    rd_endpoint_message *first = rd_endpoint_take(endpoint, &kind),
                        *second = rd_endpoint_take(endpoint, &kind);
    CHECK_INT(first->published->id, 0);
    CHECK(second->published->id > 0);
    rd_endpoint_message_free(&shared, first);
    rd_endpoint_message_free(&shared, second);
    free_it(endpoint);
    end();
}

/* The observer's next event, delivered as rd_server_next_event() does it, and what it takes then.
 */
static const char *tell(rd_endpoint *observer) {
    static char line[2048];
    rd_pubsub_change change;
    if (strcmp(take(observer), "nothing") == 0) return "nothing";
    const bool is_there = rd_pubsub_take_change(&pubsub, &change);
    rd_endpoint_ops_of(observer)->handled(observer);
    if (!is_there) return "no change";
    (void)snprintf(line, sizeof(line), "%c%s%.*s", change.is_wanted ? '+' : '-',
                   change.is_pattern ? "p:" : "", (int)change.len, change.name);
    return line;
}

static void test_the_watcher(void) {
    begin();
    rd_endpoint *observer = rd_pubsub_subscriber(&pubsub), *a = new_push(), *b = new_push();
    subscribe(a, "early", &(rd_pubsub_terms){0});
    rd_pubsub_observe(&pubsub, observer);
    subscribe(a, "news", &(rd_pubsub_terms){0});
    subscribe(b, "news", &(rd_pubsub_terms){0});
    rd_pubsub_subscribe(&pubsub, a, text("n*"), true, &(rd_pubsub_terms){0});
    CHECK_STR(tell(observer), "+early");
    CHECK_STR(tell(observer), "+news");
    CHECK_STR(tell(observer), "+p:n*");
    CHECK_STR(tell(observer), "nothing");
    free_it(a);
    CHECK_STR(tell(observer), "-early");
    CHECK_STR(tell(observer), "-p:n*");
    CHECK_STR(tell(observer), "nothing");
    free_it(b);
    CHECK_STR(tell(observer), "-news");
    rd_pubsub_release(&pubsub, observer);
    CHECK(pubsub.observer == NULL);
    end();
}

/* Somebody who publishes takes the changes before that: the event that waits finds none. */
static void test_a_watcher_that_is_overtaken(void) {
    rd_pubsub_change change;
    begin();
    rd_endpoint *observer = rd_pubsub_subscriber(&pubsub), *a = new_push();
    rd_pubsub_observe(&pubsub, observer);
    CHECK(!rd_pubsub_take_change(&pubsub, &change));
    subscribe(a, "news", &(rd_pubsub_terms){0});
    CHECK(rd_pubsub_take_change(&pubsub, &change));
    CHECK_BYTES(change.name, change.len, "news");
    CHECK_STR(tell(observer), "no change");
    CHECK_STR(tell(observer), "nothing");
    subscribe(a, "other", &(rd_pubsub_terms){0});
    CHECK_STR(tell(observer), "+other");
    free_it(a);
    rd_pubsub_release(&pubsub, observer);
    CHECK(!rd_pubsub_take_change(&pubsub, &change));
    end();
}

/* More channels come than max_pending_bytes of notices, then most of them go, before the
 * application takes the first notice. It hears of exactly the channels that are left. */
static void test_a_watcher_that_is_late_misses_nothing(void) {
    enum { CHANNELS = 20000, STAY = 777 };
    char name[32];
    begin();
    rd_endpoint *observer = rd_pubsub_subscriber(&pubsub), *stays = new_push(), *goes = new_push();
    rd_pubsub_observe(&pubsub, observer);
    for (int i = 0; i < CHANNELS; i++) {
        (void)snprintf(name, sizeof(name), "channel:%d", i);
        subscribe(i < STAY ? stays : goes, name, &(rd_pubsub_terms){0});
    }
    CHECK(pubsub.changes.names.count == CHANNELS);
    free_it(goes);
    int told_of = 0;
    while (tell(observer)[0] == '+') told_of++;
    CHECK_INT(told_of, STAY);
    CHECK_INT(shared.messages_dropped, 0);
    free_it(stays);
    rd_pubsub_release(&pubsub, observer);
    CHECK(rd_changes_is_empty(&pubsub.changes));
    end();
}

/* A thread that publishes without a pause does the loop's work, so that only a few messages wait.
 */
static void test_a_flood_is_bounded(void) {
    static char big[8193];
    memset(big, 'x', sizeof(big) - 1);
    begin();
    rd_endpoint *endpoint = new_push();
    subscribe(endpoint, "news", &(rd_pubsub_terms){.block = 1});
    for (int i = 0; i < 1000; i++) {
        publish("news", big);
        CHECK(pubsub.channels.fanout.waiting_bytes <= 1 << 20);
    }
    CHECK_INT(rd_pubsub_publish(&pubsub, text(""), text("x"), true, RD_REACH_PROCESS),
              RD_ERR_CHANNEL_NAME);
    free_it(endpoint);
    end();
}

/* An empty message takes memory, too. */
static void test_a_flood_of_nothing_is_bounded(void) {
    begin();
    rd_endpoint *endpoint = new_push();
    subscribe(endpoint, "news", &(rd_pubsub_terms){0});
    for (int i = 0; i < 20000; i++) publish("news", "");
    CHECK(pubsub.channels.fanout.waiting * sizeof(rd_message) < 1 << 20);
    free_it(endpoint);
    end();
}

static unsigned served;

static void count_publish(rd_endpoint *endpoint, rd_message *message, rd_receive_as as) {
    (void)endpoint, (void)message, (void)as;
    served++;
}

/* A publisher does not hold the lock until a whole crowd has its message, and still only a few
 * messages wait. */
static void test_a_large_message_for_a_crowd(void) {
    enum { CROWD = 4000, LARGE = 1 << 20 };
    static const char large[LARGE];
    static rd_endpoint *crowd[CROWD];
    static rd_endpoint_ops counting;
    begin();
    counting = ops;
    counting.deliver = count_publish;
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = new_push();
        crowd[i]->source.ops = &counting.events;
        subscribe(crowd[i], "news", &(rd_pubsub_terms){0});
    }
    served = 0;
    for (int i = 0; i < 50; i++) {
        const unsigned before = served;
        CHECK_INT(rd_pubsub_publish(&pubsub, text("news"), rd_slice_of(large, LARGE), true,
                                    RD_REACH_PROCESS),
                  1);
        if (i == 0) CHECK_INT(served - before, RD_FANOUT_SLICE);
        CHECK(pubsub.channels.fanout.waiting <= 8);
    }
    deliver();
    CHECK_INT(served, 50 * CROWD);
    for (int i = 0; i < CROWD; i++) free_it(crowd[i]);
    end();
}

int main(void) {
    test_straight_to_the_client();
    test_blocks_are_told_in_order();
    test_a_slow_block_is_bounded();
    test_handler_changes_come_before_messages();
    test_history_is_replayed_once();
    test_ids_only_where_somebody_keeps();
    test_the_watcher();
    test_a_watcher_that_is_overtaken();
    test_a_watcher_that_is_late_misses_nothing();
    test_a_flood_is_bounded();
    test_a_flood_of_nothing_is_bounded();
    test_a_large_message_for_a_crowd();
    return check_summary();
}
