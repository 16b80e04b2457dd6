/* SPDX-License-Identifier: MIT
 *
 * The hub with an engine that keeps messages (pubsub/hub_streams.c): what it tells the engine, what
 * it takes from it, and when it answers clients that were away.
 */
#include "base/error.h"
#include "check.h"
#include "pubsub/hub.h"
#include "pubsub/hub_interests.h"

enum { LOG = 4096, WORKER = 0, ENGINE = 1 };

static rd_hub hub;
static rd_hub_link links[2];
static char said[2][LOG];
static bool is_full; /* the queue of the engine */

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

static bool send_to(rd_hub_link *link, const rd_relay_frame *frame, rd_message *message) {
    static const char *const types[] = {"?",     "sub", "unsub", "pub", "replay",
                                        "begin", "end", "keep",  "?",   "?",
                                        "?",     "?",   "?",     "?",   "waits"};
    char *log = said[link - links];
    const size_t len = strlen(log);
    if (is_full && link == &links[ENGINE] && frame->type == RD_RELAY_SUBSCRIBE) return false;
    const bool is_message = frame->type == RD_RELAY_PUBLISH;
    (void)message;
    if (!CHECK(len < LOG - 100)) return false;
    (void)snprintf(log + len, LOG - len, "%s%s %.*s %.*s #%d;", types[frame->type],
                   frame->flags & RD_RELAY_GAP       ? "!"
                   : frame->flags & RD_RELAY_CONFIRM ? "?"
                                                     : "",
                   (int)frame->channel.len, frame->channel.ptr,
                   is_message ? (int)frame->payload.len : 0,
                   is_message && frame->payload.len > 0 ? frame->payload.ptr : "", (int)frame->id);
    return true;
}

static size_t room_of(const rd_hub_link *link) {
    (void)link;
    return 1 << 20;
}

static void check_said(int link, const char *expected) {
    CHECK_STR(said[link], expected);
    said[link][0] = '\0';
}

/* One turn answers for a millisecond. */
static void answer_all(void) {
    while (rd_hub_answer(&hub)) continue;
}

static int say(int link, rd_relay_type type, int flags, const char *channel, const char *payload,
               uint64_t id) {
    return rd_hub_receive(&hub, &links[link],
                          &(rd_relay_frame){.type = type,
                                            .flags = (uint8_t)flags,
                                            .id = id,
                                            .channel = text(channel),
                                            .payload = text(payload)});
}

static void begin_copy_for(uint64_t number, const char *channel, uint64_t floor, uint64_t known) {
    char note[24];
    rd_relay_put_number(note, 8, 1000);
    rd_relay_put_number(note + 8, 8, known);
    rd_relay_put_number(note + 16, 8, number);
    CHECK_INT(rd_hub_receive(&hub, &links[ENGINE],
                             &(rd_relay_frame){.type = RD_RELAY_REPLAY_BEGIN,
                                               .id = floor,
                                               .channel = text(channel),
                                               .payload = rd_slice_of(note, sizeof(note))}),
              0);
}

/* For the topic that has this name now. */
static void begin_copy(const char *channel, uint64_t floor, uint64_t known) {
    const rd_hub_topic *topic = rd_hub_find_topic(&hub, text(channel), false);
    begin_copy_for(topic == NULL ? 0 : topic->number, channel, floor, known);
}

static void end_copy(const char *channel) {
    CHECK_INT(say(ENGINE, RD_RELAY_REPLAY_END, 0, channel, "", 0), 0);
}

/* Without any message. */
static void load_copy(const char *channel, uint64_t known) {
    begin_copy(channel, 10, known);
    end_copy(channel);
}

static void begin(void) {
    rd_hub_init(&hub, send_to, room_of, (rd_history_limits){100, 1 << 20}, 5);
    CHECK_INT(rd_hub_keep(&hub, text("k*"), true, (rd_relay_terms){10, 0, 0}), 0);
    rd_hub_join(&hub, &links[ENGINE], RD_HUB_STREAMS);
    rd_hub_join(&hub, &links[WORKER], RD_HUB_WORKER);
    check_said(ENGINE, "keep k*  #1;");
    check_said(WORKER, "keep k*  #1;");
}

