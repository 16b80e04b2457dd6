/* SPDX-License-Identifier: MIT
 *
 * What an onlooker sees: calls inside, requests that wait, clients that ask most; only while
 * somebody watches, and not more than there is room for.
 */
#include "serving.h"

static rd_scoreboard board;

static void start_shown(void (*application)(rd_request *)) {
    CHECK_INT(rd_scoreboard_create(&board, 1), 0);
    start_listening(application);
    server->score = &board.rows[0];
}

static void end_shown(void) {
    end();
    rd_scoreboard_close(&board);
}

static void watch_for(uint64_t ms) {
    atomic_store(&board.rows[0].watched_ms, server->loop.now_ms + ms);
}

static rd_view seen(void) {
    rd_view view;
    CHECK(rd_view_read(&board.rows[0].view, &view));
    return view;
}

static bool is_target(const rd_view_call *call, const char *target) {
    return call->len == strlen(target) && memcmp(call->target, target, call->len) == 0;
}

/* Takes the next request into the application, and lets it stay there. */
static rd_request *take(void) {
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    rd_request *request = rd_server_next_request(server, NULL);
    rd_loop_unlock(&server->loop);
    CHECK(request != NULL);
    return request;
}

static void give_back(rd_request *request) {
    rd_loop_lock(&server->loop);
    rd_server_let_go(server, request);
    rd_loop_unlock(&server->loop);
}

/* Turns in which the application takes nothing. */
static void idle_turns(int count) {
    for (; count > 0; count--) {
        rd_loop_lock(&server->loop);
        rd_server_turn(server, wait_in_poll, false);
        rd_loop_unlock(&server->loop);
    }
}

static void pass(uint64_t ms) {
    pass_ms(ms);
    idle_turns(2);
}

static int ask_for(const char *text) {
    int fd = dial();
    say(fd, text);
    return fd;
}

static void test_nobody_watches(void) {
    start_shown(answer_path);
    int client = ask_for(GET("/"));
    turns(3);
    CHECK(server->onlook.busiest == NULL);
    CHECK_INT(seen().written_ms, 0);
    atomic_store(&board.rows[0].watched_ms, RD_MAY_BE_WATCHED);
    turns(3);
    CHECK(server->onlook.busiest == NULL);
    close(client);
    end_shown();
}

static void test_a_call_and_its_states(void) {
    start_shown(answer_path);
    watch_for(100000);
    int client = ask_for(GET("/a/path?with=secrets"));
    rd_request *call = take();
    pass(300);
    rd_view view = seen();
    CHECK_INT(view.calls, 1);
    CHECK(is_target(&view.call[0], "GET /a/path"));
    CHECK_INT(view.call[0].state, RD_VIEW_INSIDE);
    CHECK_INT(view.call[0].status, 0);
    CHECK_INT(view.call[0].peer.kind, RD_ADDRESS_V4);
    CHECK(view.written_ms - view.call[0].since_ms >= 300);
    call->times.client_since_ns = hand_clock_ns;
    pass(300);
    CHECK_INT(seen().call[0].state, RD_VIEW_CLIENT);
    CHECK(seen().call[0].client_since_ms > view.call[0].since_ms);
    call->times.client_since_ns = 0;
    call->status = 201;
    pass(300);
    CHECK_INT(seen().call[0].state, RD_VIEW_ANSWERING);
    CHECK_INT(seen().call[0].status, 201);
    call->hung = true;
    pass(300);
    CHECK_INT(seen().call[0].state, RD_VIEW_HUNG);
    call->hung = false;
    call->status = 0;
    answer_path(call);
    give_back(call);
    pass(300);
    CHECK_INT(seen().calls, 0);
    close(client);
    end_shown();
}

/* Both calls and requests that wait are seen, however many there are. */
static void test_more_than_there_is_room_for(void) {
    enum { CLIENTS = 60, INSIDE = 20 };
    int clients[CLIENTS];
    rd_request *calls[INSIDE];
    start_shown(answer_path);
    watch_for(100000);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = ask_for(GET("/?"));
        idle_turns(1); /* accepts it: few have room in the kernel's queue */
    }
    for (int i = 0; i < 100 && server->queue.len < CLIENTS; i++) idle_turns(1);
    CHECK_INT(server->queue.len, CLIENTS);
    for (int i = 0; i < INSIDE; i++) calls[i] = take();
    pass(300);
    const rd_view view = seen();
    CHECK_INT(view.calls, RD_VIEW_CALLS);
    CHECK_INT(view.waiting, CLIENTS - INSIDE);
    CHECK_INT(view.call[0].state, RD_VIEW_INSIDE);
    CHECK_INT(view.call[RD_VIEW_CALLS - 1].state, RD_VIEW_THREAD);
    for (int i = 0; i < INSIDE; i++) {
        answer_path(calls[i]);
        give_back(calls[i]);
    }
    for (int i = 0; i < 100 && server->queue.len > 0; i++) turn();
    for (int i = 0; i < CLIENTS; i++) close(clients[i]);
    end_shown();
}

