/* SPDX-License-Identifier: MIT
 *
 * The hub against a model that keeps everything in tables and looks at all of it each time: random
 * processes come, subscribe, publish, ask for what they missed and go; each has to be sent exactly
 * what the model says, in that order. Then the rules one by one.
 */
#include <stdlib.h>

#include "base/error.h"
#include "check.h"
#include "hand_clock.h"
#include "naive_glob.h"
#include "pubsub/hub.h"

enum { LINKS = 6, ENGINE = LINKS - 1, NAMES = 8, FIRST_PATTERN = 5, ROUNDS = 30000, LOG = 4096 };

static const char *const names[NAMES] = {"a", "b", "ab", "ba", "kept", "a*", "?b", "*"};

typedef struct process {
    rd_hub_link link;
    bool is_here, is_full;
    bool is_crammed; /* takes no changes of interests, either */
    char said[LOG];  /* the frames that it got */
} process;

static rd_hub hub;
static process processes[LINKS];

static uint32_t random_state = 2463534242;

static unsigned draw(unsigned below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % below;
}

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

/* ---- frames as text ---- */

static void note(char *log, const rd_relay_frame *frame) {
    static const char *const types[] = {"?",      "sub",   "unsub", "pub",
                                        "replay", "begin", "end",   "keep"};
    const rd_slice payload = frame->type == RD_RELAY_KEEP ? text("terms") : frame->payload;
    const size_t len = strlen(log);
    if (!CHECK(len < LOG - 100)) return;
    (void)snprintf(log + len, LOG - len, "%s%s %.*s %.*s #%d;", types[frame->type],
                   frame->flags & RD_RELAY_PATTERN ? "*" : (frame->flags ? "t" : ""),
                   (int)frame->channel.len, frame->channel.ptr, (int)payload.len,
                   payload.len > 0 ? payload.ptr : "", (int)frame->id);
}

static unsigned send_ms; /* that each frame takes */

static bool send_to(rd_hub_link *link, const rd_relay_frame *frame, rd_message *message) {
    process *to = RD_CONTAINER(link, process, link);
    CHECK(to->is_here);
    pass_ms(send_ms);
    if (frame->type == RD_RELAY_PUBLISH && to->is_full) return false;
    if (frame->type < RD_RELAY_PUBLISH && to->is_crammed) return false;
    CHECK(message == NULL || frame->channel.ptr == rd_message_channel(message).ptr);
    rd_relay_frame shown = *frame;
    if (frame->type == RD_RELAY_KEEP) shown.id = 0;
    note(to->said, &shown);
    return true;
}

static size_t replay_room = SIZE_MAX;

static size_t room_of(const rd_hub_link *link) {
    (void)link;
    return replay_room;
}

/* ---- the model ---- */

typedef struct kept {
    char channel[8], payload[16];
    int id;
} kept;

static struct {
    int wants[LINKS][NAMES]; /* since when, in order of the requests; 0: not interested */
    int wishes;
    char expected[LINKS][LOG];
    uint64_t dropped[LINKS];
    kept history[ROUNDS];
    int history_len;
    int last_id;
} model;

static void expect(int link, rd_relay_type type, int flags, const char *channel,
                   const char *payload, int id) {
    note(model.expected[link], &(rd_relay_frame){.type = type,
                                                 .flags = (uint8_t)flags,
                                                 .id = (uint64_t)id,
                                                 .channel = text(channel),
                                                 .payload = text(payload)});
}

static bool is_wanted(int name) {
    for (int i = 0; i < LINKS; i++) {
        if (model.wants[i][name] != 0) return true;
    }
    return false;
}

static void expect_at_engine(rd_relay_type type, int name) {
    if (!processes[ENGINE].is_here) return;
    expect(ENGINE, type, name >= FIRST_PATTERN ? RD_RELAY_PATTERN : 0, names[name], "", 0);
}

static void model_wish(int link, int name, bool wants) {
    const bool before = is_wanted(name);
    if (wants != (model.wants[link][name] != 0)) {
        model.wants[link][name] = wants ? ++model.wishes : 0;
    }
    if (before != is_wanted(name)) {
        expect_at_engine(wants ? RD_RELAY_SUBSCRIBE : RD_RELAY_UNSUBSCRIBE, name);
    }
}