static void finish(void) {
    for (int link = 0; link < 2; link++) {
        rd_hub_leave(&hub, &links[link]);
        said[link][0] = '\0';
    }
    rd_hub_clear(&hub);
}

static void test_the_engine_learns_which_rule_applies(void) {
    begin();
    say(WORKER, RD_RELAY_SUBSCRIBE, 0, "ka", "", 0);
    say(WORKER, RD_RELAY_SUBSCRIBE, 0, "other", "", 0);
    say(WORKER, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "ka", "x", 0);
    say(WORKER, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "other", "y", 0);
    check_said(ENGINE, "sub ka  #1;sub other  #0;pub ka x #1;pub other y #0;");
    CHECK_INT(rd_hub_keep(&hub, text("other"), false, (rd_relay_terms){10, 0, 0}), 0);
    check_said(ENGINE, "keep k*  #1;keep other  #2;sub ka  #1;sub other  #1;");
    check_said(WORKER, "keep other  #1;");
    finish();
}

/* The engine learns that somebody waits; without one the message waits with its note. */
static void test_who_waits_for_the_engine(void) {
    static const char note[] = "0123456789abcdefx";
    const int flags = RD_RELAY_ENGINE | RD_RELAY_CONFIRM;
    begin();
    hub.unclaimed_max = 1000;
    say(WORKER, RD_RELAY_PUBLISH, flags, "ka", note, 0);
    check_said(ENGINE, "pub? ka 0123456789abcdefx #1;");
    rd_hub_leave(&hub, &links[ENGINE]);
    say(WORKER, RD_RELAY_PUBLISH, flags, "ka", note, 0);
    rd_hub_join(&hub, &links[ENGINE], RD_HUB_STREAMS);
    check_said(ENGINE, "keep k*  #1;pub? ka 0123456789abcdefx #1;");
    check_said(WORKER, "");
    finish();
}

/* No worker says so, and no engine that keeps nothing. */
static void test_only_an_engine_with_streams_knows_its_ids(void) {
    rd_relay_frame frame = {.type = RD_RELAY_SAVED_ENGINE, .id = 9};
    begin();
    CHECK_INT(rd_hub_receive(&hub, &links[WORKER], &frame), RD_ERR_RELAY_TYPE);
    CHECK_INT(hub.engine_id, 0);
    CHECK_INT(rd_hub_receive(&hub, &links[ENGINE], &frame), 0);
    frame.id = 8;
    CHECK_INT(rd_hub_receive(&hub, &links[ENGINE], &frame), 0);
    CHECK_INT(hub.engine_id, 9);
    finish();
}

static void test_ids_are_those_of_the_engine(void) {
    begin();
    say(WORKER, RD_RELAY_SUBSCRIBE, 0, "ka", "", 0);
    say(WORKER, RD_RELAY_PUBLISH, RD_RELAY_ECHO, "ka", "here", 0);
    say(ENGINE, RD_RELAY_PUBLISH, RD_RELAY_TEXT, "ka", "one", 70);
    say(ENGINE, RD_RELAY_PUBLISH, RD_RELAY_TEXT | RD_RELAY_GAP, "ka", "", 80);
    check_said(WORKER, "pub ka here #0;pub ka one #70;pub! ka  #80;");
    check_said(ENGINE, "sub ka  #1;");
    finish();
}

/* Whoever was away waits for the copy, which is asked for once. */
static void test_a_copy_is_asked_for_once(void) {
    begin();
    for (int i = 0; i < 3; i++) say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 20);
    check_said(ENGINE, "sub ka  #1;replay ka  #1;");
    answer_all();
    CHECK(!rd_hub_can_answer(&hub));
    check_said(WORKER, "");
    begin_copy("ka", 10, 40);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "old", 15);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "new", 30);
    end_copy("ka");
    check_said(WORKER, "");
    CHECK(rd_hub_can_answer(&hub));
    answer_all();
    check_said(WORKER,
               "begin ka  #0;pub ka new #30;end ka  #0;begin ka  #0;pub ka new #30;end ka  #0;"
               "begin ka  #0;pub ka new #30;end ka  #0;");
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 9); /* below the floor */
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 40);
    answer_all();
    check_said(WORKER,
               "begin ka  #0;pub ka old #15;pub ka new #30;end ka  #1;begin ka  #0;end ka  #0;");
    check_said(ENGINE, "");
    finish();
}

