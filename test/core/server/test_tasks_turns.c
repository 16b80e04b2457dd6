/* SPDX-License-Identifier: MIT
 *
 * server/events: tasks in the turns of a server. When they get their time, when the loop sleeps,
 * what a stop waits for.
 */
#include "serving.h"

enum { COUNT = 5 };

static rd_task all[COUNT];
static unsigned sleeps;

static void begin(void (*application)(rd_request *)) {
    start(application);
    sleeps = 0;
}

static void add(rd_task *task, uint64_t interval_ms, uint64_t runs, bool when_idle) {
    rd_task_init(task, interval_ms * 1000000, runs, when_idle);
    rd_server_lock(server);
    rd_tasks_add(&server->tasks, task, rd_clock_ns());
    rd_server_unlock(server);
}

static void sleep_briefly(rd_server *waiting, int64_t timeout_us) {
    (void)timeout_us;
    sleeps++;
    rd_loop_wait(&waiting->loop, &waiting->lead.found, 0);
}

/* A turn as the binding has it: a batch of requests, then tasks. Each task takes so long. Returns
 * how many there were. */
static unsigned turn_with_tasks(uint64_t us) {
    unsigned count = 0;
    rd_loop_lock(&server->loop);
    rd_server_turn(server, sleep_briefly, true);
    rd_request *request = NULL;
    while ((request = rd_server_next_request(server, request)) != NULL) app(request);
    for (rd_task *task; (task = rd_server_next_task(server, rd_clock_ns())) != NULL; count++) {
        hand_clock_ns += us * 1000;
        rd_tasks_give_back(&server->tasks, task, hand_clock_ns);
    }
    rd_loop_unlock(&server->loop);
    return count;
}

static void test_they_have_a_batch_of_time_in_each_turn(void) {
    settings.batch_us = 200;
    begin(answer_path);
    for (int i = 0; i < COUNT; i++) add(&all[i], 0, 1, false);
    CHECK(rd_server_has_calls(server));
    CHECK_INT(turn_with_tasks(100), 2);
    CHECK_INT(turn_with_tasks(300), 1);
    CHECK_INT(turn_with_tasks(1), 2);
    CHECK_INT(sleeps, 0); /* while tasks wait */
    CHECK(!rd_server_has_calls(server));
    CHECK_INT(turn_with_tasks(1), 0);
    CHECK_INT(sleeps, 1);
    end();
}

/* In each turn both get their time, whoever waits for longer. */
static void test_requests_and_tasks_take_turns(void) {
    settings.batch_us = 200;
    begin(answer_path);
    int fd = join();
    for (int i = 0; i < COUNT; i++) add(&all[i], 0, 1, false);
    for (int i = 0; i < COUNT; i++) {
        const uint64_t before = server->counts.requests;
        say(fd, GET("/a"));
        CHECK_INT(turn_with_tasks(1000), 1);
        CHECK_INT(server->counts.requests, before + 1);
    }
    close(fd);
    end();
}

static void test_idle(void) {
    begin(answer_path);
    int fd = join();
    add(&all[0], 0, 1, true);
    add(&all[1], 0, 1, false);
    say(fd, GET("/a"));
    CHECK_INT(turn_with_tasks(1), 1);
    CHECK_INT(all[1].state, RD_TASK_OVER);
    CHECK_INT(turn_with_tasks(1), 1);
    CHECK_INT(all[0].state, RD_TASK_OVER);
    close(fd);
    end();
}

static void test_a_timer_ends_the_sleep(void) {
    begin(answer_path);
    add(&all[0], 5, 2, false);
    CHECK_INT(turn_with_tasks(1), 0);
    CHECK_INT(server->loop.sleep_until_ms, all[0].due_ns / 1000000 + 1);
    pass_ms(6);
    CHECK_INT(turn_with_tasks(1), 1);
    CHECK(rd_task_cancel(&all[0]));
    end();
}

static void test_a_stop_waits_for_tasks(void) {
    begin(answer_path);
    add(&all[0], 0, 1, false);
    add(&all[1], 1, RD_TASK_FOR_EVER, false);
    rd_server_stop(server, RD_STOP_DRAIN);
    rd_loop_lock(&server->loop);
    rd_server_turn(server, sleep_briefly, true);
    CHECK(!rd_server_is_done(server));
    CHECK_INT(all[1].state, RD_TASK_OVER);
    rd_task *task = rd_server_next_task(server, rd_clock_ns());
    CHECK(task == &all[0]);
    CHECK(!rd_server_is_done(server));
    rd_tasks_give_back(&server->tasks, task, hand_clock_ns);
    CHECK(rd_server_is_done(server));
    rd_loop_unlock(&server->loop);
    end();
}

static void test_a_stop_gives_up_tasks_in_the_end(void) {
    settings.drain_timeout_ms = 100;
    settings.max_threads = 2; /* one seat */
    begin(answer_path);
    for (int i = 0; i < COUNT; i++) add(&all[i], 0, 1, false);
    rd_server_stop(server, RD_STOP_DRAIN);
    rd_loop_lock(&server->loop);
    rd_server_turn(server, sleep_briefly, true);
    rd_task *task = rd_server_next_task(server, rd_clock_ns());
    rd_loop_unlock(&server->loop);
    later(101);
    CHECK_INT(server->tasks.dropped, COUNT - 1);
    CHECK(!rd_server_is_done(server)); /* as for a call */
    rd_loop_lock(&server->loop);
    CHECK(!rd_tasks_give_back(&server->tasks, task, hand_clock_ns));
    rd_loop_unlock(&server->loop);
    end();
}

static void test_all(void) {
    test_they_have_a_batch_of_time_in_each_turn();
    test_requests_and_tasks_take_turns();
    test_idle();
    test_a_timer_ends_the_sleep();
    test_a_stop_waits_for_tasks();
    test_a_stop_gives_up_tasks_in_the_end();
}

int main(void) {
    return test_both_pollers(test_all);
}
