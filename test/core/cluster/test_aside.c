/* SPDX-License-Identifier: MIT
 *
 * Replays that wait for an engine that is away (cluster/aside.h, pubsub/hub_waiting.h): others
 * overtake them, later ones of the same channel are not requested, and all are answered when the
 * copy comes. A real hub, two links, and an engine that says what the test wants.
 */
#include <fcntl.h>

#include "base/alloc.h"
#include "link_workers.h"

enum { COPY_IDS = 40, MANY = 1000 };

static int engine = -1;
static int64_t engine_number;

static void on_any_rule(rd_link *link, const rd_relay_frame *frame) {
    (void)frame;
    ((worker *)link->owner)->rules++;
}

static bool wants_all(rd_link *link, rd_slice name, bool is_pattern) {
    (void)link;
    (void)name;
    (void)is_pattern;
    return true;
}

static const rd_link_ops quiet = {on_message, on_any_rule, wants_all};

/* ---- the engine ---- */

/* What the engine has been asked for, and has not given: numbers of topics. */
static const char *const asked_names[] = {"ka", "kb", "k0"};
static uint64_t asked_numbers[3];
static rd_relay_reader requests;

static uint64_t *asked_number(rd_slice channel) {
    for (int i = 0; i < 3; i++) {
        if (rd_slice_equal(channel, text(asked_names[i]))) return &asked_numbers[i];
    }
    return NULL;
}

static void join_engine(void) {
    int fds[2];
    memset(asked_numbers, 0, sizeof(asked_numbers));
    rd_relay_reader_init(&requests, 1000);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    engine = fds[1];
    engine_number = rd_hub_thread_add(hub, fds[0], RD_HUB_STREAMS, NULL);
    CHECK(engine_number > 0);
}

static void leave_engine(void) {
    rd_hub_thread_remove(hub, engine_number);
    close(engine);
    rd_relay_reader_clear(&requests);
}

static void append(rd_buffer *out, rd_relay_type type, uint64_t id, const char *channel,
                   rd_slice payload) {
    const rd_relay_frame frame = {
        .type = type, .id = id, .channel = text(channel), .payload = payload};
    CHECK_INT(rd_relay_write(&frame, 1000, out), 0);
}

static void hear_some(void) {
    char bytes[4096];
    size_t used;
    const ssize_t len = read(engine, bytes, sizeof(bytes));
    if (!CHECK(len > 0)) return;
    for (size_t at = 0; at < (size_t)len; at += used) {
        rd_relay_frame frame;
        const int rc = rd_relay_read(&requests, bytes + at, (size_t)len - at, &used, &frame);
        if (!CHECK(rc >= 0)) return;
        uint64_t *number = NULL;
        if (rc == 1 && frame.type == RD_RELAY_REPLAY) number = asked_number(frame.channel);
        if (number != NULL) *number = frame.id;
    }
}

/* Until the engine was asked for the copy. Returns the number of the topic. */
static uint64_t hear_request(const char *channel) {
    const uint64_t *number = asked_number(text(channel));
    while (*number == 0 && check_failed == 0) hear_some();
    return *number;
}

/* The next one has another number. */
static uint64_t take_request(const char *channel) {
    const uint64_t number = hear_request(channel);
    *asked_number(text(channel)) = 0;
    return number;
}

/* One message, and all is known up to COPY_IDS. */
static void give_copy(const char *channel) {
    char note[24];
    rd_buffer out = {0};
    rd_relay_put_number(note, 8, 1000);
    rd_relay_put_number(note + 8, 8, COPY_IDS);
    rd_relay_put_number(note + 16, 8, take_request(channel));
    append(&out, RD_RELAY_REPLAY_BEGIN, 1, channel, rd_slice_of(note, sizeof(note)));
    append(&out, RD_RELAY_PUBLISH, COPY_IDS - 1, channel, text("kept"));
    append(&out, RD_RELAY_REPLAY_END, 0, channel, text(""));
    CHECK_INT(write(engine, rd_buffer_ptr(&out), rd_buffer_len(&out)), rd_buffer_len(&out));
    rd_buffer_clear(&out);
}

/* ---- the workers ---- */

