/* SPDX-License-Identifier: MIT
 *
 * Fanning out: slices, gathering, who is in time and who is not, callbacks that change everything
 * under the cursor, and random operations in and between callbacks with a model that says which
 * message each subscription has to get next.
 */
#include <stdlib.h>

#include "check.h"
#include "pubsub/channel.h"

typedef struct crowd crowd;

typedef struct member {
    rd_subscriber subscriber;
    crowd *crowd;
    unsigned index, count;
    char heard[128];
} member;

/* Many subscribers, and what one of them does when it gets a message. */
struct crowd {
    rd_channels channels;
    member *members;
    unsigned size, served;
    const member *last; /* the member that got the last message */
    unsigned changes;   /* how often that was another member */
    void (*act)(crowd *self, member *member);
    unsigned told_served, told_near;
    void (*act_served)(crowd *self, member *member);
};

static void hear(rd_subscriber *subscriber, rd_subscription *subscription, rd_message *message) {
    member *self = RD_CONTAINER(subscriber, member, subscriber);
    crowd *all = self->crowd;
    const rd_slice payload = rd_message_payload(message);
    (void)subscription;
    self->count++;
    all->served++;
    all->changes += all->last != self;
    all->last = self;
    if (strlen(self->heard) + payload.len < sizeof(self->heard)) {
        strncat(self->heard, payload.ptr, payload.len);
    }
    if (all->act != NULL) all->act(all, self);
    /* The message lives on, whatever the callbacks did. */
    CHECK(rd_message_payload(message).ptr == payload.ptr && message->refs > 0);
}

/* Its messages came one after the other, without messages of others between them. */
static void be_served(rd_subscriber *subscriber) {
    member *self = RD_CONTAINER(subscriber, member, subscriber);
    crowd *all = self->crowd;
    CHECK(all->last == self);
    all->told_served++;
    if (all->act_served != NULL) all->act_served(all, self);
}

static void be_near(const rd_subscriber *subscriber) {
    const member *self = RD_CONTAINER(subscriber, const member, subscriber);
    CHECK(self->crowd->last != self);
    self->crowd->told_near++;
}

static const rd_subscriber_kind member_kind = {
    .on_message = hear, .on_served = be_served, .on_near = be_near, .limit = 100};

static void join(crowd *all, unsigned index, const char *name) {
    const rd_slice slice = {name, strlen(name)};
    const rd_subscribe_terms terms = {0};
    CHECK(rd_channels_subscribe(&all->channels, &all->members[index].subscriber, slice, false,
                                &terms) >= 0);
}

static void leave(crowd *all, unsigned index, const char *name) {
    const rd_slice slice = {name, strlen(name)};
    CHECK(rd_channels_unsubscribe(&all->channels, &all->members[index].subscriber, slice, false));
}

static void publish(crowd *all, const char *name, const char *payload) {
    const rd_slice channel = {name, strlen(name)}, bytes = {payload, strlen(payload)};
    rd_message *message = rd_message_new(channel, bytes, true, 0);
    CHECK(rd_channels_enqueue(&all->channels, message) >= 0);
    rd_message_unref(message);
}

static void crowd_init(crowd *self, unsigned size, unsigned joined, const char *name) {
    *self = (crowd){.size = size, .members = calloc(size, sizeof(member))};
    rd_channels_init(&self->channels, NULL);
    for (unsigned i = 0; i < size; i++) {
        self->members[i].crowd = self;
        self->members[i].index = i;
        rd_subscriber_init(&self->members[i].subscriber, &member_kind);
    }
    for (unsigned i = 0; i < joined; i++) join(self, i, name);
}

static void crowd_clear(crowd *self) {
    rd_channels_clear(&self->channels);
    CHECK(self->channels.fanout.waiting == 0 && self->channels.fanout.waiting_bytes == 0);
    free(self->members);
}

static void drain(crowd *self) {
    while (rd_channels_run(&self->channels)) continue;
    CHECK(self->channels.fanout.waiting == 0 && self->channels.fanout.waiting_bytes == 0);
}

