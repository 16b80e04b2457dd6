/* SPDX-License-Identifier: MIT
 *
 * The table of channels: who gets what, what the engine hears, limits, and random operations
 * compared with a model that is only arrays. Fanning out in slices is test_fanout.c's.
 */
#include <stdlib.h>

#include "base/error.h"
#include "check.h"
#include "naive_glob.h"
#include "pubsub/channel.h"

/* --- a subscriber that records everything --- */

typedef struct listener {
    rd_subscriber subscriber;
    rd_subscriber_kind kind;
    char heard[512];
    unsigned ended, count;
} listener;

static void hear(rd_subscriber *subscriber, rd_subscription *subscription, rd_message *message) {
    listener *self = RD_CONTAINER(subscriber, listener, subscriber);
    const rd_slice payload = rd_message_payload(message);
    const size_t at = strlen(self->heard);
    self->count++;
    (void)snprintf(self->heard + at, sizeof(self->heard) - at, "%s=%.*s ",
                   subscription->with ? (const char *)subscription->with : "", (int)payload.len,
                   payload.ptr);
}

static void hear_end(rd_subscriber *subscriber, void *with) {
    (void)with;
    RD_CONTAINER(subscriber, listener, subscriber)->ended++;
}

static void listener_init(listener *self, uint32_t limit) {
    *self = (listener){.kind = {.on_message = hear, .on_end = hear_end, .limit = limit}};
    rd_subscriber_init(&self->subscriber, &self->kind);
}

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

static int subscribe(rd_channels *channels, listener *self, const char *name, bool is_pattern) {
    return rd_channels_subscribe(channels, &self->subscriber, text(name), is_pattern,
                                 &(rd_subscribe_terms){0});
}

/* Each entry in its record begins with `label`. */
static int subscribe_as(rd_channels *channels, listener *self, const char *name, bool is_pattern,
                        char *label) {
    return rd_channels_subscribe(channels, &self->subscriber, text(name), is_pattern,
                                 &(rd_subscribe_terms){.with = label});
}

static bool unsubscribe(rd_channels *channels, listener *self, const char *name, bool is_pattern) {
    return rd_channels_unsubscribe(channels, &self->subscriber, text(name), is_pattern);
}

static int publish(rd_channels *channels, const char *name, const char *payload) {
    rd_message *message = rd_message_new(text(name), text(payload), true, 0);
    const int taken = rd_channels_enqueue(channels, message);
    rd_message_unref(message);
    return taken;
}

static void deliver(rd_channels *channels) {
    while (rd_channels_run(channels)) continue;
}

static uint32_t count_of(const rd_channels *channels) {
    return channels->names.count + channels->patterns.count;
}

/* --- an engine that records --- */

typedef struct note_engine {
    rd_engine engine;
    char told[256];
} note_engine;

static void note(rd_engine *engine, char sign, rd_slice name, bool is_pattern) {
    char *told = RD_CONTAINER(engine, note_engine, engine)->told;
    const size_t at = strlen(told);
    (void)snprintf(told + at, 256 - at, "%c%.*s%s ", sign, (int)name.len, name.ptr,
                   is_pattern ? "!" : "");
}

static void engine_subscribe(rd_engine *engine, rd_slice name, bool is_pattern) {
    note(engine, '+', name, is_pattern);
}

static void engine_unsubscribe(rd_engine *engine, rd_slice name, bool is_pattern) {
    note(engine, '-', name, is_pattern);
}

static note_engine engine_that_notes(void) {
    return (note_engine){.engine = {engine_subscribe, engine_unsubscribe}};
}

/* --- tests --- */

static void test_who_gets_what(void) {
    rd_channels channels;
    listener a, b;
    char name[] = "name", pattern[] = "pattern";
    rd_channels_init(&channels, NULL);
    listener_init(&a, 10);
    listener_init(&b, 10);
    CHECK_INT(subscribe_as(&channels, &a, "news", false, name), 1);
    CHECK_INT(subscribe_as(&channels, &a, "n*", true, pattern), 1);
    CHECK_INT(subscribe_as(&channels, &b, "n*", false, name), 1); /* the channel with that name */
    CHECK_INT(publish(&channels, "news", "1"), 2);
    CHECK_INT(publish(&channels, "n*", "2"), 2);
    CHECK_INT(publish(&channels, "else", "3"), 0);
    CHECK_STR(a.heard, "");
    deliver(&channels);
    CHECK_STR(a.heard, "name=1 pattern=1 pattern=2 ");
    CHECK_STR(b.heard, "name=2 ");
    CHECK_INT(rd_channels_subscribers(&channels, RD_SLICE("n*"), true), 1);
    CHECK_INT(rd_channels_subscribers(&channels, RD_SLICE("none"), true), 0);
    CHECK(!unsubscribe(&channels, &b, "n*", true));
    CHECK(unsubscribe(&channels, &b, "n*", false));
    CHECK(!unsubscribe(&channels, &b, "n*", false));
    CHECK_INT(b.ended, 1);
    rd_subscriber_clear(&channels, &a.subscriber);
    CHECK_INT(a.ended, 2);
    CHECK(count_of(&channels) == 0 && channels.subscription_count == 0);
    rd_channels_clear(&channels);
}

