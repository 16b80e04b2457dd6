/* SPDX-License-Identifier: MIT
 *
 * The history: what is kept by number, age and bytes, which rule counts, what every kind of id is
 * answered, and the seam between replay and delivery under random operations.
 */
#include "base/error.h"
#include "check.h"
#include "pubsub/channel.h"
#include "pubsub/history.h"

static const rd_history_limits wide = {1000, 1 << 20};

static rd_slice text(const char *string) {
    return rd_slice_of(string, strlen(string));
}

static bool add(rd_history *history, const char *channel, uint64_t id, uint64_t now_ms) {
    rd_message *message = rd_message_new(text(channel), RD_SLICE("payload"), true, id);
    const bool is_kept = rd_history_add(history, message, now_ms);
    rd_message_unref(message);
    return is_kept;
}

static void write_id(void *with, rd_message *message) {
    char *ids = with;
    (void)sprintf(ids + strlen(ids), "%d ", (int)message->id);
}

static size_t replay_bytes = SIZE_MAX;

/* "WHOLE 1 2 ": the answer and the ids. */
static const char *replay_at(rd_history *history, const char *name, bool is_pattern, uint64_t since,
                             uint64_t now_ms) {
    static const char *const answers[] = {"WHOLE", "GAP", "UNKNOWN", "NONE"};
    static char said[256];
    char ids[200] = "";
    const rd_replay answer = rd_history_replay(
        history, &(rd_history_wish){text(name), is_pattern, since, now_ms, replay_bytes}, write_id,
        ids);
    (void)snprintf(said, sizeof(said), "%s %s", answers[answer], ids);
    return said;
}

static const char *replay(rd_history *history, const char *name, uint64_t since) {
    return replay_at(history, name, false, since, 0);
}

static const char *replay_pattern(rd_history *history, const char *name, uint64_t since) {
    return replay_at(history, name, true, since, 0);
}

static void test_number(void) {
    rd_history history;
    rd_history_init(&history, wide, 0);
    CHECK_INT(rd_history_keep(&history, text("x"), false, (rd_relay_terms){3, 0, 0}), 0);
    CHECK(!add(&history, "y", 1, 0));
    CHECK_STR(replay(&history, "x", 0), "WHOLE ");
    for (uint64_t id = 2; id <= 6; id++) CHECK(add(&history, "x", id, 0));
    CHECK_INT(history.count, 3);
    CHECK_STR(replay(&history, "x", 0), "WHOLE 4 5 6 ");
    CHECK_STR(replay(&history, "x", 1), "GAP 4 5 6 ");
    CHECK_STR(replay(&history, "x", 2), "GAP 4 5 6 ");
    CHECK_STR(replay(&history, "x", 3), "WHOLE 4 5 6 ");
    CHECK_STR(replay(&history, "x", 5), "WHOLE 6 ");
    CHECK_STR(replay(&history, "x", 6), "WHOLE ");
    CHECK_STR(replay(&history, "x", 7), "UNKNOWN ");
    CHECK_STR(replay(&history, "x", UINT64_MAX), "UNKNOWN ");
    CHECK_STR(replay(&history, "y", 1), "NONE ");
    rd_history_clear(&history);
}

static void test_ids_that_are_refused(void) {
    rd_history history;
    rd_history_init(&history, wide, 100);
    rd_history_keep(&history, text("x"), false, (rd_relay_terms){10, 0, 0});
    CHECK(!add(&history, "x", 0, 0));
    CHECK(!add(&history, "x", 100, 0)); /* older than this history */
    CHECK(!add(&history, "x", UINT64_MAX, 0));
    CHECK(add(&history, "x", 105, 0));
    CHECK(!add(&history, "x", 105, 0));
    CHECK(!add(&history, "x", 104, 0));
    CHECK(!add(&history, "", 106, 0));
    CHECK_STR(replay(&history, "x", 0), "WHOLE 105 ");
    CHECK_STR(replay(&history, "x", 99), "GAP 105 ");
    CHECK_STR(replay(&history, "x", 100), "WHOLE 105 ");
    CHECK_INT(rd_history_next_id(&history, 50), 106);
    CHECK_INT(rd_history_next_id(&history, 50), 107);
    CHECK_INT(rd_history_next_id(&history, 200), 200);
    CHECK_STR(replay(&history, "x", 150), "WHOLE ");
    rd_history_clear(&history);
}

