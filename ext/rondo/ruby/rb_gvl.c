/* SPDX-License-Identifier: MIT
 *
 * Waiting without the GVL; see rb_gvl.h. All calls that are made often use RUBY_UBF_IO: up to Ruby
 * 3.2 any other ubf costs 25 us a call.
 */
#include "ruby/rb_gvl.h"

#include <errno.h>
#include <ruby/debug.h>
#include <ruby/thread.h>
#include <time.h>

#include "system/clock.h"

typedef struct rd_poll_wait {
    rd_server *server;
    int64_t timeout_us;
} rd_poll_wait;

static void *wait_nogvl(void *argument) {
    rd_poll_wait *wait = argument;
    rd_server *server = wait->server;
    rd_loop_wait(&server->loop, &server->lead.found, wait->timeout_us);
    server->lead.awake_ns = rd_clock_ns();
    atomic_store(&server->lead.phase, RD_PHASE_AWAKE);
    rd_watch_begin(&server->watch);
    return NULL;
}

void rd_gvl_wait(rd_server *server, int64_t timeout_us) {
    rd_poll_wait wait = {server, timeout_us};
    if (timeout_us == 0) {
        wait_nogvl(&wait);
    } else {
        rb_thread_call_without_gvl2(wait_nogvl, &wait, RUBY_UBF_IO, NULL);
    }
}

void rd_gvl_check_interrupts(void) {
    rb_thread_check_ints();
}

static VALUE check_interrupts(VALUE unused) {
    rb_thread_check_ints();
    return unused;
}

int rd_gvl_protected_interrupts(void) {
    int state = 0;
    rb_protect(check_interrupts, Qnil, &state);
    return state;
}

typedef struct rd_semaphore_wait_call {
    rd_semaphore *semaphore;
    int64_t timeout_ns;
    bool posted;
} rd_semaphore_wait_call;

static void *semaphore_nogvl(void *argument) {
    rd_semaphore_wait_call *wait = argument;
    wait->posted = rd_semaphore_wait(wait->semaphore, wait->timeout_ns);
    return NULL;
}

bool rd_gvl_wait_semaphore(rd_semaphore *semaphore, int64_t timeout_ns) {
    rd_semaphore_wait_call wait = {semaphore, timeout_ns, false};
    rb_thread_call_without_gvl2(semaphore_nogvl, &wait, RUBY_UBF_IO, NULL);
    return wait.posted;
}

typedef struct rd_gvl_task {
    void (*run_nogvl)(void *argument);
    void *argument;
    bool done;
} rd_gvl_task;

static void *task_nogvl(void *argument) {
    rd_gvl_task *task = argument;
    task->run_nogvl(task->argument);
    task->done = true;
    return NULL;
}

bool rd_gvl_try(void (*run_nogvl)(void *argument), void *argument) {
    rd_gvl_task task = {run_nogvl, argument, false};
    rb_thread_call_without_gvl2(task_nogvl, &task, RUBY_UBF_IO, NULL);
    return task.done;
}

void rd_gvl_run(void (*run_nogvl)(void *argument), void *argument) {
    while (!rd_gvl_try(run_nogvl, argument)) {
        rb_thread_check_ints();
    }
}

void rd_gvl_run_until_stopped(void (*run_nogvl)(void *argument), void (*stop_nogvl)(void *argument),
                              void *argument) {
    rd_gvl_task task = {run_nogvl, argument, false};
    rb_thread_call_without_gvl(task_nogvl, &task, stop_nogvl, argument);
}

/* ---- giving way ---- */

/* Up to Ruby 3.2 a thread that releases the GVL may get it before those who wait. */
#define AWAY_NS 50000

static void *away_nogvl(void *unused) {
    nanosleep(&(struct timespec){.tv_nsec = AWAY_NS}, NULL);
    return unused;
}

/* Ruby drops what a postponed job raises. So this does not check interrupts, as
 * rb_thread_schedule() does: an exception that another thread has raised in this one would be lost.
 */
static void give_way(void *unused) {
    const int code = errno;
    (void)unused;
    rb_thread_call_without_gvl2(away_nogvl, NULL, RUBY_UBF_IO, NULL);
    errno = code;
}

#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
static rb_postponed_job_handle_t way;

bool rd_gvl_can_call_for_way(void) {
    way = rb_postponed_job_preregister(0, give_way, NULL);
    return way != POSTPONED_JOB_HANDLE_INVALID;
}

void rd_gvl_call_for_way(void) {
    rb_postponed_job_trigger(way);
}
#else
bool rd_gvl_can_call_for_way(void) {
    return true;
}

void rd_gvl_call_for_way(void) {
    rb_postponed_job_register_one(0, give_way, NULL);
}
#endif