static void test_slices(void) {
    crowd all;
    crowd_init(&all, 1000, 1000, "x");
    publish(&all, "x", "hello");
    CHECK(all.channels.fanout.waiting_bytes > sizeof(rd_message) + 6);
    for (unsigned slice = 1; slice <= 4; slice++) {
        CHECK_INT(rd_channels_run(&all.channels), slice < 4);
        CHECK_INT(all.served, slice < 4 ? slice * RD_FANOUT_SLICE : 1000);
    }
    CHECK(!rd_channels_run(&all.channels));
    for (unsigned i = 0; i < 1000; i++) CHECK_INT(all.members[i].count, 1);
    crowd_clear(&all);
}

/* Each subscriber gets all gathered messages before the next one gets any. */
static void test_gathering(void) {
    crowd all;
    crowd_init(&all, 10, 10, "x");
    for (char text[] = "a"; text[0] <= 'j'; text[0]++) publish(&all, "x", text);
    drain(&all);
    CHECK_INT(all.changes, 10);
    for (unsigned i = 0; i < 10; i++) CHECK_STR(all.members[i].heard, "abcdefghij");
    for (int i = 0; i < RD_FANOUT_GATHER_MAX * 2 + 1; i++) publish(&all, "x", "");
    all.changes = all.served = 0;
    drain(&all);
    CHECK_INT(all.changes, 30);
    CHECK_INT(all.served, 10 * (RD_FANOUT_GATHER_MAX * 2 + 1));
    crowd_clear(&all);
}

/* Each member of a crowd is notified when it has all its messages. This does not hold for a few
 * members, or if another channel has messages, which may be for the same members. */
static void test_members_of_a_crowd_are_told(void) {
    crowd all;
    crowd_init(&all, RD_FANOUT_CROWD + 1, RD_FANOUT_CROWD, "x");
    for (unsigned i = 0; i < RD_FANOUT_CROWD - 1; i++) join(&all, i, "few");
    join(&all, RD_FANOUT_CROWD, "y");
    for (int i = 0; i < 3; i++) publish(&all, "x", "m");
    drain(&all);
    CHECK_INT(all.told_served, RD_FANOUT_CROWD);
    CHECK_INT(all.told_near, RD_FANOUT_CROWD - 1);
    CHECK_INT(all.changes, RD_FANOUT_CROWD);
    publish(&all, "few", "m");
    drain(&all);
    publish(&all, "x", "m");
    publish(&all, "y", "m");
    drain(&all);
    CHECK_INT(all.told_served, RD_FANOUT_CROWD);
    crowd_clear(&all);
}

static void end_neighbour(crowd *self, member *member) {
    if (member->index % 2 == 0) leave(self, member->index + 1, "x");
    if (member->index % 4 == 0) leave(self, member->index, "x");
}

static void end_all(crowd *self, member *member) {
    (void)member;
    for (unsigned i = 0; i < self->size; i++) {
        rd_subscriber_clear(&self->channels, &self->members[i].subscriber);
    }
}

/* A connection may turn out to be closed when its messages are sent. */
static void test_members_of_a_crowd_that_leave(void) {
    crowd all;
    crowd_init(&all, 400, 400, "x");
    all.act_served = end_neighbour;
    publish(&all, "x", "m");
    drain(&all);
    CHECK_INT(all.served, 200);
    all.act_served = NULL;
    publish(&all, "x", "m");
    drain(&all);
    CHECK_INT(all.served, 300);
    all.act_served = end_all;
    publish(&all, "x", "m");
    drain(&all);
    CHECK_INT(all.served, 301);
    crowd_clear(&all);
}

/* In the middle of a fan-out, a new subscriber gets only the next message, and one that leaves gets
 * no more. */
static void test_coming_and_going(void) {
    crowd all;
    crowd_init(&all, 700, 600, "x");
    publish(&all, "x", "1");
    CHECK(rd_channels_run(&all.channels));
    leave(&all, 10, "x");              /* has the message already */
    leave(&all, RD_FANOUT_SLICE, "x"); /* is the next one */
    leave(&all, 599, "x");             /* is the last one */
    join(&all, 10, "x");
    for (unsigned i = 600; i < 700; i++) join(&all, i, "x");
    publish(&all, "x", "2");
    drain(&all);
    for (unsigned i = 0; i < 700; i++) {
        const bool is_gone = i == RD_FANOUT_SLICE || i == 599;
        CHECK_STR(all.members[i].heard, is_gone ? "" : i >= 600 ? "2" : "12");
    }
    crowd_clear(&all);
}