/* A long copy comes in many pieces, and the hub answers between them. */
static void test_a_part_of_a_copy_answers_nobody(void) {
    begin();
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 20);
    check_said(ENGINE, "sub ka  #1;replay ka  #1;");
    begin_copy("ka", 10, 40);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "old", 15);
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 25);
    CHECK(!rd_hub_can_answer(&hub));
    answer_all();
    check_said(WORKER, "");
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "new", 30);
    answer_all();
    check_said(WORKER, "");
    end_copy("ka");
    answer_all();
    check_said(WORKER,
               "begin ka  #0;pub ka new #30;end ka  #0;begin ka  #0;pub ka new #30;end ka  #0;");
    check_said(ENGINE, "");
    finish();
}

/* What has come of it is no copy. */
static void test_an_engine_that_ends_in_a_copy(void) {
    begin();
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 20);
    begin_copy("ka", 10, 40);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "old", 15);
    rd_hub_leave(&hub, &links[ENGINE]);
    CHECK(!rd_hub_can_answer(&hub));
    CHECK_INT(hub.history.count, 0);
    said[ENGINE][0] = '\0';
    rd_hub_join(&hub, &links[ENGINE], RD_HUB_STREAMS);
    answer_all();
    check_said(ENGINE, "keep k*  #1;sub ka  #15;replay ka  #1;");
    begin_copy("ka", 10, 40);
    say(WORKER, RD_RELAY_UNSUBSCRIBE, 0, "ka", "", 0);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "new", 30);
    end_copy("ka");
    finish();
}

/* A client has seen more elsewhere than came here, or has an id of another installation. */
static void test_an_id_above_the_copy_asks_again(void) {
    begin();
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 50);
    load_copy("ka", 40);
    check_said(ENGINE, "sub ka  #1;replay ka  #1;");
    answer_all();
    check_said(WORKER, "");
    check_said(ENGINE, "replay ka  #1;");
    begin_copy("ka", 10, 60);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "later", 55);
    end_copy("ka");
    answer_all();
    check_said(WORKER, "begin ka  #0;pub ka later #55;end ka  #0;");
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 99);
    for (int i = 0; i < 2; i++) {
        check_said(ENGINE, "replay ka  #1;");
        load_copy("ka", 60);
        answer_all();
    }
    check_said(WORKER, "begin ka  #0;end ka  #2;"); /* unknown */
    finish();
}

/* Clients with such ids share the copies that show it. */
static void test_ids_of_no_message_cost_two_copies(void) {
    begin();
    for (int i = 0; i < 50; i++) say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 90);
    check_said(ENGINE, "sub ka  #1;replay ka  #1;");
    for (int i = 0; i < 3; i++) {
        load_copy("ka", 60);
        answer_all();
    }
    check_said(ENGINE, "replay ka  #1;replay ka  #1;"); /* the first was too early for most */
    CHECK_INT(links[WORKER].replay_count, 0);
    finish();
}

/* A worker that knows of it is told which answer waits, and others overtake it. */
static void test_what_waits_for_the_engine_is_set_aside(void) {
    static const char known[] = "0123456789abcdefg", *older = "0123456789abcdef";
    begin();
    say(WORKER, RD_RELAY_REPLAY, 0, "kb", known, 0);
    check_said(WORKER, "waits kb  #0;");
    load_copy("kb", 40);
    answer_all();
    check_said(WORKER, "begin kb  #0;end kb  #0;");
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", known, 0);
    say(WORKER, RD_RELAY_REPLAY, 0, "kb", known, 0);
    answer_all();
    check_said(WORKER, "waits ka  #0;begin kb  #0;end kb  #0;");
    CHECK(!rd_hub_can_answer(&hub));
    begin_copy("ka", 10, 20);
    CHECK(!rd_hub_can_answer(&hub)); /* a part of it */
    end_copy("ka");
    CHECK(rd_hub_can_answer(&hub));
    answer_all();
    check_said(WORKER, "begin ka  #0;end ka  #0;");
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", known, 99); /* more than the copy has: told once */
    check_said(WORKER, "waits ka  #0;");
    for (int i = 0; i < 2; i++) {
        load_copy("ka", 20);
        answer_all();
    }
    check_said(WORKER, "begin ka  #0;end ka  #2;");
    say(WORKER, RD_RELAY_REPLAY, 0, "kc", older, 0);
    say(WORKER, RD_RELAY_REPLAY, 0, "kb", known, 0);
    answer_all();
    check_said(WORKER, ""); /* behind that of an older version */
    finish();
}