static void model_send(int link, const char *channel, const char *payload, int id) {
    if (processes[link].is_full) {
        model.dropped[link]++;
    } else {
        expect(link, RD_RELAY_PUBLISH, 0, channel, payload, id);
    }
}

static bool has_match(int link, const char *channel) {
    for (int i = 0; i < NAMES; i++) {
        const bool matches = i < FIRST_PATTERN ? strcmp(names[i], channel) == 0
                                               : naive_glob_matches(text(names[i]), text(channel));
        if (matches && model.wants[link][i] != 0) return true;
    }
    return false;
}

static void model_publish(int origin, const char *channel, const char *payload, int flags) {
    if ((flags & RD_RELAY_ENGINE) && origin != ENGINE) {
        if (processes[ENGINE].is_here) model_send(ENGINE, channel, payload, 0);
        return;
    }
    int id = 0;
    if (strcmp(channel, "kept") == 0) {
        id = ++model.last_id;
        kept *entry = &model.history[model.history_len++];
        (void)strcpy(entry->channel, channel);
        (void)strcpy(entry->payload, payload);
        entry->id = id;
    }
    for (int i = 0; i < LINKS; i++) {
        if (i == origin && !(flags & RD_RELAY_ECHO)) continue;
        if (has_match(i, channel)) model_send(i, channel, payload, id);
    }
}

static void model_replay(int link, int name, int since) {
    const int flags = name >= FIRST_PATTERN ? RD_RELAY_PATTERN : 0;
    const bool is_kept = strcmp(names[name], "kept") == 0;
    const bool any = is_kept || (strcmp(names[name], "*") == 0 && model.history_len > 0);
    bool is_cut = false;
    model_wish(link, name, true);
    expect(link, RD_RELAY_REPLAY_BEGIN, flags, names[name], "n", 0);
    for (int i = 0; any && since <= model.last_id && i < model.history_len; i++) {
        const kept *entry = &model.history[i];
        if (entry->id <= since) continue;
        is_cut = processes[link].is_full;
        if (!is_cut) model_send(link, entry->channel, entry->payload, entry->id);
    }
    const int kind = !any                    ? RD_REPLAY_NONE
                     : since > model.last_id ? RD_REPLAY_UNKNOWN
                     : is_cut                ? RD_REPLAY_GAP
                                             : RD_REPLAY_WHOLE;
    expect(link, RD_RELAY_REPLAY_END, flags, names[name], "n", kind);
}

/* ---- the hub and the model do the same ---- */

/* Whether the hub stopped for lack of time, not of room. */
static bool answer(void) {
    rd_hub_answer(&hub);
    return rd_hub_can_answer(&hub);
}

static int say(int link, rd_relay_type type, int flags, const char *channel, const char *payload,
               int id) {
    const rd_relay_frame frame = {.type = type,
                                  .flags = (uint8_t)flags,
                                  .id = (uint64_t)id,
                                  .channel = text(channel),
                                  .payload = text(payload)};
    return rd_hub_receive(&hub, &processes[link].link, &frame);
}

static void come(int link) {
    processes[link].is_here = true;
    if (link == ENGINE) { /* the frames it gets then have a test of their own */
        rd_hub_join(&hub, &processes[link].link, RD_HUB_ENGINE);
        processes[link].said[0] = '\0';
        return;
    }
    rd_hub_join(&hub, &processes[link].link, RD_HUB_WORKER);
    expect(link, RD_RELAY_KEEP, 0, "kept", "", 0);
}

static int oldest_wish(int link) {
    int oldest = -1;
    for (int i = 0; i < NAMES; i++) {
        const int since = model.wants[link][i];
        if (since != 0 && (oldest < 0 || since < model.wants[link][oldest])) oldest = i;
    }
    return oldest;
}