/* A channel with few subscribers does not wait until one with many has finished. */
static void test_small_channel_beside_a_big_one(void) {
    crowd all;
    crowd_init(&all, 2001, 2000, "big");
    join(&all, 2000, "small");
    publish(&all, "big", "b");
    publish(&all, "small", "s");
    CHECK(rd_channels_run(&all.channels));
    CHECK(rd_channels_run(&all.channels));
    CHECK_STR(all.members[2000].heard, "s");
    drain(&all);
    CHECK_INT(all.served, 2001);
    crowd_clear(&all);
}

static void leave_myself(crowd *all, member *member) {
    leave(all, member->index, "x");
}

static void end_everybody(crowd *all, member *member) {
    (void)member;
    for (unsigned i = 0; i < all->size; i++) {
        rd_subscriber_clear(&all->channels, &all->members[i].subscriber);
    }
}

static void end_next(crowd *all, member *member) {
    if (member->index % 2 == 0 && member->index + 1 < all->size) {
        rd_subscriber_clear(&all->channels, &all->members[member->index + 1].subscriber);
    }
}

/* Unsubscribe and subscribe again: if there is no other subscriber, the channel is freed and made
 * anew. */
static void come_back(crowd *all, member *member) {
    leave(all, member->index, "x");
    join(all, member->index, "x");
    if (member->count < 3) publish(all, "x", "+");
}

static void answer(crowd *all, member *member) {
    if (member->index == 0 && member->count < 5) publish(all, "x", "r");
    CHECK(rd_channels_run(&all->channels)); /* a call from inside does nothing */
}

static unsigned served_when(void (*act)(crowd *, member *), unsigned size, const char *heard) {
    crowd all;
    crowd_init(&all, size, size, "x");
    all.act = act;
    publish(&all, "x", "1");
    publish(&all, "x", "2");
    drain(&all);
    for (unsigned i = 0; i < size; i += 2) CHECK_STR(all.members[i].heard, heard);
    const unsigned served = all.served;
    crowd_clear(&all);
    return served;
}

static void test_callbacks_that_change_things(void) {
    CHECK_INT(served_when(leave_myself, 100, "1"), 100);
    CHECK_INT(served_when(end_everybody, 1, "1"), 1);
    CHECK_INT(served_when(end_next, 10, "12"), 10);
    CHECK_INT(served_when(come_back, 1, "1++"), 3);
    CHECK_INT(served_when(answer, 1, "12rrrr"), 6);
    crowd all;
    crowd_init(&all, 300, 300, "x");
    all.act = end_everybody;
    publish(&all, "x", "1");
    CHECK(!rd_channels_run(&all.channels));
    CHECK(all.served == 1 && all.channels.names.count == 0);
    crowd_clear(&all);
}

/* --- random operations and a model --- */

enum { PEOPLE = 40, CHANNELS = 5, QUEUE = 4096, ROUNDS = 6000 };

/* The messages that a subscription has yet to get, in order. */
typedef struct expectation {
    bool is_in;
    unsigned first, last;
    unsigned numbers[QUEUE];
} expectation;

static struct model {
    rd_channels channels;
    rd_subscriber people[PEOPLE];
    expectation expected[PEOPLE][CHANNELS][2];
    unsigned number, delivered, in_callbacks;
    uint32_t random;
} model;

static const char *const model_names[CHANNELS] = {"a", "b", "aa", "ab", "bb"};
static const char *const model_patterns[CHANNELS] = {"a", "b", "a?", "*", "b*"};
static const bool model_matches[CHANNELS][CHANNELS] = {/* by pattern, then by name */
                                                       {true, false, false, false, false},
                                                       {false, true, false, false, false},
                                                       {false, false, true, true, false},
                                                       {true, true, true, true, true},
                                                       {false, true, false, false, true}};

static unsigned draw(unsigned below) {
    model.random = model.random * 1103515245u + 12345u;
    return (model.random >> 16) % below;
}

static rd_slice model_name(unsigned which, bool is_pattern) {
    const char *name = is_pattern ? model_patterns[which] : model_names[which];
    return rd_slice_of(name, strlen(name));
}

static void model_forget(expectation *expected) {
    expected->is_in = false;
    expected->first = expected->last = 0;
}