/* Without a subscriber nothing keeps the copy true. */
static void test_a_copy_ends_with_the_last_subscriber(void) {
    begin();
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 0);
    begin_copy("ka", 10, 40);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "one", 30);
    end_copy("ka");
    answer_all();
    CHECK_INT(hub.history.count, 1);
    say(WORKER, RD_RELAY_UNSUBSCRIBE, 0, "ka", "", 0);
    CHECK_INT(hub.history.count, 0);
    begin_copy("ka", 10, 40); /* one that comes too late */
    end_copy("ka");
    CHECK(!rd_history_is_loaded(&hub.history, text("ka")));
    finish();
}

/* A worker ended meanwhile. What was published between the two subscriptions did not come here. */
static void test_a_copy_for_an_earlier_topic_answers_nobody(void) {
    begin();
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 20);
    check_said(ENGINE, "sub ka  #1;replay ka  #1;");
    rd_hub_leave(&hub, &links[WORKER]);
    rd_hub_join(&hub, &links[WORKER], RD_HUB_WORKER);
    check_said(WORKER, "keep k*  #1;");
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 20);
    check_said(ENGINE, "unsub ka  #0;sub ka  #1;replay ka  #2;");
    begin_copy_for(1, "ka", 10, 40);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "one", 30);
    end_copy("ka");
    answer_all();
    check_said(WORKER, "");
    CHECK_INT(hub.history.count, 0);
    begin_copy_for(2, "ka", 10, 60);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "one", 30);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "two", 50);
    end_copy("ka");
    answer_all();
    check_said(WORKER, "begin ka  #0;pub ka one #30;pub ka two #50;end ka  #0;");
    finish();
}

static void end_engine(void) {
    rd_hub_leave(&hub, &links[ENGINE]);
    said[ENGINE][0] = '\0';
}

/* The next program tells its engine how far the old one came. */
static void test_the_next_engine_goes_on_after_the_last_message(void) {
    begin();
    say(WORKER, RD_RELAY_SUBSCRIBE, 0, "ka", "", 0);
    say(WORKER, RD_RELAY_SUBSCRIBE, 0, "kb", "", 0);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "one", 70);
    end_engine();
    rd_hub_join(&hub, &links[ENGINE], RD_HUB_STREAMS);
    check_said(ENGINE, "keep k*  #1;sub ka  #70;sub kb  #70;");
    finish();
}

/* The floor of a copy may be a time at which the engine has not given any id yet. */
static void test_the_next_engine_goes_on_at_what_the_copy_knew(void) {
    begin();
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "", 0);
    begin_copy("ka", 90, 40);
    end_copy("ka");
    answer_all();
    end_engine();
    rd_hub_join(&hub, &links[ENGINE], RD_HUB_STREAMS);
    check_said(ENGINE, "keep k*  #1;sub ka  #40;");
    finish();
}

static void change_to_full_engine(void) {
    end_engine();
    is_full = true;
    rd_hub_join(&hub, &links[ENGINE], RD_HUB_STREAMS);
}

static void let_engine_catch_up(void) {
    is_full = false;
    rd_hub_catch_up(&hub, 10);
}

/* A queue that is full delays what the engine is told, and changes nothing of it. */
static void test_what_waits_for_the_next_engine_goes_on_there_too(void) {
    begin();
    say(WORKER, RD_RELAY_SUBSCRIBE, 0, "ka", "", 0);
    say(WORKER, RD_RELAY_SUBSCRIBE, 0, "other", "", 0);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "one", 70);
    change_to_full_engine();
    say(WORKER, RD_RELAY_SUBSCRIBE, 0, "kb", "", 0);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "ka", "two", 80);
    check_said(ENGINE, "keep k*  #1;");
    let_engine_catch_up();
    check_said(ENGINE, "sub ka  #70;sub other  #0;sub kb  #1;");
    finish();
}

