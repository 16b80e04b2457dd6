/* SPDX-License-Identifier: MIT
 *
 * server/turn: who is answered in a turn, and when and for how long it sleeps, on both pollers.
 */
#include "serving.h"

/* ---- whose turn it is ---- */

static char order[64];
static uint64_t cost_ns; /* application time of a request */

static void note_order(rd_request *request) {
    rd_slice path = rd_request_slice(request, request->head.path);
    strncat(order, path.ptr + 1, path.len - 1);
    hand_clock_ns += cost_ns;
    answer_path(request);
}

static const struct {
    uint64_t cost_ns;
    const char *order, *other; /* the poller may begin with either client */
} rounds[] = {
    {0, "abcxyz", "xyzabc"},     /* cheap requests of a connection are answered together */
    {60000, "axbycz", "xaybzc"}, /* longer than a quantum: one of each in turn */
    {30000, "abxycz", "xyabzc"}, /* as many as start within the quantum */
};

static void test_who_gets_the_next_turn(void) {
    for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
        start(note_order);
        int one = join(), two = join();
        order[0] = '\0';
        cost_ns = rounds[i].cost_ns;
        say(one, GET("/a") GET("/b") GET("/c"));
        say(two, GET("/x") GET("/y") GET("/z"));
        turns(8);
        CHECK_SAYS(strcmp(order, rounds[i].order) == 0 || strcmp(order, rounds[i].other) == 0, "%s",
                   order);
        close(one);
        close(two);
        end();
    }
}

static const struct {
    int64_t batch_requests, batch_us;
    uint64_t cost_ns;
    unsigned answered; /* out of forty, in one turn */
} batches[] = {
    {32, 200, 0, 32},   {8, 200, 0, 8},
    {64, 200, 0, 40},   {32, 200, 100000, 3}, /* the third began when exactly 200 us had passed */
    {32, 1, 100000, 1},
};

static void test_batches(void) {
    for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
        settings.batch_requests = batches[i].batch_requests;
        settings.batch_us = batches[i].batch_us;
        start(note_order);
        int fd = join();
        order[0] = '\0';
        cost_ns = batches[i].cost_ns;
        for (int sent = 0; sent < 40; sent++) say(fd, GET("/a"));
        turn();
        CHECK_INT(strlen(order), batches[i].answered);
        turns(40);
        CHECK_INT(strlen(order), 40);
        close(fd);
        end();
    }
}

/* ---- sleeping ---- */

static unsigned sleeps;

static void count_sleep(rd_server *waiting, int64_t timeout_us) {
    (void)timeout_us;
    sleeps++;
    rd_loop_wait(&waiting->loop, &waiting->lead.found, 0);
}

/* A thread that waits inside an application call must sleep, even if requests are queued. Only
 * other threads will take them. */
static void test_turns_of_somebody_who_waits(void) {
    start(answer_path);
    int fd = join();
    say(fd, GET("/a"));
    sleeps = 0;
    rd_loop_lock(&server->loop);
    rd_server_turn(server, count_sleep, true);
    CHECK(rd_queue_is_ready(&server->queue));
    sleeps = 0;
    rd_server_turn(server, count_sleep, true);
    CHECK_INT(sleeps, 0);
    rd_server_turn(server, count_sleep, false);
    CHECK_INT(sleeps, 1);
    CHECK(rd_queue_is_ready(&server->queue));
    rd_loop_unlock(&server->loop);
    close(fd);
    end();
}

static const rd_poller_ops *real_ops;
static int64_t waited_us; /* before the last sleep */
static uint64_t return_ns;

static int note_wait(rd_poller *poller, rd_ready *ready, int capacity, int64_t timeout_us) {
    waited_us = timeout_us;
    return real_ops->wait(poller, ready, capacity, 0);
}

/* A client of a server whose waits are recorded. */
static int join_noting_waits(void) {
    static rd_poller_ops ops;
    start(answer_path);
    int fd = join();
    real_ops = server->loop.ops;
    ops = *real_ops;
    ops.wait = note_wait;
    server->loop.ops = &ops;
    return fd;
}

/* Sleeps, and takes this long to return. */
static void come_back_late(rd_server *sleeper, int64_t timeout_us) {
    (void)timeout_us;
    sleeps++;
    if (return_ns == 0) return;
    sleeper->lead.awake_ns = rd_clock_ns();
    hand_clock_ns += return_ns;
}

static void turn_that_comes_back_late(void) {
    rd_loop_lock(&server->loop);
    rd_server_turn(server, come_back_late, true);
    rd_request *request = NULL;
    while ((request = rd_server_next_request(server, request)) != NULL) app(request);
    rd_loop_unlock(&server->loop);
}

static const struct {
    uint64_t return_ns;
    int64_t next_us; /* how long the next brief wait lasts */
} brief_waits[] = {
    {0, 0},          {999999, 0},      {1000000, 150},    {3000000, 150},
    {10000000, 500}, {50000000, 2500}, {100000000, 5000}, {60000000000, 5000},
};