static void add_long(rd_history *history, const char *channel, uint64_t id, size_t len) {
    static const char bytes[100];
    rd_message *message = rd_message_new(text(channel), rd_slice_of(bytes, len), false, id);
    CHECK(rd_history_add(history, message, 0));
    rd_message_unref(message);
}

/* The oldest go; the newest stays, however long it is. */
static void test_bytes_of_a_channel(void) {
    rd_history history;
    rd_history_init(&history, wide, 0);
    rd_history_keep(&history, text("x"), false, (rd_relay_terms){4, 0, 100});
    for (uint64_t id = 1; id <= 3; id++) add_long(&history, "x", id, 40);
    CHECK_STR(replay(&history, "x", 0), "WHOLE 2 3 ");
    CHECK_STR(replay(&history, "x", 1), "WHOLE 2 3 ");
    add_long(&history, "x", 4, 20);
    CHECK_STR(replay(&history, "x", 1), "WHOLE 2 3 4 ");
    add_long(&history, "x", 5, 100);
    CHECK_STR(replay(&history, "x", 3), "GAP 5 ");
    add_long(&history, "x", 6, 0);
    CHECK_STR(replay(&history, "x", 4), "WHOLE 5 6 ");
    rd_history_keep(&history, text("x"), false, (rd_relay_terms){4, 0, 10});
    CHECK_STR(replay(&history, "x", 4), "GAP 6 ");
    add_long(&history, "x", 7, 90);
    CHECK_STR(replay(&history, "x", 6), "WHOLE 7 ");
    for (uint64_t id = 8; id <= 14; id++) add_long(&history, "x", id, 1);
    CHECK_STR(replay(&history, "x", 10), "WHOLE 11 12 13 14 ");
    CHECK(rd_history_has_rule(&history, text("x"), false, (rd_relay_terms){4, 0, 10}));
    CHECK(!rd_history_has_rule(&history, text("x"), false, (rd_relay_terms){4, 0, 0}));
    rd_history_clear(&history);
}

static void test_age(void) {
    rd_history history;
    rd_history_init(&history, wide, 0);
    rd_history_keep(&history, text("x"), false, (rd_relay_terms){10, 1000, 0});
    rd_history_keep(&history, text("y"), false, (rd_relay_terms){10, 0, 0});
    for (uint64_t id = 1; id <= 5; id++) CHECK(add(&history, "x", id, id * 100));
    CHECK(add(&history, "y", 6, 600));
    CHECK_STR(replay_at(&history, "x", false, 1, 1099), "WHOLE 2 3 4 5 ");
    CHECK_STR(replay_at(&history, "x", false, 0, 1100), "WHOLE 2 3 4 5 ");
    CHECK_STR(replay_at(&history, "x", false, 1, 1200), "GAP 3 4 5 ");
    CHECK_STR(replay_at(&history, "x", false, 2, 1200), "WHOLE 3 4 5 ");
    rd_history_expire(&history, 1400);
    CHECK_INT(history.count, 2);
    rd_history_expire(&history, 1000000);
    CHECK_INT(history.count, 1);
    CHECK_INT(history.names.count, 1);
    CHECK_STR(replay_at(&history, "x", false, 4, 1000000), "GAP ");
    CHECK_STR(replay_at(&history, "x", false, 5, 1000000), "WHOLE ");
    CHECK(add(&history, "x", 7, 1000000));
    CHECK_STR(replay_at(&history, "x", false, 4, 1000000), "GAP 7 ");
    CHECK_STR(replay_at(&history, "x", false, 5, 1000000), "WHOLE 7 ");
    CHECK(add(&history, "x", 8, 9000000)); /* its messages have expired */
    CHECK_STR(replay_at(&history, "x", false, 0, 9000000), "WHOLE 8 ");
    rd_history_clear(&history);
}