static void go(int link) {
    for (int name; (name = oldest_wish(link)) >= 0;) model_wish(link, name, false);
    rd_hub_leave(&hub, &processes[link].link);
    processes[link].is_here = processes[link].is_full = false;
    model.dropped[link] = 0;
    processes[link].said[0] = model.expected[link][0] = '\0';
}

static void do_something(int link, int round) {
    const unsigned what = draw(16);
    const int name = (int)draw(NAMES), flags = name >= FIRST_PATTERN ? RD_RELAY_PATTERN : 0;
    char payload[16];
    (void)snprintf(payload, sizeof(payload), "m%d", round);
    if (what < 8) {
        static const int kinds[] = {0, 0, RD_RELAY_ECHO, RD_RELAY_ENGINE};
        const int kind = kinds[draw(4)];
        const char *channel = names[draw(FIRST_PATTERN)];
        CHECK_INT(say(link, RD_RELAY_PUBLISH, kind, channel, payload, 0), 0);
        model_publish(link, channel, payload, kind);
    } else if (link == ENGINE) {
        CHECK_INT(say(link, RD_RELAY_SUBSCRIBE, 0, "a", "", 0), RD_ERR_RELAY_TYPE);
    } else if (what < 12) {
        CHECK_INT(say(link, RD_RELAY_SUBSCRIBE, flags, names[name], "", 0), 0);
        model_wish(link, name, true);
    } else if (what < 14) {
        CHECK_INT(say(link, RD_RELAY_UNSUBSCRIBE, flags, names[name], "", 0), 0);
        model_wish(link, name, false);
    } else if (what == 14) {
        const int since = model.last_id + 1 - (int)draw(5);
        if (since <= 0) return;
        CHECK_INT(say(link, RD_RELAY_REPLAY, flags, names[name], "n", since), 0);
        CHECK(!answer());
        model_replay(link, name, since);
    } else {
        processes[link].is_full = draw(4) == 0;
        if (!processes[link].is_full) processes[link].link.is_losing = false;
    }
}

static void check_all(void) {
    for (int i = 0; i < LINKS; i++) {
        CHECK_STR(processes[i].said, model.expected[i]);
        CHECK_INT(processes[i].is_here ? processes[i].link.dropped : 0, model.dropped[i]);
        processes[i].said[0] = model.expected[i][0] = '\0';
    }
}

static void test_against_the_model(void) {
    rd_hub_init(&hub, send_to, room_of, (rd_history_limits){ROUNDS, 1 << 30}, 0);
    CHECK_INT(rd_hub_keep(&hub, text("kept"), false, (rd_relay_terms){ROUNDS, 0, 0}), 0);
    for (int round = 0; round < ROUNDS; round++) {
        const int link = (int)draw(LINKS);
        if (!processes[link].is_here) {
            come(link);
        } else if (draw(40) == 0) {
            go(link);
        } else {
            do_something(link, round);
        }
        check_all();
    }
    for (int i = 0; i < LINKS; i++) {
        if (processes[i].is_here) go(i);
    }
    CHECK(model.history_len > 500);
    CHECK_INT(hub.names.count + hub.patterns.count, 0);
    rd_hub_clear(&hub);
}

/* ---- the rules ---- */

static void begin(int links) {
    memset(processes, 0, sizeof(processes));
    rd_hub_init(&hub, send_to, room_of, (rd_history_limits){100, 1 << 20}, 0);
    for (int i = 0; i < links; i++) {
        processes[i].is_here = true;
        rd_hub_join(&hub, &processes[i].link, RD_HUB_WORKER);
    }
}

static void finish(void) {
    for (int i = 0; i < LINKS; i++) {
        if (processes[i].is_here) rd_hub_leave(&hub, &processes[i].link);
    }
    rd_hub_clear(&hub);
}

static void check_said(int link, const char *expected) {
    CHECK_STR(processes[link].said, expected);
    processes[link].said[0] = '\0';
}