/* A server that lost a time slice when it yielded yields later the next time. */
static void test_brief_waits(void) {
    int fd = join_noting_waits();
    for (size_t i = 0; i < sizeof(brief_waits) / sizeof(brief_waits[0]); i++) {
        return_ns = brief_waits[i].return_ns;
        turn_that_comes_back_late();
        say(fd, GET("/a"));
        sleeps = 0;
        turn_that_comes_back_late(); /* the server is busy from here */
        CHECK_INT(sleeps, 0);
        turn_that_comes_back_late();
        CHECK_INT(sleeps, 1);
        CHECK_INT(waited_us, brief_waits[i].next_us);
        hand_clock_ns += 2000000; /* not busy any more */
        turn_that_comes_back_late();
        CHECK_INT(waited_us, 0);
    }
    server->loop.ops = real_ops;
    close(fd);
    end();
}

/* The other program may have stopped computing: the server finds out when it yields. */
static void test_brief_waits_end(void) {
    int fd = join_noting_waits();
    return_ns = 100000000;
    turn_that_comes_back_late();
    hand_clock_ns += 1999000000;
    say(fd, GET("/a"));
    turn_that_comes_back_late();
    return_ns = 0;
    hand_clock_ns += 999999;
    turn_that_comes_back_late();
    CHECK_INT(waited_us, 5000);
    return_ns = 100000000;
    turn_that_comes_back_late();
    hand_clock_ns += 1999000000;
    say(fd, GET("/a"));
    turn_that_comes_back_late();
    hand_clock_ns += 1000000;
    turn_that_comes_back_late();
    CHECK_INT(waited_us, 0);
    server->loop.ops = real_ops;
    close(fd);
    end();
}

/* Whether a turn makes the next poll return. */
static bool calls_watch_back(bool takes_requests) {
    rd_server_turn(server, count_sleep, takes_requests);
    struct pollfd called = {.fd = server->loop.wakeup.fd, .events = POLLIN};
    return poll(&called, 1, 0) == 1;
}

/* Its poll may have begun long before the calls that keep these requests waiting. */
static void test_the_watch_thread_is_called_back(void) {
    start(answer_path);
    int fd = join();
    rd_loop_lock(&server->loop);
    server->lead.watch_waits = true;
    CHECK(!calls_watch_back(true)); /* there is nothing to do */
    say(fd, GET("/a"));
    CHECK(calls_watch_back(true));
    CHECK(calls_watch_back(true)); /* this turn has consumed the first wake-up */
    CHECK(!calls_watch_back(false));
    server->lead.watch_waits = false;
    CHECK(!calls_watch_back(true));
    rd_loop_unlock(&server->loop);
    close(fd);
    end();
}

/* ---- timers set by other threads ---- */

static rd_timer early;
static bool was_woken;

static void ignore_due(rd_timer *timer) {
    (void)timer;
}

static void set_early(rd_server *sleeper) {
    rd_server_lock(sleeper);
    rd_timer_set(&sleeper->loop.timers, &early, sleeper->loop.now_ms + 5);
    rd_server_unlock(sleeper);
}

/* As another thread would, while this one sleeps. */
static void set_early_timer(rd_server *sleeper, int64_t timeout_us) {
    CHECK(timeout_us > 5000);
    set_early(sleeper);
    was_woken = !atomic_load(&sleeper->loop.sleeping);
    rd_timer_cancel(&early);
}

/* A call of the application goes on, and its deadline is what the loop sleeps for. */
static void test_a_timer_set_during_a_sleep(void) {
    settings.slow_request_ms = 1000;
    start(hold);
    int fd = join();
    rd_timer_init(&early, ignore_due);
    say(fd, GET("/a"));
    turns(2);
    CHECK(held != NULL);
    rd_loop_lock(&server->loop);
    rd_server_turn(server, set_early_timer, true);
    rd_loop_unlock(&server->loop);
    CHECK(was_woken);
    answer_path(held);
    close(fd);
    end();
}

/* The same, while the watch thread is in its poll. */
static void test_a_timer_set_during_a_poll_of_the_watch_thread(void) {
    start(answer_path);
    rd_timer_init(&early, ignore_due);
    rd_loop_lock(&server->loop);
    rd_server_turn(server, count_sleep, true);
    rd_loop_unlock(&server->loop);
    server->lead.watch_owns = server->lead.watch_waits = true;
    server->loop.sleep_until_ms = server->loop.now_ms + 50;
    struct pollfd called = {.fd = server->loop.wakeup.fd, .events = POLLIN};
    rd_server_lock(server);
    rd_server_unlock(server);
    if (server->loop.ops->is_live) CHECK_INT(poll(&called, 1, 0), 0);
    set_early(server);
    CHECK_INT(poll(&called, 1, 0), 1);
    rd_timer_cancel(&early);
    server->lead.watch_owns = server->lead.watch_waits = false;
    end();
}

static void test_all(void) {
    test_a_timer_set_during_a_sleep();
    test_a_timer_set_during_a_poll_of_the_watch_thread();
    test_who_gets_the_next_turn();
    test_batches();
    test_turns_of_somebody_who_waits();
    test_brief_waits();
    test_brief_waits_end();
    test_the_watch_thread_is_called_back();
}

int main(void) {
    return test_both_pollers(test_all);
}