static void test_which_rule(void) {
    rd_history history;
    rd_history_init(&history, wide, 0);
    CHECK_INT(rd_history_keep(&history, text(""), false, (rd_relay_terms){1, 0, 0}),
              RD_ERR_CHANNEL_NAME);
    rd_history_keep(&history, text("room:*"), true, (rd_relay_terms){2, 0, 0});
    rd_history_keep(&history, text("room:*1"), true, (rd_relay_terms){3, 0, 0});
    rd_history_keep(&history, text("room:1"), false, (rd_relay_terms){1, 0, 0});
    for (uint64_t id = 1; id <= 12; id += 3) {
        CHECK(add(&history, "room:1", id, 0));
        CHECK(add(&history, "room:2", id + 1, 0));
        CHECK(add(&history, "room:11", id + 2, 0));
    }
    CHECK_STR(replay(&history, "room:1", 0), "WHOLE 10 ");
    CHECK_STR(replay(&history, "room:2", 0), "WHOLE 8 11 ");
    CHECK_STR(replay(&history, "room:11", 0), "WHOLE 6 9 12 ");
    CHECK_STR(replay_pattern(&history, "room:?", 0), "WHOLE 8 10 11 ");
    CHECK_STR(replay_pattern(&history, "*", 9), "WHOLE 10 11 12 ");
    CHECK_STR(replay_pattern(&history, "*", 4), "GAP 6 8 9 10 11 12 ");
    CHECK_STR(replay_pattern(&history, "else:*", 0), "NONE ");
    CHECK_STR(replay_pattern(&history, "*", 13), "UNKNOWN ");
    rd_history_keep(&history, text("room:*1"), true,
                    (rd_relay_terms){0, 0, 0}); /* back to the larger limit */
    CHECK_STR(replay(&history, "room:11", 0), "WHOLE 9 12 ");
    rd_history_keep(&history, text("room:*"), true, (rd_relay_terms){1, 0, 0});
    CHECK_STR(replay(&history, "room:2", 5), "GAP 11 ");
    rd_history_keep(&history, text("room:*"), true, (rd_relay_terms){0, 0, 0});
    rd_history_keep(&history, text("nobody"), true, (rd_relay_terms){0, 0, 0});
    CHECK_STR(replay(&history, "room:2", 0), "NONE ");
    CHECK_INT(history.count, 1);
    /* A channel that is kept again knows that it missed messages. */
    rd_history_keep(&history, text("room:2"), false, (rd_relay_terms){9, 0, 0});
    CHECK(add(&history, "room:2", 14, 0));
    CHECK_STR(replay(&history, "room:2", 11), "GAP 14 ");
    CHECK_STR(replay(&history, "room:2", 12), "WHOLE 14 ");
    rd_history_clear(&history);
}

/* A client that chooses the names of channels does not choose how much memory they take. */
/* An application that keeps "*" keeps nothing of the server's own channels, whose messages and
 * names a pattern would replay. */