static void model_expect(expectation *expected) {
    if (!expected->is_in) return;
    if (expected->last - expected->first >= QUEUE) abort();
    expected->numbers[expected->last++ % QUEUE] = model.number;
}

static void model_publish(void) {
    const unsigned which = draw(CHANNELS);
    unsigned number = ++model.number;
    for (unsigned who = 0; who < PEOPLE; who++) {
        model_expect(&model.expected[who][which][0]);
        for (unsigned i = 0; i < CHANNELS; i++) {
            if (model_matches[i][which]) model_expect(&model.expected[who][i][1]);
        }
    }
    const rd_slice payload = {(char *)&number, sizeof(number)};
    rd_message *message = rd_message_new(model_name(which, false), payload, false, number);
    CHECK(rd_channels_enqueue(&model.channels, message) >= 0);
    rd_message_unref(message);
}

static void model_subscribe(void) {
    const unsigned who = draw(PEOPLE), which = draw(CHANNELS);
    const bool is_pattern = draw(2) == 1;
    expectation *expected = &model.expected[who][which][is_pattern];
    const rd_subscribe_terms terms = {.with = expected, .is_afresh = draw(3) == 0};
    CHECK_INT(rd_channels_subscribe(&model.channels, &model.people[who],
                                    model_name(which, is_pattern), is_pattern, &terms),
              !expected->is_in);
    if (terms.is_afresh) model_forget(expected);
    expected->is_in = true;
}

static void model_unsubscribe(void) {
    const unsigned who = draw(PEOPLE), which = draw(CHANNELS);
    const bool is_pattern = draw(2) == 1;
    expectation *expected = &model.expected[who][which][is_pattern];
    CHECK_INT(rd_channels_unsubscribe(&model.channels, &model.people[who],
                                      model_name(which, is_pattern), is_pattern),
              expected->is_in);
    model_forget(expected);
}

static void model_leave(unsigned who) {
    rd_subscriber_clear(&model.channels, &model.people[who]);
    for (unsigned i = 0; i < CHANNELS * 2; i++) model_forget(&model.expected[who][i / 2][i % 2]);
}

static void model_change(void) {
    const unsigned what = draw(40);
    if (what < 18) model_subscribe();
    if (what >= 18 && what < 26) model_unsubscribe();
    if (what == 26) model_leave(draw(PEOPLE));
    if (what > 30) model_publish();
}

static void model_hear(rd_subscriber *subscriber, rd_subscription *subscription,
                       rd_message *message) {
    expectation *expected = subscription->with;
    unsigned number;
    memcpy(&number, rd_message_payload(message).ptr, sizeof(number));
    model.delivered++;
    if (CHECK(expected->is_in && expected->first < expected->last)) {
        CHECK_INT(number, expected->numbers[expected->first++ % QUEUE]);
    }
    /* Rare enough for the number of messages to fall. */
    if (draw(100) == 0 && ++model.in_callbacks) model_change();
    if (draw(100) == 0) model_leave((unsigned)(subscriber - model.people));
}

static const rd_subscriber_kind model_kind = {.on_message = model_hear, .limit = 100};

static void test_against_a_model(void) {
    rd_channels_init(&model.channels, NULL);
    model.random = 7;
    for (unsigned i = 0; i < PEOPLE; i++) rd_subscriber_init(&model.people[i], &model_kind);
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned left = draw(12); left > 0; left--) model_change();
        (void)rd_fanout_run(&model.channels.fanout, draw(30));
        if (round % 50 != 0) continue;
        while (rd_fanout_run(&model.channels.fanout, 1 + draw(9))) continue;
        for (unsigned i = 0; i < PEOPLE * CHANNELS * 2; i++) {
            const expectation *expected = &model.expected[0][0][0] + i;
            CHECK_INT(expected->last - expected->first, 0);
        }
    }
    CHECK(model.delivered > 10000 && model.in_callbacks > 100);
    rd_channels_clear(&model.channels);
    CHECK_INT(model.channels.fanout.waiting, 0);
}

int main(void) {
    test_slices();
    test_gathering();
    test_members_of_a_crowd_are_told();
    test_members_of_a_crowd_that_leave();
    test_coming_and_going();
    test_small_channel_beside_a_big_one();
    test_callbacks_that_change_things();
    test_against_a_model();
    return check_summary();
}