static void test_the_engine_hears_of_first_and_last(void) {
    begin(2);
    say(0, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    processes[ENGINE].is_here = true;
    rd_hub_join(&hub, &processes[ENGINE].link, RD_HUB_ENGINE);
    check_said(ENGINE, "sub a  #0;");
    say(1, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    say(1, RD_RELAY_SUBSCRIBE, RD_RELAY_PATTERN, "a", "", 0);
    say(0, RD_RELAY_UNSUBSCRIBE, 0, "a", "", 0);
    check_said(ENGINE, "sub* a  #0;");
    say(1, RD_RELAY_UNSUBSCRIBE, 0, "a", "", 0);
    check_said(ENGINE, "unsub a  #0;");
    rd_hub_leave(&hub, &processes[1].link);
    processes[1].is_here = false;
    check_said(ENGINE, "unsub* a  #0;");
    finish();
}

/* If an engine is full, it gets changes later, in the state they have then. */
static void test_an_engine_that_is_full_hears_of_it_later(void) {
    begin(2);
    processes[ENGINE].is_here = true;
    rd_hub_join(&hub, &processes[ENGINE].link, RD_HUB_ENGINE);
    say(0, RD_RELAY_SUBSCRIBE, 0, "known", "", 0);
    check_said(ENGINE, "sub known  #0;");
    processes[ENGINE].is_crammed = true;
    say(0, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    say(0, RD_RELAY_SUBSCRIBE, 0, "goes", "", 0);
    say(0, RD_RELAY_UNSUBSCRIBE, 0, "known", "", 0);
    say(0, RD_RELAY_UNSUBSCRIBE, 0, "goes", "", 0);
    say(1, RD_RELAY_SUBSCRIBE, RD_RELAY_PATTERN, "b*", "", 0);
    rd_hub_catch_up(&hub, 100);
    check_said(ENGINE, "");
    processes[ENGINE].is_crammed = false;
    say(1, RD_RELAY_SUBSCRIBE, 0, "c", "", 0);
    check_said(ENGINE, ""); /* not before the other replays */
    rd_hub_catch_up(&hub, 2);
    check_said(ENGINE, "sub a  #0;unsub known  #0;");
    rd_hub_catch_up(&hub, 100);
    check_said(ENGINE, "sub* b*  #0;sub c  #0;");
    processes[ENGINE].is_crammed = true;
    say(1, RD_RELAY_SUBSCRIBE, 0, "d", "", 0);
    rd_hub_leave(&hub, &processes[ENGINE].link);
    CHECK(rd_changes_is_empty(&hub.changes));
    processes[ENGINE].is_crammed = false;
    rd_hub_join(&hub, &processes[ENGINE].link, RD_HUB_ENGINE);
    check_said(ENGINE, "sub a  #0;sub c  #0;sub d  #0;sub* b*  #0;");
    finish();
}

/* Who subscribes and publishes then gets the message, or it is counted as lost. */
static void test_a_message_does_not_overtake_what_an_engine_hears_later(void) {
    begin(1);
    processes[ENGINE].is_here = true;
    rd_hub_join(&hub, &processes[ENGINE].link, RD_HUB_ENGINE);
    processes[ENGINE].is_crammed = true;
    say(0, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    say(0, RD_RELAY_SUBSCRIBE, 0, "b", "", 0);
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "a", "early", 0);
    CHECK(!rd_hub_publish(&hub, &(rd_relay_frame){.flags = RD_RELAY_ENGINE, .channel = text("b")}));
    check_said(ENGINE, "");
    CHECK_INT(hub.lost, 2);
    CHECK_INT(processes[ENGINE].link.dropped, 2);
    CHECK_INT(processes[ENGINE].link.outages, 1);
    processes[ENGINE].is_crammed = false;
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "a", "later", 0);
    check_said(ENGINE, "sub a  #0;sub b  #0;pub a later #0;");
    CHECK_INT(hub.lost, 2);
    finish();
}

/* They wait as messages do while there is no engine, and go in their order. */
static void test_messages_behind_what_an_engine_hears_later_wait(void) {
    begin(1);
    hub.unclaimed_max = 1000;
    processes[ENGINE].is_here = true;
    rd_hub_join(&hub, &processes[ENGINE].link, RD_HUB_ENGINE);
    processes[ENGINE].is_crammed = true;
    say(0, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "a", "one", 0);
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "a", "two", 0);
    CHECK(!rd_hub_claim(&hub, 100));
    check_said(ENGINE, "");
    processes[ENGINE].is_crammed = false;
    rd_hub_catch_up(&hub, 100);
    CHECK(rd_hub_claim(&hub, 1));
    check_said(ENGINE, "sub a  #0;pub a one #0;");
    processes[ENGINE].is_full = true;
    CHECK(!rd_hub_claim(&hub, 100));
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "a", "three", 0);
    check_said(ENGINE, "");
    processes[ENGINE].is_full = false;
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "a", "four", 0);
    check_said(ENGINE, "");
    CHECK(!rd_hub_claim(&hub, 100));
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "a", "five", 0);
    check_said(ENGINE, "pub a two #0;pub a three #0;pub a four #0;pub a five #0;");
    CHECK_INT(hub.lost, 0);
    finish();
}