static void test_subscribing_again_replaces(void) {
    rd_channels channels;
    listener a;
    rd_channels_init(&channels, NULL);
    listener_init(&a, 1);
    char one[] = "one", two[] = "two";
    CHECK_INT(subscribe_as(&channels, &a, "x", false, one), 1);
    CHECK_INT(publish(&channels, "x", "1"), 1);
    rd_subscribe_terms terms = {.with = two, .as = RD_AS_BINARY};
    CHECK_INT(rd_channels_subscribe(&channels, &a.subscriber, text("x"), false, &terms), 0);
    CHECK_INT(a.ended, 1);
    CHECK_INT(publish(&channels, "x", "2"), 1);
    deliver(&channels);
    CHECK_STR(a.heard, "two=1 two=2 ");
    CHECK_INT(channels.subscription_count, 1);
    /* A new subscription: messages that wait are not delivered. */
    terms.is_afresh = true;
    CHECK_INT(publish(&channels, "x", "3"), 1);
    CHECK_INT(rd_channels_subscribe(&channels, &a.subscriber, text("x"), false, &terms), 0);
    CHECK_INT(publish(&channels, "x", "4"), 1);
    deliver(&channels);
    CHECK_STR(a.heard, "two=1 two=2 two=4 ");
    rd_channels_clear(&channels);
    CHECK_INT(a.ended, 3);
    CHECK(a.subscriber.subscriptions == NULL);
}

static void test_limits(void) {
    static char name[RD_CHANNEL_NAME_MAX + 1];
    rd_channels channels;
    listener a;
    rd_channels_init(&channels, NULL);
    listener_init(&a, 2);
    const rd_subscribe_terms terms = {0};
    memset(name, 'n', sizeof(name));
    const rd_slice longest = {name, RD_CHANNEL_NAME_MAX}, too_long = {name, sizeof(name)};
    CHECK_INT(rd_channels_subscribe(&channels, &a.subscriber, longest, false, &terms), 1);
    CHECK_INT(rd_channels_subscribe(&channels, &a.subscriber, too_long, true, &terms),
              RD_ERR_CHANNEL_NAME);
    CHECK_INT(rd_channels_subscribe(&channels, &a.subscriber, rd_slice_of(name, RD_GLOB_MAX + 1),
                                    true, &terms),
              RD_ERR_CHANNEL_NAME);
    CHECK_INT(subscribe(&channels, &a, "", false), RD_ERR_CHANNEL_NAME);
    CHECK_INT(publish(&channels, "", "x"), RD_ERR_CHANNEL_NAME);
    CHECK_INT(subscribe(&channels, &a, "two", false), 1);
    CHECK_INT(subscribe(&channels, &a, "three", false), RD_ERR_CHANNEL_LIMIT);
    CHECK_INT(count_of(&channels), 2);
    CHECK_INT(subscribe(&channels, &a, "two", false), 0);
    CHECK(unsubscribe(&channels, &a, "two", false));
    CHECK_INT(subscribe(&channels, &a, "three", false), 1);
    rd_message *message = rd_message_new(longest, RD_SLICE(""), true, 0);
    CHECK_INT(rd_channels_enqueue(&channels, message), 1);
    rd_message_unref(message);
    rd_channels_clear(&channels);
}

static void collect(void *with, rd_slice name, bool is_pattern) {
    note(with, ' ', name, is_pattern);
}