/* The engine is not there yet. */
static void begin_before_engine(void) {
    begin();
    for (int i = 0; i < WORKERS; i++) workers[i].link->ops = &quiet;
    CHECK_INT(rd_hub_thread_keep(hub, text("k*"), true, (rd_relay_terms){10, 0, 0}), 0);
    rd_hub_thread_expect_streams(hub);
}

static void begin_with_engine(void) {
    begin_before_engine();
    join_engine();
}

static void finish_with_engine(void) {
    leave_engine();
    finish();
}

static void turn_with_timers(void) {
    static rd_ready_set found;
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].link != NULL) rd_link_flush(workers[i].link);
    }
    rd_loop_wait(&loop, &found, rd_loop_timeout(&loop));
    rd_loop_process(&loop, &found);
}

static void wait_for_answer(const asker *asker) {
    while (!asker->is_over && check_failed == 0) turn_with_timers();
}

static rd_link *link_of(int worker) {
    return workers[worker].link;
}

/* Requests a replay, and turns until the hub has set aside it. */
static void set_aside(asker *asker, const char *channel) {
    const uint32_t before = link_of(0)->aside.count;
    CHECK(ask(asker, &workers[0], channel, 1, false));
    while (link_of(0)->aside.count == before && check_failed == 0) turn_with_timers();
    CHECK(!asker->is_over);
}

static void check_nothing_left(void) {
    CHECK_INT(link_of(0)->aside.count, 0);
    CHECK_INT(link_of(0)->aside.channels.count, 0);
    CHECK(rd_list_is_empty(&link_of(0)->aside.returning));
    CHECK_INT(link_of(0)->asked, 0);
    CHECK_INT(link_of(0)->waiting, 0);
}

/* ---- tests ---- */

static void test_others_overtake(void) {
    asker first, other, pattern;
    begin_with_engine();
    set_aside(&first, "ka");
    CHECK_INT(link_of(0)->asked, 0);
    CHECK(ask(&other, &workers[0], "kb", 1, false));
    rd_link_flush(link_of(0));
    (void)hear_request("kb");
    give_copy("kb");
    wait_for_answer(&other);
    CHECK_INT(other.kind, RD_REPLAY_WHOLE);
    CHECK_INT(other.messages, 1);
    CHECK(ask(&other, &workers[0], "kb", 1, false)); /* what is here needs no engine */
    wait_for_answer(&other);
    CHECK_INT(other.messages, 1);
    memset(&pattern, 0, sizeof(pattern));
    pattern.replay =
        (rd_link_replay){.on_message = on_replayed, .on_end = on_replay_end, .bytes_max = SIZE_MAX};
    CHECK(rd_link_replay_begin(link_of(0), &pattern.replay, text("x*"), true, 1));
    wait_for_answer(&pattern);
    CHECK(!first.is_over);
    give_copy("ka");
    wait_for_answer(&first);
    CHECK_INT(first.kind, RD_REPLAY_WHOLE);
    CHECK_INT(first.messages, 1);
    check_nothing_left();
    finish_with_engine();
}

/* A crowd that comes back to one channel is a few requests until the copy is here. */
static void test_later_ones_follow(void) {
    static asker crowd[MANY], late[MANY];
    begin_with_engine();
    for (int i = 0; i < MANY; i++) CHECK(ask(&crowd[i], &workers[0], "ka", 1, false));
    while (link_of(0)->waiting > 0 && check_failed == 0) turn_with_timers();
    CHECK(link_of(0)->aside.count > 0 && link_of(0)->aside.count <= 8);
    CHECK_INT(link_of(0)->asked, 0);
    for (int i = 0; i < MANY; i++) CHECK(ask(&late[i], &workers[0], "ka", 1, false));
    CHECK_INT(link_of(0)->waiting, 0);
    CHECK_INT(link_of(0)->conn->out.bytes, 0); /* nothing is requested */
    for (int i = 0; i < MANY; i += 2) rd_link_replay_cancel(&crowd[i].replay);
    for (int i = 1; i < MANY; i += 2) rd_link_replay_cancel(&late[i].replay);
    give_copy("ka");
    for (int i = 1; i < MANY; i += 2) wait_for_answer(&crowd[i]);
    for (int i = 0; i < MANY; i += 2) wait_for_answer(&late[i]);
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(crowd[i].is_over, i % 2 == 1);
        CHECK_INT(late[i].is_over, i % 2 == 0);
        CHECK_INT(crowd[i].messages, i % 2);
        if (check_failed > 0) break;
    }
    while (link_of(0)->aside.count + link_of(0)->asked > 0 && check_failed == 0) turn();
    check_nothing_left();
    finish_with_engine();
}