static void test_the_clients_of_a_period(void) {
    start_shown(answer_path);
    watch_for(100000);
    idle_turns(1);
    int busy = dial(), other = dial();
    for (int i = 0; i < 5; i++) ask(busy, GET("/"));
    ask(other, GET("/"));
    CHECK_INT(seen().busiest, 0); /* the period is not over */
    later(2100);
    const rd_view view = seen();
    CHECK_INT(view.busiest, 2);
    CHECK_INT(view.busy[0].requests, 5);
    CHECK_INT(view.busy[1].requests, 1);
    CHECK(view.period_ms >= 2000);
    later(2100);
    CHECK_INT(seen().busiest, 0);
    CHECK_INT(seen().channels, 0);
    close(busy);
    close(other);
    end_shown();
}

static void test_nobody_watches_any_more(void) {
    start_shown(answer_path);
    watch_for(1000);
    idle_turns(1);
    CHECK(seen().written_ms > 0);
    pass(900);
    watch_for(1000); /* said again */
    pass(900);
    CHECK(server->onlook.busiest != NULL);
    for (int i = 0; i < 5; i++) pass(300);
    CHECK(server->onlook.busiest == NULL);
    CHECK_INT(seen().written_ms, 0);
    CHECK_INT(atomic_load(&board.rows[0].watched_ms), RD_MAY_BE_WATCHED);
    CHECK(!rd_onlook_is_missed(&server->onlook, server->score));
    watch_for(1000);
    CHECK(rd_onlook_is_missed(&server->onlook, server->score));
    idle_turns(1);
    CHECK(!rd_onlook_is_missed(&server->onlook, server->score));
    end_shown(); /* in the middle */
}

static void hear_nothing(rd_subscriber *subscriber, rd_subscription *subscription,
                         rd_message *message) {
    (void)subscriber, (void)subscription, (void)message;
}

/* Channel "c1" has one subscriber, "c2" two, and so on. */
static void test_channels(void) {
    static const rd_subscriber_kind kind = {.on_message = hear_nothing, .limit = 100};
    static const rd_subscribe_terms terms;
    rd_subscriber subscribers[9];
    char name[16];
    start_shown(answer_path);
    rd_channels *channels = &server->pubsub.channels;
    rd_loop_lock(&server->loop);
    for (unsigned i = 0; i < 9; i++) {
        rd_subscriber_init(&subscribers[i], &kind);
        for (unsigned channel = i + 1; channel <= 9; channel++) {
            snprintf(name, sizeof(name), "c%u", channel);
            rd_channels_subscribe(channels, &subscribers[i], rd_slice_of(name, 2), false, &terms);
        }
    }
    rd_channels_subscribe(channels, &subscribers[0], RD_SLICE("c\xc3\xa9*"), true, &terms);
    rd_channels_subscribe(channels, &subscribers[0], RD_SLICE(RD_CHANNEL_PRIVATE "own"), false,
                          &terms);
    rd_loop_unlock(&server->loop);
    watch_for(1000);
    idle_turns(1);
    const rd_view view = seen();
    CHECK_INT(view.channels, 11);
    CHECK_INT(view.largest, RD_VIEW_CHANNELS);
    for (unsigned i = 0; i < RD_VIEW_CHANNELS; i++) {
        CHECK_INT(view.channel[i].subscribers, 9 - i);
        CHECK_INT(view.channel[i].name[1], '9' - (int)i);
    }
    rd_loop_lock(&server->loop);
    for (unsigned i = 1; i < 9; i++) rd_subscriber_clear(channels, &subscribers[i]);
    rd_loop_unlock(&server->loop);
    pass(300);
    CHECK_INT(seen().channel[0].subscribers, 1);
    rd_loop_lock(&server->loop);
    rd_subscriber_clear(channels, &subscribers[0]);
    rd_channels_subscribe(channels, &subscribers[0], RD_SLICE("c\xc3\xa9*"), true, &terms);
    rd_loop_unlock(&server->loop);
    pass(300);
    CHECK_INT(seen().largest, 1);
    CHECK(seen().channel[0].is_pattern && memcmp(seen().channel[0].name, "c??*", 4) == 0);
    rd_loop_lock(&server->loop);
    rd_subscriber_clear(channels, &subscribers[0]);
    rd_loop_unlock(&server->loop);
    end_shown();
}

int main(void) {
    rd_settings_init(&settings);
    test_nobody_watches();
    test_a_call_and_its_states();
    test_more_than_there_is_room_for();
    test_the_clients_of_a_period();
    test_nobody_watches_any_more();
    test_channels();
    return check_summary();
}
