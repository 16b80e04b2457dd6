/* SPDX-License-Identifier: MIT
 *
 * The line of tasks and their timers, by a clock that the test moves. What a server does with them:
 * test/core/server/test_tasks_turns.c.
 */
#include <stdlib.h>

#include "check.h"
#include "hand_clock.h"
#include "request/tasks.h"

#define MS UINT64_C(1000000)

static rd_loop loop;
static rd_tasks tasks;
static rd_ready_set found;
static rd_score_row row, *score = &row;
static uint32_t ready_count;

static void start(uint32_t seats) {
    row = (rd_score_row){0};
    ready_count = 0;
    CHECK_INT(rd_loop_init(&loop, false), 0);
    tasks = (rd_tasks){.ready_count = &ready_count, .score = &score};
    rd_tasks_init(&tasks, &loop, seats);
}

static void end(void) {
    rd_tasks_end(&tasks);
    CHECK_INT(tasks.live, 0);
    CHECK_INT(tasks.timers.count, 0);
    CHECK_INT(ready_count, 0);
    rd_loop_clear(&loop);
}

static void go_on(uint64_t ms) {
    hand_clock_ns += ms * MS;
    rd_loop_lock(&loop);
    found.count = 0;
    rd_loop_process(&loop, &found);
    rd_loop_unlock(&loop);
}

static rd_task *add(rd_task *task, uint64_t interval_ms, uint64_t runs) {
    rd_task_init(task, interval_ms * MS, runs, false);
    rd_tasks_add(&tasks, task, hand_clock_ns);
    return task;
}

static rd_task *add_idle(rd_task *task) {
    rd_task_init(task, 0, 1, true);
    rd_tasks_add(&tasks, task, hand_clock_ns);
    return task;
}

static rd_task *take(void) {
    return rd_tasks_take(&tasks, false, hand_clock_ns);
}

static bool give_back(rd_task *task) {
    return rd_tasks_give_back(&tasks, task, hand_clock_ns);
}

static void test_they_begin_in_order_and_have_seats(void) {
    rd_task a, b, c;
    start(2);
    CHECK(take() == NULL);
    add(&a, 0, 1);
    add(&b, 0, 1);
    add(&c, 0, 1);
    CHECK_INT(ready_count, 1);
    CHECK_INT(row.tasks_waiting, 3);
    CHECK(take() == &a);
    CHECK(take() == &b);
    CHECK(take() == NULL); /* both seats are taken */
    CHECK_INT(ready_count, 0);
    CHECK_INT(row.tasks_running, 2);
    CHECK(!give_back(&b));
    CHECK_INT(b.state, RD_TASK_OVER);
    CHECK_INT(ready_count, 1);
    CHECK(take() == &c);
    CHECK(!give_back(&a));
    CHECK(!give_back(&c));
    CHECK_INT(row.tasks, 3);
    CHECK_INT(row.tasks_running, 0);
    end();
}

static void test_a_timer_is_due_once(void) {
    rd_task a;
    start(1);
    add(&a, 10, 1);
    CHECK_INT(row.timers, 1);
    go_on(9);
    CHECK_INT(ready_count, 0);
    go_on(1);
    CHECK_INT(ready_count, 1);
    CHECK_INT(row.timers, 0);
    CHECK_INT(row.oldest_task_ms, hand_clock_ns / MS);
    CHECK(take() == &a);
    CHECK_INT(row.oldest_task_ms, 0);
    CHECK(!give_back(&a));
    go_on(100);
    CHECK(take() == NULL);
    end();
}

/* The next run is due an interval after the begin of the last one. */
static void test_a_timer_repeats(void) {
    rd_task a;
    start(2);
    add(&a, 10, 3);
    go_on(14); /* four late */
    CHECK(take() == &a);
    CHECK(give_back(&a));
    go_on(9);
    CHECK(take() == NULL);
    go_on(1);
    CHECK(take() == &a);
    go_on(35); /* longer than its interval */
    CHECK(take() == NULL);
    CHECK(give_back(&a)); /* missed runs are one run, at once */
    CHECK(take() == &a);
    CHECK(!give_back(&a));
    CHECK_INT(row.tasks, 3);
    end();
}

static void test_for_ever(void) {
    rd_task a;
    start(1);
    add(&a, 1, RD_TASK_FOR_EVER);
    for (int i = 0; i < 50; i++) {
        go_on(1);
        CHECK(take() == &a);
        CHECK(give_back(&a));
    }
    CHECK(rd_task_cancel(&a));
    go_on(10);
    CHECK(take() == NULL);
    end();
}

/* What runs late is still one run, however late. */
static void test_late_ones_run_once(void) {
    rd_task a;
    start(1);
    add(&a, 10, RD_TASK_FOR_EVER);
    go_on(1000);
    CHECK(take() == &a);
    CHECK(give_back(&a));
    CHECK(take() == NULL);
    end();
}