/* The engine would take the replay for a subscription from now on. */
static void test_a_replay_does_not_overtake_its_subscription(void) {
    static const char known[] = "0123456789abcdefg", *older = "0123456789abcdef";
    begin();
    say(WORKER, RD_RELAY_REPLAY, 0, "kb", known, 0);
    load_copy("kb", 40);
    answer_all();
    check_said(ENGINE, "sub kb  #1;replay kb  #1;");
    check_said(WORKER, "waits kb  #0;begin kb  #0;end kb  #0;");
    is_full = true;
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", known, 20);
    say(WORKER, RD_RELAY_REPLAY, 0, "kb", known, 0); /* does not wait behind it */
    answer_all();
    check_said(ENGINE, "");
    check_said(WORKER, "waits ka  #0;begin kb  #0;end kb  #0;");
    say(WORKER, RD_RELAY_REPLAY, 0, "kc", older, 20);
    answer_all();
    check_said(ENGINE, "");
    let_engine_catch_up();
    answer_all();
    check_said(ENGINE, "sub ka  #1;sub kc  #1;replay kc  #3;");
    check_said(WORKER, "");
    load_copy("kc", 40);
    answer_all();
    check_said(ENGINE, "replay ka  #2;");
    check_said(WORKER, "begin kc  #0;end kc  #0;");
    load_copy("ka", 40);
    answer_all();
    check_said(WORKER, "begin ka  #0;end ka  #0;");
    finish();
}

/* The next engine goes on where the last one was, and not from now on. */
static void test_a_replay_does_not_overtake_what_the_next_engine_is_told(void) {
    begin();
    say(WORKER, RD_RELAY_REPLAY, 0, "ka", "0123456789abcdefg", 20);
    say(WORKER, RD_RELAY_SUBSCRIBE, 0, "kb", "", 0);
    say(ENGINE, RD_RELAY_PUBLISH, 0, "kb", "one", 70);
    change_to_full_engine();
    answer_all();
    check_said(ENGINE, "keep k*  #1;");
    let_engine_catch_up();
    answer_all();
    check_said(ENGINE, "sub ka  #70;sub kb  #70;replay ka  #1;");
    finish();
}

static void test_what_no_engine_says(void) {
    begin();
    CHECK_INT(say(ENGINE, RD_RELAY_REPLAY_END, 0, "ka", "", 0), RD_ERR_RELAY_TYPE);
    CHECK_INT(say(ENGINE, RD_RELAY_REPLAY_BEGIN, 0, "ka", "short", 0), RD_ERR_RELAY_TYPE);
    CHECK_INT(say(ENGINE, RD_RELAY_SUBSCRIBE, 0, "ka", "", 0), RD_ERR_RELAY_TYPE);
    begin_copy("ka", 1, 1);
    CHECK_INT(say(ENGINE, RD_RELAY_REPLAY_BEGIN, 0, "ka", "0123456789abcdef01234567", 0),
              RD_ERR_RELAY_TYPE);
    finish();
}

int main(void) {
    test_the_engine_learns_which_rule_applies();
    test_who_waits_for_the_engine();
    test_only_an_engine_with_streams_knows_its_ids();
    test_ids_are_those_of_the_engine();
    test_a_copy_is_asked_for_once();
    test_a_part_of_a_copy_answers_nobody();
    test_an_engine_that_ends_in_a_copy();
    test_an_id_above_the_copy_asks_again();
    test_ids_of_no_message_cost_two_copies();
    test_what_waits_for_the_engine_is_set_aside();
    test_a_copy_ends_with_the_last_subscriber();
    test_a_copy_for_an_earlier_topic_answers_nobody();
    test_the_next_engine_goes_on_after_the_last_message();
    test_the_next_engine_goes_on_at_what_the_copy_knew();
    test_what_waits_for_the_next_engine_goes_on_there_too();
    test_a_replay_does_not_overtake_its_subscription();
    test_a_replay_does_not_overtake_what_the_next_engine_is_told();
    test_what_no_engine_says();
    return check_summary();
}