/* A worker of before publishes for it, and waits for an answer. */
static void test_messages_for_an_engine_that_will_not_come(void) {
    begin(2);
    hub.unclaimed_max = 1000;
    say(0, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    say(1, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "a", "one", 0);
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE | RD_RELAY_CONFIRM, "a", "0123456789abcdeftwo", 0);
    rd_hub_expect_no_engine(&hub);
    check_said(0, "pub a one #0;pub a two #0;");
    check_said(1, "pub a one #0;pub a two #0;");
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE | RD_RELAY_CONFIRM, "a", "0123456789abcdef3", 0);
    check_said(0, "pub a 3 #0;");
    check_said(1, "pub a 3 #0;");
    finish();
}

/* The way through the engine: out without an id, back with one, also to the sender. */
static void test_what_the_engine_brings_back(void) {
    begin(2);
    processes[ENGINE].is_here = true;
    rd_hub_join(&hub, &processes[ENGINE].link, RD_HUB_ENGINE);
    rd_hub_keep(&hub, text("a"), false, (rd_relay_terms){3, 0, 0});
    say(0, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    processes[0].said[0] = processes[ENGINE].said[0] = '\0';
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE | RD_RELAY_TEXT, "a", "m", 0);
    check_said(0, "");
    check_said(ENGINE, "pubt a m #0;");
    say(ENGINE, RD_RELAY_PUBLISH, RD_RELAY_TEXT, "a", "m", 0);
    check_said(0, "pubt a m #1;");
    check_said(ENGINE, "");
    rd_hub_publish(&hub, &(rd_relay_frame){.flags = RD_RELAY_ENGINE,
                                           .channel = text("a"),
                                           .payload = text("master")});
    check_said(ENGINE, "pub a master #0;");
    finish();
}

/* The first link is a subscription of the process that has the hub. */
static void test_the_root_and_the_workers(void) {
    begin(3);
    rd_hub_leave(&hub, &processes[0].link);
    rd_hub_keep(&hub, text("a"), false, (rd_relay_terms){3, 0, 0});
    processes[1].said[0] = processes[2].said[0] = '\0';
    rd_hub_join(&hub, &processes[0].link, RD_HUB_ROOT);
    check_said(0, ""); /* rules are for workers */
    for (int i = 0; i < 3; i++) say(i, RD_RELAY_SUBSCRIBE, RD_RELAY_PATTERN, "a*", "", 0);
    say(1, RD_RELAY_PUBLISH, RD_RELAY_ROOT | RD_RELAY_TEXT, "a", "up", 0);
    check_said(0, "pubt a up #0;");
    check_said(2, "");
    say(1, RD_RELAY_PUBLISH, 0, "ab", "across", 0);
    check_said(0, "pub ab across #0;");
    check_said(1, "");
    check_said(2, "pub ab across #0;");
    rd_hub_publish(&hub, &(rd_relay_frame){.flags = RD_RELAY_WORKERS,
                                           .channel = text("a"),
                                           .payload = text("down")});
    check_said(0, "");
    check_said(1, "pub a down #1;");
    check_said(2, "pub a down #1;");
    finish();
}