/* The answer that comes later is for nobody. */
static void test_no_copy_in_time(void) {
    static asker crowd[MANY];
    asker other;
    begin_with_engine();
    link_of(0)->wait_ms = 5;
    for (int i = 0; i < MANY; i++) CHECK(ask(&crowd[i], &workers[0], "ka", 1, false));
    for (int i = 0; i < MANY; i++) {
        wait_for_answer(&crowd[i]);
        if (!CHECK(crowd[i].replay.is_late && crowd[i].kind == RD_REPLAY_GAP)) break;
    }
    link_of(0)->wait_ms = 60000;
    while (link_of(0)->asked > 0 && check_failed == 0) turn_with_timers();
    CHECK(ask(&other, &workers[0], "ka", 1, false));
    give_copy("ka");
    wait_for_answer(&other);
    CHECK_INT(other.messages, 1);
    while (link_of(0)->aside.count > 0 && check_failed == 0) turn_with_timers();
    check_nothing_left();
    finish_with_engine();
}

/* The next engine is asked for what the last one did not give. */
static void test_an_engine_that_ends(void) {
    asker first, second;
    begin_with_engine();
    set_aside(&first, "ka");
    leave_engine();
    set_aside(&second, "kb"); /* without any engine */
    join_engine();
    (void)hear_request("kb");
    give_copy("kb");
    give_copy("ka");
    wait_for_answer(&second);
    wait_for_answer(&first);
    CHECK_INT(first.messages, 1);
    CHECK_INT(second.messages, 1);
    check_nothing_left();
    finish_with_engine();
}

static void test_a_hub_that_ends(void) {
    static asker crowd[MANY];
    begin_with_engine();
    for (int i = 0; i < MANY; i++) CHECK(ask(&crowd[i], &workers[0], "ka", 1, false));
    while (link_of(0)->waiting > 0 && check_failed == 0) turn_with_timers();
    rd_link_replay_cancel(&crowd[0].replay);
    rd_hub_thread_free(hub);
    hub = NULL;
    for (int i = 1; i < MANY; i++) wait_for_answer(&crowd[i]);
    CHECK(!crowd[0].is_over);
    check_nothing_left();
    close(engine);
    finish();
}

/* The subscription ends, and so does the copy that was to come. */
static void test_a_channel_that_nobody_wants(void) {
    asker first;
    begin_with_engine();
    set_aside(&first, "ka");
    (void)take_request("ka");
    rd_loop_lock(&hub->loop);
    RD_EACH_HUB_CONN(hub, conn, node) {
        const rd_relay_frame frame = {.type = RD_RELAY_UNSUBSCRIBE, .channel = text("ka")};
        if (rd_hub_conn_of(conn)->number != workers[0].number) continue;
        CHECK_INT(rd_hub_receive(&hub->hub, &rd_hub_conn_of(conn)->link, &frame), 0);
    }
    rd_hub_answer(&hub->hub);
    rd_loop_unlock(&hub->loop);
    rd_loop_wakeup(&hub->loop);
    give_copy("ka");
    wait_for_answer(&first);
    CHECK_INT(first.messages, 1);
    check_nothing_left();
    finish_with_engine();
}

enum { FULL = 4096, MOST = 8 * FULL, AT_ONCE = 8, CROWD = FULL + 4 * AT_ONCE };

static asker crowd[CROWD];
static int channels; /* each client of a test has one of its own */

static void ask_crowd(int count) {
    char channel[16];
    for (int i = 0; i < count; i++) {
        (void)snprintf(channel, sizeof(channel), "k%d", channels++);
        CHECK(ask(&crowd[i], &workers[0], channel, 1, false));
    }
}