static void test_the_channels_of_the_server(void) {
    static const rd_slice shared = RD_SLICE_INIT("\0rondo:cable:secret:room"),
                          private = RD_SLICE_INIT("\0rondo/cable/secret"),
                          rule = RD_SLICE_INIT("\0rondo:cable:secret:*");
    rd_history history;
    char ids[200] = "";
    rd_history_init(&history, wide, 0);
    rd_history_keep(&history, text("*"), true, (rd_relay_terms){9, 0, 0});
    CHECK(!rd_history_wants(&history, shared) && !rd_history_wants(&history, private));
    CHECK(rd_history_wants(&history, text("room")));
    rd_history_keep(&history, rule, true, (rd_relay_terms){9, 0, 0});
    rd_history_keep(&history, private, false, (rd_relay_terms){9, 0, 0});
    CHECK(rd_history_wants(&history, shared) && !rd_history_wants(&history, private));
    rd_message *message = rd_message_new(shared, RD_SLICE("payload"), true, 1);
    CHECK(rd_history_add(&history, message, 0));
    rd_message_unref(message);
    CHECK_STR(replay_pattern(&history, "*", 0), "WHOLE ");
    rd_history_replay(&history, &(rd_history_wish){rule, true, 0, 0, SIZE_MAX}, write_id, ids);
    CHECK_STR(ids, "");
    rd_history_replay(&history, &(rd_history_wish){shared, false, 0, 0, SIZE_MAX}, write_id, ids);
    CHECK_STR(ids, "1 ");
    rd_history_clear(&history);
}

static void test_limits_of_all(void) {
    rd_history history;
    char name[24];
    rd_history_init(&history, (rd_history_limits){100, 1 << 20}, 0);
    rd_history_keep(&history, text("*"), true, (rd_relay_terms){5, 0, 0});
    for (uint64_t id = 1; id <= 1000; id++) {
        (void)snprintf(name, sizeof(name), "c%d", (int)id);
        CHECK(add(&history, name, id, 0));
    }
    CHECK(history.count == 100 && history.names.count == 100);
    CHECK_STR(replay(&history, "c900", 899), "GAP ");
    CHECK_STR(replay(&history, "c901", 900), "WHOLE 901 ");
    history.limits.bytes = history.bytes / 2;
    CHECK(add(&history, "c1", 1001, 0));
    CHECK(history.bytes <= history.limits.bytes && history.count < 60);
    /* A message that is too large removes no other message. */
    const uint32_t count = history.count;
    static char large[100000];
    rd_message *message = rd_message_new(text("c1"), rd_slice_of(large, 100000), true, 1002);
    CHECK(!rd_history_add(&history, message, 0));
    rd_message_unref(message);
    CHECK_INT(history.count, count);
    CHECK_STR(replay(&history, "c1", 1000), "GAP 1001 ");
    CHECK_STR(replay(&history, "c1", 1002), "WHOLE ");
    rd_history_clear(&history);
    CHECK(history.count == 0 && history.bytes == 0);
}

/* As many as the client can take: the newest, and at least one message. */
static void test_a_limit_of_bytes(void) {
    rd_history history;
    rd_history_init(&history, (rd_history_limits){1000, 1 << 20}, 0);
    rd_history_keep(&history, text("*"), true, (rd_relay_terms){100, 0, 0});
    for (int id = 1; id <= 6; id++)
        CHECK(add(&history, id % 2 == 0 ? "x2" : "x1", (uint64_t)id, 0));
    const size_t each = 2 + 7; /* bytes of name and payload */
    replay_bytes = 2 * each;
    CHECK_STR(replay(&history, "x1", 0), "GAP 3 5 ");
    CHECK_STR(replay(&history, "x1", 1), "WHOLE 3 5 ");
    CHECK_STR(replay_at(&history, "x*", true, 0, 0), "GAP 5 6 ");
    CHECK_STR(replay_at(&history, "x*", true, 4, 0), "WHOLE 5 6 ");
    CHECK_STR(replay_at(&history, "x*", true, 6, 0), "WHOLE ");
    CHECK_STR(replay_at(&history, "y*", true, 0, 0), "NONE ");
    replay_bytes = 0;
    CHECK_STR(replay(&history, "x2", 0), "GAP 6 ");
    CHECK_STR(replay_at(&history, "x*", true, 0, 0), "GAP 6 ");
    replay_bytes = SIZE_MAX;
    CHECK_STR(replay_at(&history, "x*", true, 0, 0), "WHOLE 1 2 3 4 5 6 ");
    rd_history_clear(&history);
}