/* The names of one subscriber, and all subscriptions, have limits besides their number. */
static void test_bytes_of_names(void) {
    rd_channels channels;
    rd_ledger ledger;
    listener a, b, own;
    const uint64_t *held = &ledger.rows[RD_LEDGER_SUBSCRIPTIONS].held;
    rd_ledger_init(&ledger);
    rd_ledger_limit(&ledger, RD_LEDGER_SUBSCRIPTIONS, 3 * RD_SUBSCRIPTION_BYTES + 12);
    rd_channels_init(&channels, NULL);
    listener_init(&a, 10);
    listener_init(&b, 10);
    listener_init(&own, 10);
    a.kind.ledger = b.kind.ledger = &ledger;
    a.kind.name_limit = b.kind.name_limit = 10;
    CHECK_INT(subscribe(&channels, &a, "12345678", false), 1);
    CHECK_INT(subscribe(&channels, &a, "abc", false), RD_ERR_CHANNEL_LIMIT);
    CHECK_INT(subscribe(&channels, &a, "ab", true), 1);
    CHECK_INT(subscribe(&channels, &a, "ab", true), 0); /* accepts no more subscriptions */
    CHECK_INT(*held, 2 * RD_SUBSCRIPTION_BYTES + 10);
    CHECK_INT(subscribe(&channels, &b, "abc", false), RD_ERR_SUBSCRIPTIONS_FULL);
    CHECK_INT(rd_channels_subscribers(&channels, RD_SLICE("abc"), false), 0);
    CHECK_INT(subscribe(&channels, &b, "ab", false), 1);
    CHECK_INT(subscribe(&channels, &own, "the application has no such limit", false), 1);
    CHECK_INT(ledger.rows[RD_LEDGER_SUBSCRIPTIONS].refused, 1);
    CHECK(unsubscribe(&channels, &a, "12345678", false));
    CHECK_INT(subscribe(&channels, &b, "abc", false), 1);
    rd_subscriber_clear(&channels, &a.subscriber);
    rd_channels_clear(&channels);
    CHECK_INT(*held, 0);
    CHECK_INT(a.subscriber.name_bytes + b.subscriber.name_bytes, 0);
}

static void test_engine(void) {
    note_engine told = engine_that_notes(), all = engine_that_notes();
    rd_channels channels;
    listener a, b;
    rd_channels_init(&channels, &told.engine);
    listener_init(&a, 10);
    listener_init(&b, 10);
    subscribe(&channels, &a, "x", false);
    subscribe(&channels, &b, "x", false);
    subscribe(&channels, &b, "x", true);
    subscribe(&channels, &b, "x", true);
    CHECK_STR(told.told, "+x +x! ");
    rd_channels_each(&channels, collect, &all.engine);
    CHECK_INT(strlen(all.told), strlen(" x  x! "));
    unsubscribe(&channels, &a, "x", false);
    rd_subscriber_clear(&channels, &b.subscriber);
    CHECK_STR(told.told, "+x +x! -x -x! ");
    subscribe(&channels, &a, "x", false);
    CHECK_STR(told.told, "+x +x! -x -x! +x ");
    rd_channels_clear(&channels);
    CHECK_STR(told.told, "+x +x! -x -x! +x ");
}

/* The engine of a process that is there later hears of no names that are secrets of the process. */
static void test_private_channels(void) {
    note_engine all = engine_that_notes();
    rd_channels channels;
    listener a;
    rd_channels_init(&channels, NULL);
    listener_init(&a, 10);
    CHECK_INT(rd_channels_subscribe(&channels, &a.subscriber, RD_SLICE("\0rondo/a"), false,
                                    &(rd_subscribe_terms){0}),
              1);
    subscribe(&channels, &a, "x", false);
    rd_channels_each(&channels, collect, &all.engine);
    CHECK_STR(all.told, " x ");
    rd_channels_clear(&channels);
}

static void test_many_channels(void) {
    enum { MANY = 20000 };
    rd_channels channels;
    listener a;
    char name[24];
    rd_channels_init(&channels, NULL);
    listener_init(&a, MANY);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof(name), "room:%d", i);
        if (subscribe(&channels, &a, name, false) != 1) CHECK_SAYS(false, "%s", name);
    }
    CHECK_INT(count_of(&channels), MANY);
    CHECK(channels.names.bucket_count >= MANY);
    for (int i = 0; i < MANY; i += 7) {
        (void)snprintf(name, sizeof(name), "room:%d", i);
        if (publish(&channels, name, "") != 1) CHECK_SAYS(false, "%s", name);
    }
    deliver(&channels);
    CHECK_INT(a.count, (MANY + 6) / 7);
    rd_subscriber_clear(&channels, &a.subscriber);
    CHECK_INT(a.ended, MANY);
    CHECK(count_of(&channels) == 0 && channels.names.bucket_count <= 16);
    rd_channels_clear(&channels);
}