static void tell_unclaimed(void *with, const rd_relay_frame *frame) {
    note(with, frame);
}

/* Between two engines (in a restart) messages wait, up to a limit, and the next engine gets them.
 */
static void test_what_waits_for_an_engine(void) {
    begin(1);
    hub.unclaimed_max = 2 * RD_RELAY_HEAD_BYTES + 8;
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE | RD_RELAY_TEXT, "a", "one", 0);
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "b", "two", 0);
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "c", "", 0);
    CHECK_INT(hub.unclaimed_lost, 1);
    rd_hub_each_unclaimed(&hub, tell_unclaimed, processes[ENGINE].said);
    check_said(ENGINE, "pubt a one #0;pubt b two #0;");
    processes[ENGINE].is_here = true;
    rd_hub_join(&hub, &processes[ENGINE].link, RD_HUB_ENGINE);
    check_said(ENGINE, "pubt a one #0;pub b two #0;");
    rd_hub_retire_engine(&hub, &processes[ENGINE].link);
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE, "a", "later", 0);
    check_said(ENGINE, "");
    CHECK_INT(rd_buffer_len(&hub.unclaimed), RD_RELAY_HEAD_BYTES + 6);
    finish();
}

/* What an engine gives back is older than what was published since it left. */
static void test_what_an_engine_gives_back_comes_first(void) {
    const rd_relay_frame back = {.flags = RD_RELAY_TEXT | RD_RELAY_CONFIRM | RD_RELAY_ENGINE,
                                 .id = 7,
                                 .channel = text("a"),
                                 .payload = text("0123456789abcdefold")};
    begin(1);
    hub.unclaimed_max = 2 * (RD_RELAY_HEAD_BYTES + 20);
    say(0, RD_RELAY_PUBLISH, RD_RELAY_ENGINE | RD_RELAY_TEXT, "a", "new", 0);
    CHECK(rd_hub_give_back(&hub, &back));
    CHECK(!rd_hub_give_back(&hub, &back));
    CHECK_INT(hub.lost, 0); /* who gives it back knows */
    rd_hub_each_unclaimed(&hub, tell_unclaimed, processes[ENGINE].said);
    check_said(ENGINE, "pubt a 0123456789abcdefold #0;pubt a new #0;");
    processes[ENGINE].is_here = true;
    rd_hub_join(&hub, &processes[ENGINE].link, RD_HUB_ENGINE);
    check_said(ENGINE, "pubt a 0123456789abcdefold #0;pubt a new #0;");
    rd_hub_retire_engine(&hub, &processes[ENGINE].link);
    rd_hub_each_unclaimed(&hub, tell_unclaimed, processes[ENGINE].said);
    check_said(ENGINE, "");
    finish();
}

/* The note of a worker: its number, and how many bytes the client can take. */
static const char *note_of(size_t bytes_max) {
    static char note[RD_RELAY_REPLAY_NOTE + 1];
    memset(note, 'n', RD_RELAY_REPLAY_NOTE - 8);
    rd_relay_put_number(note + RD_RELAY_REPLAY_NOTE - 8, 8, bytes_max);
    return note;
}

static void ask(int link, size_t bytes_max, int since) {
    const rd_relay_frame frame = {.type = RD_RELAY_REPLAY,
                                  .id = (uint64_t)since,
                                  .channel = text("a"),
                                  .payload = rd_slice_of(note_of(bytes_max), RD_RELAY_REPLAY_NOTE)};
    CHECK_INT(rd_hub_receive(&hub, &processes[link].link, &frame), 0);
}

static void ask_and_hear(int link, size_t bytes_max, int since) {
    ask(link, bytes_max, since);
    CHECK(!answer());
}

/* The frames that a link got, as text. */
static unsigned count_said(int link, const char *word) {
    unsigned count = 0;
    for (const char *at = processes[link].said; (at = strstr(at, word)) != NULL; at++) count++;
    processes[link].said[0] = '\0';
    return count;
}