/* A pattern that matches nothing looks at a limited number of messages and channels. */
static void test_a_limit_of_work(void) {
    enum { CHANNELS = 100000 };
    char name[16];
    rd_history history;
    rd_history_init(&history, (rd_history_limits){CHANNELS, 1 << 30}, 0);
    rd_history_keep(&history, text("*"), true, (rd_relay_terms){100, 0, 0});
    for (int i = 1; i <= CHANNELS; i++) {
        (void)snprintf(name, sizeof(name), "c%d", i);
        CHECK(add(&history, name, (uint64_t)i, 0));
    }
    CHECK_STR(replay_at(&history, "c99999", true, 1, 0), "GAP 99999 ");
    CHECK_STR(replay_at(&history, "c95905", true, 1, 0), "GAP 95905 "); /* the last one it sees */
    CHECK_STR(replay_at(&history, "c95904", true, 1, 0), "GAP ");
    CHECK_STR(replay_at(&history, "none", true, 1, 0), "GAP "); /* beyond the limit */
    CHECK_STR(replay_at(&history, "none", true, 99000, 0), "NONE ");
    rd_history_clear(&history);
}

/* Of long names as many are seen, if nothing is looked for in their middle. */
static void test_a_limit_of_work_with_long_names(void) {
    enum { CHANNELS = 6000, LEN = 1000 };
    char name[LEN + 1];
    rd_history history;
    rd_history_init(&history, (rd_history_limits){CHANNELS, 1 << 30}, 0);
    rd_history_keep(&history, text("*"), true, (rd_relay_terms){100, 0, 0});
    memset(name, 'x', LEN);
    name[LEN] = '\0';
    for (int i = 1; i <= CHANNELS; i++) {
        const int len = snprintf(name, sizeof(name), "c%d-", i);
        name[len] = 'x';
        name[LEN - 1] = i == CHANNELS - 4095 || i == CHANNELS - 4096 ? '9' : 'x';
        CHECK(add(&history, name, (uint64_t)i, 0));
    }
    CHECK_STR(replay_at(&history, "c*9", true, 1, 0), "GAP 1905 ");
    CHECK_STR(replay_at(&history, "c*-*9", true, 1, 0), "GAP 1905 ");
    /* Several bytes between two * are looked for at each byte of the name: fewer names are seen. */
    CHECK_STR(replay_at(&history, "*x9*", true, 1, 0), "GAP ");
    CHECK_STR(replay_at(&history, "*c5700-*", true, 1, 0), "GAP 5700 ");
    rd_history_clear(&history);
}

static void test_ids_of_clients(void) {
    static const char *const garbage[] = {"",    "-1",
                                          "+1",  " 1",
                                          "1 ",  "01",
                                          "0x1", "1.0",
                                          "a",   "12345678901234567890",
                                          "1\n", "9999999999999999999999"};
    uint64_t id = 42;
    for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++) {
        CHECK_SAYS(!rd_history_parse_id(text(garbage[i]), &id), "%s", garbage[i]);
    }
    CHECK(!rd_history_parse_id(rd_slice_of("1\0", 2), &id) && id == 42);
    CHECK(rd_history_parse_id(text("0"), &id) && id == 0);
    CHECK(rd_history_parse_id(text("1767225600000001"), &id) && id == UINT64_C(1767225600000001));
    CHECK(rd_history_parse_id(text("9999999999999999999"), &id));
    CHECK(id == UINT64_C(9999999999999999999));
}

/* --- the seam --- */

enum { READERS = 8, ROUNDS = 20000 };

/* Leaves and comes back with the last id that it saw; its next message must be the following one.
 */
typedef struct reader {
    rd_subscriber subscriber;
    uint64_t last_id;
} reader;

