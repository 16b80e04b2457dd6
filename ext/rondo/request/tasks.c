/* SPDX-License-Identifier: MIT
 *
 * The line of tasks, and their timers; see tasks.h.
 */
#include "request/tasks.h"

/* ---- what others see ---- */

static void write_scores(const rd_tasks *tasks) {
    rd_score_row *score = *tasks->score;
    const rd_list *first = tasks->waiting.next;
    const uint64_t due_ns =
        first == &tasks->waiting ? 0 : RD_CONTAINER(first, const rd_task, node)->due_ns;
#define PUT(name, value) atomic_store_explicit(&score->name, (value), memory_order_relaxed)
    PUT(tasks, tasks->begun);
    PUT(tasks_waiting, tasks->waiting_len);
    PUT(tasks_running, tasks->running);
    PUT(tasks_dropped, tasks->dropped);
    PUT(timers, tasks->timers.count);
    PUT(oldest_task_ms, due_ns / 1000000);
#undef PUT
}

/* After each change. */
static void settle(rd_tasks *tasks) {
    const bool is_ready = tasks->running < tasks->seats &&
                          (!rd_list_is_empty(&tasks->waiting) || !rd_list_is_empty(&tasks->idle));
    if (is_ready && !tasks->is_ready) ++*tasks->ready_count;
    if (!is_ready && tasks->is_ready) --*tasks->ready_count;
    tasks->is_ready = is_ready;
    write_scores(tasks);
}

/* ---- the states ---- */

static void enter(rd_task *task, rd_task_state state, rd_list *list) {
    task->state = state;
    if (list != NULL) rd_list_append(list, &task->node);
    if (state == RD_TASK_WAITING) task->tasks->waiting_len++;
}

static void leave(rd_task *task) {
    if (rd_list_is_linked(&task->node)) rd_list_unlink(&task->node);
    if (task->state == RD_TASK_TIMED) rd_app_timer_cancel(&task->timer);
    if (task->state == RD_TASK_WAITING) task->tasks->waiting_len--;
}

static void wait_since(rd_task *task, uint64_t due_ns) {
    task->due_ns = due_ns;
    enter(task, RD_TASK_WAITING, &task->tasks->waiting);
}

static void on_due(rd_app_timer *timer) {
    rd_task *task = RD_CONTAINER(timer, rd_task, timer);
    leave(task);
    wait_since(task, timer->due_ns);
    settle(task->tasks);
}

static void end(rd_task *task) {
    task->state = RD_TASK_OVER;
    task->tasks->live--;
}

/* Without a limit on the number of timers, because there is one for all tasks. */
static void set_timer(rd_task *task, uint64_t due_ns) {
    rd_tasks *tasks = task->tasks;
    task->due_ns = due_ns;
    rd_app_timer_set(&tasks->timers, &task->timer, due_ns);
    enter(task, RD_TASK_TIMED, &tasks->timed);
}

/* ---- from the application ---- */

void rd_task_init(rd_task *task, uint64_t interval_ns, uint64_t runs, bool when_idle) {
    *task = (rd_task){.interval_ns = interval_ns, .runs = runs, .when_idle = when_idle};
    rd_list_init(&task->node);
    rd_app_timer_init(&task->timer, on_due);
}

static void begin(rd_tasks *tasks, rd_task *task, uint64_t now_ns) {
    if (tasks->phase == RD_TASKS_ENDED) {
        tasks->dropped++;
        end(task);
    } else if (task->interval_ns > 0 && tasks->phase == RD_TASKS_DRAINING) {
        end(task);
    } else if (task->interval_ns > 0) {
        set_timer(task, now_ns + task->interval_ns);
    } else if (task->when_idle && tasks->phase == RD_TASKS_OPEN) {
        task->due_ns = now_ns;
        enter(task, RD_TASK_IDLE, &tasks->idle);
    } else {
        wait_since(task, now_ns);
    }
}

void rd_tasks_add(rd_tasks *tasks, rd_task *task, uint64_t now_ns) {
    task->tasks = tasks;
    tasks->live++;
    begin(tasks, task, now_ns);
    settle(tasks);
}

bool rd_task_cancel(rd_task *task) {
    rd_tasks *tasks = task->tasks;
    if (task->state == RD_TASK_OVER) return false;
    const bool would = task->state != RD_TASK_RUNNING || task->runs > 0;
    task->runs = 0;
    if (tasks == NULL) task->state = RD_TASK_OVER;
    if (tasks == NULL || task->state == RD_TASK_RUNNING) return would;
    leave(task);
    end(task);
    settle(tasks);
    return true;
}

/* ---- on its threads ---- */

static rd_task *first_of(const rd_list *list) {
    return rd_list_is_empty(list) ? NULL : RD_CONTAINER(list->next, rd_task, node);
}

rd_task *rd_tasks_take(rd_tasks *tasks, bool is_idle, uint64_t now_ns) {
    if (tasks->running >= tasks->seats) return NULL;
    rd_task *task = first_of(&tasks->waiting);
    if (task == NULL && is_idle) task = first_of(&tasks->idle);
    if (task == NULL) return NULL;
    leave(task);
    enter(task, RD_TASK_RUNNING, NULL);
    if (task->runs != RD_TASK_FOR_EVER) task->runs--;
    task->due_ns = now_ns + task->interval_ns;
    tasks->running++;
    tasks->begun++;
    settle(tasks);
    return task;
}

bool rd_tasks_give_back(rd_tasks *tasks, rd_task *task, uint64_t now_ns) {
    const bool goes_on = task->runs > 0 && tasks->phase == RD_TASKS_OPEN;
    tasks->running--;
    if (!goes_on) {
        end(task);
    } else if (task->due_ns > now_ns) {
        set_timer(task, task->due_ns);
    } else {
        wait_since(task, task->due_ns);
    }
    settle(tasks);
    return goes_on;
}

/* ---- the beginning and the end ---- */

void rd_tasks_init(rd_tasks *tasks, rd_loop *loop, uint32_t seats) {
    rd_list_init(&tasks->waiting);
    rd_list_init(&tasks->idle);
    rd_list_init(&tasks->timed);
    tasks->timers = (rd_app_timers){.loop = loop, .limit = UINT32_MAX};
    tasks->seats = seats;
}

static void end_all(rd_list *list) {
    for (rd_task *task; (task = first_of(list)) != NULL;) {
        leave(task);
        end(task);
    }
}

void rd_tasks_drain(rd_tasks *tasks) {
    if (tasks->phase != RD_TASKS_OPEN) return;
    tasks->phase = RD_TASKS_DRAINING;
    end_all(&tasks->timed);
    for (rd_task *task; (task = first_of(&tasks->idle)) != NULL;) {
        leave(task);
        wait_since(task, task->due_ns);
    }
    settle(tasks);
}

void rd_tasks_end(rd_tasks *tasks) {
    rd_tasks_drain(tasks);
    tasks->phase = RD_TASKS_ENDED;
    tasks->dropped += tasks->waiting_len;
    end_all(&tasks->waiting);
    settle(tasks);
}