static void test_replays_have_limits(void) {
    begin(2);
    rd_hub_keep(&hub, text("a"), false, (rd_relay_terms){100, 0, 0});
    for (int i = 0; i < 20; i++) say(1, RD_RELAY_PUBLISH, 0, "a", "m", 0);
    processes[0].said[0] = '\0';
    ask_and_hear(0, 10, 0);
    CHECK_INT(count_said(0, "pub"), 5); /* names of two bytes each */
    CHECK_INT(processes[0].link.replay_gaps, 1);
    replay_room = 4;
    ask_and_hear(0, 1000, 0);
    CHECK_INT(count_said(0, "pub"), 2);
    replay_room = SIZE_MAX;
    ask_and_hear(0, 1000, 0);
    CHECK_INT(count_said(0, "pub"), 20);
    finish();
}

/* Messages go first. Replays wait in order while there is no room for them, and end with their
 * link. */
static void test_replays_wait(void) {
    begin(2);
    rd_hub_keep(&hub, text("a"), false, (rd_relay_terms){100, 0, 0});
    say(0, RD_RELAY_SUBSCRIBE, 0, "live", "", 0);
    say(1, RD_RELAY_PUBLISH, 0, "a", "m1", 0);
    processes[0].said[0] = '\0';
    replay_room = 0;
    say(0, RD_RELAY_REPLAY, 0, "a", "one", 0);
    say(0, RD_RELAY_REPLAY, RD_RELAY_PATTERN, "a", "two", 0);
    CHECK(!answer());
    say(1, RD_RELAY_PUBLISH, 0, "live", "goes first", 0);
    check_said(0, "pub live goes first #0;");
    say(1, RD_RELAY_PUBLISH, 0, "a", "m2", 0); /* for other clients of the process */
    check_said(0, "pub a m2 #2;");
    replay_room = 1000;
    send_ms = 1;
    CHECK(answer());
    check_said(0, "begin a one #0;pub a m1 #1;pub a m2 #2;end a one #0;");
    say(0, RD_RELAY_REPLAY, 0, "b", "three", 0); /* not before the second replay */
    check_said(0, "");
    CHECK(answer());
    CHECK(!answer());
    send_ms = 0;
    check_said(0, "begin* a two #0;pub a m1 #1;pub a m2 #2;end* a two #0;"
                  "begin b three #0;end b three #3;");
    replay_room = 0;
    say(0, RD_RELAY_REPLAY, 0, "a", "four", 0);
    CHECK_INT(processes[0].link.replay_count, 1);
    replay_room = SIZE_MAX;
    finish();
}

/* One hold of the lock answers for a millisecond, whoever asks and however much, and searches that
 * find nothing count. Links have turns, also one that asks again all the time. */
static void test_replays_take_turns(void) {
    begin(3);
    for (int link = 0; link < 2; link++) {
        for (int i = 0; i < 3; i++) ask(link, 1000, 0);
    }
    check_said(0, ""); /* nothing while frames are read */
    send_ms = 1;
    for (int i = 0; i < 3; i++) {
        CHECK(answer());
        CHECK_INT(count_said(0, "end"), 1);
        ask(0, 1000, 0);
        CHECK_INT(count_said(1, "end"), 0);
        CHECK(answer());
        CHECK_INT(count_said(0, "end"), 0);
        CHECK_INT(count_said(1, "end"), 1);
    }
    CHECK_INT(processes[0].link.replay_count, 3);
    send_ms = 0;
    CHECK(!answer());
    CHECK_INT(count_said(0, "end"), 3);
    for (int i = 0; i < 2; i++) ask(0, 1000, 0);
    rd_hub_leave(&hub, &processes[0].link);
    processes[0].is_here = false;
    CHECK(!answer());
    finish();
}

/* A worker that keeps asking and never takes answers is not valid: it loses its link. */
static void test_replays_that_wait_have_a_limit(void) {
    rd_relay_frame wanted = {.type = RD_RELAY_REPLAY, .channel = text("a")};
    begin(1);
    replay_room = 0;
    for (int i = 0; i < RD_HUB_REPLAYS_MAX; i++) {
        CHECK_INT(rd_hub_receive(&hub, &processes[0].link, &wanted), 0);
    }
    CHECK_INT(rd_hub_receive(&hub, &processes[0].link, &wanted), RD_ERR_CHANNEL_LIMIT);
    CHECK_INT(processes[0].link.replay_count, RD_HUB_REPLAYS_MAX);
    replay_room = SIZE_MAX;
    finish();
}