static struct seam {
    rd_channels channels;
    rd_history history;
    reader readers[READERS];
    uint64_t next_of[100000]; /* indexed by a message's id: the id of the next message on "x" */
    uint64_t last_id;
    unsigned read;
    uint32_t random;
} seam;

static void read_on(reader *self, const rd_message *message) {
    CHECK_INT(message->id, seam.next_of[self->last_id]);
    self->last_id = message->id;
    seam.read++;
}

static void read_live(rd_subscriber *subscriber, rd_subscription *subscription,
                      rd_message *message) {
    (void)subscription;
    read_on(RD_CONTAINER(subscriber, reader, subscriber), message);
}

static void read_replayed(void *with, rd_message *message) {
    read_on(with, message);
}

static const rd_subscriber_kind reader_kind = {.on_message = read_live, .limit = 1};

static unsigned draw(unsigned below) {
    seam.random = seam.random * 1103515245u + 12345u;
    return (seam.random >> 16) % below;
}

static void seam_publish(const char *channel) {
    const uint64_t id = rd_history_next_id(&seam.history, 0);
    rd_message *message = rd_message_new(text(channel), RD_SLICE("p"), true, id);
    if (channel[0] == 'x') {
        seam.next_of[seam.last_id] = id;
        seam.last_id = id;
    }
    rd_history_add(&seam.history, message, 0);
    CHECK(rd_channels_enqueue(&seam.channels, message) >= 0);
    rd_message_unref(message);
}

/* The same for a subscriber that is here already, with messages on their way to it. */
static void seam_return(reader *self) {
    const rd_subscribe_terms terms = {.is_afresh = true};
    const rd_replay answer = rd_history_replay(
        &seam.history, &(rd_history_wish){text("x"), false, self->last_id, 0, SIZE_MAX},
        read_replayed, self);
    CHECK_INT(answer, RD_REPLAY_WHOLE);
    CHECK(rd_channels_subscribe(&seam.channels, &self->subscriber, text("x"), false, &terms) >= 0);
}

static void test_seam(void) {
    rd_channels_init(&seam.channels, NULL);
    rd_history_init(&seam.history, (rd_history_limits){100000, 1 << 30}, 0);
    rd_history_keep(&seam.history, text("x"), false, (rd_relay_terms){100000, 0, 0});
    seam.random = 3;
    for (int i = 0; i < READERS; i++) {
        rd_subscriber_init(&seam.readers[i].subscriber, &reader_kind);
    }
    for (int i = 0; i < ROUNDS; i++) {
        reader *one = &seam.readers[draw(READERS)];
        const unsigned what = draw(10);
        if (what < 4) seam_publish("x");
        if (what == 4) seam_publish("y");
        if (what == 5 || what == 6) seam_return(one);
        if (what == 7) rd_subscriber_clear(&seam.channels, &one->subscriber);
        if (what > 7) (void)rd_fanout_run(&seam.channels.fanout, draw(6));
    }
    while (rd_channels_run(&seam.channels)) continue;
    for (int i = 0; i < READERS; i++) {
        seam_return(&seam.readers[i]);
        CHECK_INT(seam.readers[i].last_id, seam.last_id);
    }
    CHECK(seam.read > ROUNDS);
    rd_channels_clear(&seam.channels);
    rd_history_clear(&seam.history);
}

/* ---- another process continues ---- */

static void write_frame(void *with, const rd_relay_frame *frame) {
    CHECK_INT(rd_relay_write(frame, 1000, with), 0);
}

static void go_on(rd_history *from, rd_history *to, rd_history_limits limits) {
    rd_buffer saved = {0};
    rd_relay_reader reader;
    rd_relay_frame frame;
    size_t at = 0, used;
    rd_history_save(from, write_frame, &saved);
    rd_history_init(to, limits, UINT32_MAX);
    rd_relay_reader_init(&reader, 1000);
    reader.takes_saved = true;
    while (rd_relay_read(&reader, rd_buffer_ptr(&saved) + at, rd_buffer_len(&saved) - at, &used,
                         &frame) == 1) {
        rd_history_restore(to, &frame);
        at += used;
    }
    CHECK_INT(at, rd_buffer_len(&saved));
    rd_buffer_clear(&saved);
}