static void test_cancel(void) {
    rd_task timed, waiting, idle, running, repeating, new;
    start(2);
    add(&running, 0, 1);
    add(&repeating, 1, 5);
    CHECK(take() == &running);
    go_on(1);
    CHECK(take() == &repeating);
    add(&timed, 10, 1);
    add(&waiting, 0, 1);
    add_idle(&idle);
    rd_task_init(&new, 0, 1, false);
    CHECK(rd_task_cancel(&new));
    CHECK(rd_task_cancel(&timed));
    CHECK(rd_task_cancel(&waiting));
    CHECK(rd_task_cancel(&idle));
    CHECK(!rd_task_cancel(&idle));
    CHECK(!rd_task_cancel(&running)); /* its only run goes on */
    CHECK(rd_task_cancel(&repeating));
    CHECK_INT(repeating.state, RD_TASK_RUNNING);
    CHECK(!rd_task_cancel(&repeating));
    CHECK(!give_back(&running));
    CHECK(!give_back(&repeating));
    CHECK_INT(row.tasks_waiting, 0);
    CHECK_INT(row.timers, 0);
    CHECK_INT(row.tasks_dropped, 0);
    end();
}

static void test_idle_tasks_come_last(void) {
    rd_task idle, a;
    start(1);
    add_idle(&idle);
    CHECK_INT(ready_count, 1);
    add(&a, 0, 1);
    CHECK(rd_tasks_take(&tasks, true, hand_clock_ns) == &a);
    CHECK(!give_back(&a));
    CHECK(take() == NULL);
    CHECK(rd_tasks_take(&tasks, true, hand_clock_ns) == &idle);
    CHECK(!give_back(&idle));
    end();
}

static void test_a_stop(void) {
    rd_task timed, due, idle, repeating, late, too_late, timer;
    start(1);
    add(&repeating, 1, RD_TASK_FOR_EVER);
    go_on(1);
    CHECK(take() == &repeating);
    add(&due, 0, 1);
    add(&timed, 10, 1);
    add_idle(&idle);
    rd_tasks_drain(&tasks);
    rd_tasks_drain(&tasks);
    CHECK_INT(timed.state, RD_TASK_OVER);
    CHECK_INT(row.timers, 0);
    CHECK(rd_tasks_live(&tasks));
    CHECK(!give_back(&repeating));
    add(&late, 0, 1);
    CHECK_INT(add(&timer, 1, 1)->state, RD_TASK_OVER);
    CHECK(take() == &due);
    CHECK(!give_back(&due));
    CHECK(take() == &idle);
    CHECK(!give_back(&idle));
    rd_tasks_end(&tasks);
    CHECK_INT(late.state, RD_TASK_OVER);
    CHECK(!rd_tasks_live(&tasks));
    CHECK_INT(add(&too_late, 0, 1)->state, RD_TASK_OVER);
    CHECK_INT(row.tasks_dropped, 2);
    end();
}

enum { MANY = 64 };

/* However they come and go: no seat, place or timer is lost, and none runs twice at once. */
static void test_many_at_random(void) {
    static rd_task all[MANY];
    bool inside[MANY] = {false};
    start(5);
    for (int i = 0; i < MANY; i++) rd_task_init(&all[i], 0, 0, false);
    for (int step = 0; step < 20000; step++) {
        const int i = rand() % MANY;
        const bool is_free = all[i].state == RD_TASK_NEW || all[i].state == RD_TASK_OVER;
        switch (rand() % 5) {
        case 0:
            if (is_free) add(&all[i], (uint64_t)(rand() % 20), (uint64_t)(1 + rand() % 3));
            break;
        case 1:
            rd_task_cancel(&all[i]);
            break;
        case 2:
            if (inside[i]) give_back(&all[i]), inside[i] = false;
            break;
        case 3:
            go_on((uint64_t)(rand() % 5));
            break;
        default: {
            rd_task *taken = rd_tasks_take(&tasks, rand() % 2 == 0, hand_clock_ns);
            if (taken == NULL) break;
            CHECK(!inside[taken - all]);
            inside[taken - all] = true;
        }
        }
        CHECK(tasks.running <= 5 && ready_count <= 1);
    }
    for (int i = 0; i < MANY; i++) {
        if (inside[i]) give_back(&all[i]);
    }
    end();
}

int main(void) {
    test_they_begin_in_order_and_have_seats();
    test_a_timer_is_due_once();
    test_a_timer_repeats();
    test_for_ever();
    test_late_ones_run_once();
    test_cancel();
    test_idle_tasks_come_last();
    test_a_stop();
    test_many_at_random();
    return check_summary();
}