/* --- random operations and a model --- */

enum { PEOPLE = 12, NAMES = 10, ROUNDS = 40000, LIMIT = 9 };

static const char *const names[NAMES] = {"a",  "b",     "ab", "a*", "*",
                                         "?b", "[a-b]", "ba", "**", "a?"};

typedef struct model {
    bool is_in[PEOPLE][NAMES][2];
    unsigned expected[PEOPLE];
    listener people[PEOPLE];
    unsigned random;
} model;

static unsigned draw(model *self, unsigned below) {
    self->random = self->random * 1103515245u + 12345u;
    return (self->random >> 16) % below;
}

static unsigned model_count(const model *self, unsigned who) {
    unsigned count = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        count += self->is_in[who][i][0];
        count += self->is_in[who][i][1];
    }
    return count;
}

static void random_subscribe(model *self, rd_channels *channels) {
    const unsigned who = draw(self, PEOPLE), which = draw(self, NAMES);
    const bool is_pattern = draw(self, 2) == 1;
    bool *is_in = &self->is_in[who][which][is_pattern];
    const int expected = *is_in ? 0 : model_count(self, who) < LIMIT ? 1 : RD_ERR_CHANNEL_LIMIT;
    CHECK_INT(subscribe(channels, &self->people[who], names[which], is_pattern), expected);
    *is_in |= expected == 1;
}

static void random_unsubscribe(model *self, rd_channels *channels) {
    const unsigned who = draw(self, PEOPLE), which = draw(self, NAMES);
    const bool is_pattern = draw(self, 2) == 1;
    bool *is_in = &self->is_in[who][which][is_pattern];
    CHECK_INT(unsubscribe(channels, &self->people[who], names[which], is_pattern), *is_in);
    *is_in = false;
}

static void random_leave(model *self, rd_channels *channels) {
    const unsigned who = draw(self, PEOPLE);
    rd_subscriber_clear(channels, &self->people[who].subscriber);
    memset(self->is_in[who], 0, sizeof(self->is_in[who]));
}

static void random_publish(model *self, rd_channels *channels) {
    const unsigned which = draw(self, NAMES);
    for (unsigned who = 0; who < PEOPLE; who++) {
        self->expected[who] += self->is_in[who][which][0];
        for (unsigned i = 0; i < NAMES; i++) {
            const bool is_match = naive_glob_matches(text(names[i]), text(names[which]));
            self->expected[who] += is_match && self->is_in[who][i][1];
        }
    }
    CHECK(publish(channels, names[which], "x") >= 0);
    deliver(channels);
    for (unsigned who = 0; who < PEOPLE; who++) {
        CHECK_INT(self->people[who].count, self->expected[who]);
        self->people[who].heard[0] = 0;
    }
}

static void check_counts(const model *self, const rd_channels *channels) {
    unsigned in_use = 0, all = 0;
    for (unsigned i = 0; i < NAMES * 2; i++) {
        unsigned count = 0;
        for (unsigned who = 0; who < PEOPLE; who++) count += self->is_in[who][i / 2][i % 2];
        CHECK_INT(rd_channels_subscribers(channels, text(names[i / 2]), i % 2), count);
        in_use += count > 0;
        all += count;
    }
    CHECK_INT(count_of(channels), in_use);
    CHECK_INT(channels->subscription_count, all);
}

static void test_against_a_model(void) {
    static model self;
    rd_channels channels;
    rd_channels_init(&channels, NULL);
    self.random = 1;
    for (unsigned i = 0; i < PEOPLE; i++) listener_init(&self.people[i], LIMIT);
    for (int i = 0; i < ROUNDS; i++) {
        const unsigned what = draw(&self, 20);
        if (what < 9) random_subscribe(&self, &channels);
        if (what >= 9 && what < 15) random_unsubscribe(&self, &channels);
        if (what == 15) random_leave(&self, &channels);
        if (what > 15) random_publish(&self, &channels);
        if (i % 64 == 0) check_counts(&self, &channels);
    }
    rd_channels_clear(&channels);
}

int main(void) {
    test_who_gets_what();
    test_subscribing_again_replaces();
    test_limits();
    test_bytes_of_names();
    test_engine();
    test_private_channels();
    test_many_channels();
    test_against_a_model();
    return check_summary();
}