static void cancel_crowd(int from, int to) {
    for (int i = from; i < to; i++) rd_link_replay_cancel(&crowd[i].replay);
}

static void turn_until_set_aside(void) {
    while (link_of(0)->waiting + link_of(0)->asked > 0 && check_failed == 0) turn_with_timers();
}

/* Their answers are for nobody, so they take no client's place. */
static void test_clients_that_go(void) {
    asker last;
    begin_before_engine();
    ask_crowd(CROWD);
    CHECK(ask(&last, &workers[0], "ka", 1, false));
    do turn_with_timers();
    while ((link_of(0)->asked > 0 || link_of(0)->aside.count < FULL) && check_failed == 0);
    const uint32_t full = link_of(0)->aside.count;
    CHECK(full < FULL + AT_ONCE);
    cancel_crowd(0, 2 * AT_ONCE);
    CHECK_INT(link_of(0)->aside.gone, 2 * AT_ONCE);
    while (link_of(0)->aside.count == full && check_failed == 0) turn_with_timers();
    cancel_crowd(2 * AT_ONCE, CROWD);
    turn_until_set_aside();
    CHECK_INT(link_of(0)->aside.count, link_of(0)->aside.gone + 1);
    CHECK(!last.is_over && link_of(0)->aside.gone > FULL);
    join_engine();
    (void)hear_request("ka");
    give_copy("ka");
    wait_for_answer(&last);
    CHECK_INT(last.messages, 1);
    CHECK_INT(link_of(0)->aside.count, link_of(0)->aside.gone);
    finish_with_engine();
}

/* Nor may they grow without end: then nothing more is requested. */
static void test_clients_that_go_on_and_on(void) {
    asker last;
    begin_before_engine();
    channels = 0;
    for (int i = 0; i < MOST / FULL; i++) {
        ask_crowd(FULL);
        turn_until_set_aside();
        cancel_crowd(0, FULL);
    }
    CHECK_INT(link_of(0)->aside.gone, MOST);
    CHECK(ask(&last, &workers[0], "ka", 1, false));
    CHECK_INT(link_of(0)->asked, 0);
    CHECK_INT(link_of(0)->waiting, 1);
    join_engine();
    give_copy("k0");
    while (link_of(0)->waiting > 0 && check_failed == 0) turn_with_timers();
    rd_link_flush(link_of(0));
    (void)hear_request("ka");
    give_copy("ka");
    wait_for_answer(&last);
    CHECK_INT(last.messages, 1);
    finish_with_engine();
}

/* A client that had no answer in time takes no place, either. */
static void test_clients_that_had_no_answer(void) {
    asker first;
    begin_before_engine();
    link_of(0)->wait_ms = 5;
    CHECK(ask(&first, &workers[0], "ka", 1, false));
    while ((!first.is_over || link_of(0)->aside.count == 0) && check_failed == 0) {
        turn_with_timers();
    }
    CHECK_INT(link_of(0)->aside.gone, 1);
    join_engine();
    (void)hear_request("ka");
    give_copy("ka");
    while (link_of(0)->aside.count > 0 && check_failed == 0) turn_with_timers();
    check_nothing_left();
    CHECK_INT(link_of(0)->aside.gone, 0);
    finish_with_engine();
}

/* The program of the master has been replaced, and its engine is not there yet. */
static void test_an_engine_that_will_come(void) {
    asker first;
    begin_before_engine();
    set_aside(&first, "ka");
    join_engine();
    (void)hear_request("ka");
    give_copy("ka");
    wait_for_answer(&first);
    CHECK_INT(first.kind, RD_REPLAY_WHOLE);
    CHECK_INT(first.messages, 1);
    finish_with_engine();
}

int main(void) {
    test_others_overtake();
    test_later_ones_follow();
    test_no_copy_in_time();
    test_an_engine_that_ends();
    test_a_hub_that_ends();
    test_a_channel_that_nobody_wants();
    test_clients_that_go();
    test_clients_that_go_on_and_on();
    test_clients_that_had_no_answer();
    test_an_engine_that_will_come();
    return check_summary();
}