static void test_what_a_publish_of_the_hub_says(void) {
    const rd_relay_frame frame = {.type = RD_RELAY_PUBLISH, .channel = text("a")};
    begin(2);
    CHECK(rd_hub_publish(&hub, &frame));
    say(0, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    say(1, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    CHECK(rd_hub_publish(&hub, &frame));
    processes[1].is_full = true;
    CHECK(!rd_hub_publish(&hub, &frame));
    finish();
}

static void test_rules_are_told_once(void) {
    char terms[RD_RELAY_TERMS_BYTES];
    rd_relay_frame rule = {.type = RD_RELAY_KEEP, .channel = text("a")};
    begin(2);
    rule.payload = rd_relay_put_terms(terms, &(rd_relay_terms){5, 0, 0});
    for (int i = 0; i < 3; i++) CHECK_INT(rd_hub_receive(&hub, &processes[0].link, &rule), 0);
    check_said(0, "keep a terms #0;");
    check_said(1, "keep a terms #0;");
    rule.payload = rd_relay_put_terms(terms, &(rd_relay_terms){0, 0, 0});
    for (int i = 0; i < 3; i++) CHECK_INT(rd_hub_receive(&hub, &processes[0].link, &rule), 0);
    check_said(1, "keep a terms #0;");
    finish();
}

static void test_an_outage_is_one(void) {
    begin(2);
    say(0, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    processes[0].is_full = true;
    for (int i = 0; i < 3; i++) say(1, RD_RELAY_PUBLISH, 0, "a", "m", 0);
    CHECK_INT(processes[0].link.dropped, 3);
    CHECK_INT(processes[0].link.outages, 1);
    processes[0].is_full = processes[0].link.is_losing = false;
    say(1, RD_RELAY_PUBLISH, 0, "a", "m", 0);
    processes[0].is_full = true;
    say(1, RD_RELAY_PUBLISH, 0, "a", "m", 0);
    CHECK_INT(processes[0].link.outages, 2);
    CHECK_INT(processes[0].link.sent, 1);
    finish();
}

static void test_what_no_link_says(void) {
    begin(1);
    CHECK_INT(say(0, RD_RELAY_REPLAY_BEGIN, 0, "a", "", 0), RD_ERR_RELAY_TYPE);
    CHECK_INT(say(0, RD_RELAY_SAVED_IDS, 0, "a", "", 0), RD_ERR_RELAY_TYPE);
    finish();
}

/* Long frames are made once for all links. */
static void test_long_messages(void) {
    static char payload[RD_HUB_COPY_MAX + 2];
    memset(payload, 'x', sizeof(payload) - 1);
    begin(2);
    say(0, RD_RELAY_SUBSCRIBE, 0, "a", "", 0);
    say(1, RD_RELAY_PUBLISH, 0, "a", payload, 0);
    CHECK_INT(strlen(processes[0].said), strlen("pub a  #0;") + sizeof(payload) - 1);
    finish();
}

int main(void) {
    test_against_the_model();
    test_the_engine_hears_of_first_and_last();
    test_an_engine_that_is_full_hears_of_it_later();
    test_a_message_does_not_overtake_what_an_engine_hears_later();
    test_messages_behind_what_an_engine_hears_later_wait();
    test_messages_for_an_engine_that_will_not_come();
    test_what_the_engine_brings_back();
    test_the_root_and_the_workers();
    test_what_waits_for_an_engine();
    test_what_an_engine_gives_back_comes_first();
    test_replays_have_limits();
    test_replays_wait();
    test_replays_take_turns();
    test_replays_that_wait_have_a_limit();
    test_what_a_publish_of_the_hub_says();
    test_rules_are_told_once();
    test_an_outage_is_one();
    test_what_no_link_says();
    test_long_messages();
    return check_summary();
}