static void check_same_answers(rd_history *left, rd_history *right, uint64_t now_ms) {
    static const char *const names[] = {"x", "y", "xy", "x*", "*"};
    for (int i = 0; i < 5; i++) {
        for (uint64_t since = 0; since < left->last_id + 2; since++) {
            char said[256];
            (void)strcpy(said, replay_at(left, names[i], i > 2, since, now_ms));
            CHECK_STR(replay_at(right, names[i], i > 2, since, now_ms), said);
        }
    }
}

static void test_another_process_goes_on(void) {
    static const char *const names[] = {"x", "y", "xy"};
    rd_history here, there;
    rd_history_init(&here, (rd_history_limits){12, 1 << 20}, 3);
    for (int i = 0; i < 400; i++) {
        const uint64_t id = here.last_id + 1, now_ms = (uint64_t)i;
        const unsigned what = draw(12);
        if (what == 0)
            rd_history_keep(&here, text("x*"), true, (rd_relay_terms){draw(5), draw(30), draw(60)});
        if (what == 1)
            rd_history_keep(&here, text(names[draw(3)]), false,
                            (rd_relay_terms){draw(8), draw(30), draw(60)});
        if (what > 1) add(&here, names[draw(3)], id, now_ms);
        if (id > 60) { /* keeps the number of possible questions small */
            rd_history_clear(&here);
            rd_history_init(&here, (rd_history_limits){12, 1 << 20}, 3);
        }
        go_on(&here, &there, here.limits);
        check_same_answers(&here, &there, now_ms);
        rd_history_keep(&here, text("y"), false,
                        (rd_relay_terms){3, 0, 0}); /* both continue in the same way */
        rd_history_keep(&there, text("y"), false, (rd_relay_terms){3, 0, 0});
        const uint64_t next = here.last_id + 1;
        CHECK_INT(add(&here, "y", next, now_ms), add(&there, "y", next, now_ms));
        check_same_answers(&here, &there, now_ms + 7);
        rd_history_clear(&there);
    }
    rd_history_clear(&here);
}

static void test_less_room_there(void) {
    rd_history here, there;
    rd_history_init(&here, wide, 0);
    rd_history_keep(&here, text("x"), false, (rd_relay_terms){9, 0, 0});
    for (uint64_t id = 1; id <= 5; id++) add(&here, "x", id, 0);
    go_on(&here, &there, (rd_history_limits){2, 1 << 20});
    CHECK_STR(replay(&there, "x", 3), "WHOLE 4 5 ");
    CHECK_STR(replay(&there, "x", 2), "GAP 4 5 ");
    CHECK(rd_history_has_rule(&there, text("x"), false, (rd_relay_terms){9, 0, 0}));
    CHECK(!rd_history_has_rule(&there, text("x"), false, (rd_relay_terms){9, 1, 0}));
    CHECK(!rd_history_has_rule(&there, text("x"), true, (rd_relay_terms){9, 0, 0}));
    CHECK(rd_history_has_rule(&there, text("x"), true, (rd_relay_terms){0, 0, 0}));
    CHECK(rd_history_wants(&there, text("x")) && !rd_history_wants(&there, text("y")));
    rd_history_clear(&here);
    rd_history_clear(&there);
}

int main(void) {
    test_another_process_goes_on();
    test_less_room_there();
    test_number();
    test_ids_that_are_refused();
    test_bytes_of_a_channel();
    test_age();
    test_which_rule();
    test_the_channels_of_the_server();
    test_limits_of_all();
    test_a_limit_of_bytes();
    test_a_limit_of_work();
    test_a_limit_of_work_with_long_names();
    test_ids_of_clients();
    test_seam();
    return check_summary();
}
