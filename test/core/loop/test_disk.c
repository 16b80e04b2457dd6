/* SPDX-License-Identifier: MIT
 *
 * Jobs for threads that may wait for a disk, against loop/disk.h: told under the lock, in order of
 * their ends; a volume that does not answer is nobody else's wait; the end, with and without it.
 */
#include <errno.h>

#include "system/thread_start.h"
#include "check.h"
#include "disk_jobs.h"

#define MANY 200

static rd_loop loop;
static struct {
    rd_disk_job job;
    unsigned ran, told;
    pthread_t thread;
} jobs[MANY];
static unsigned frees;

static void run(rd_disk_job *job) {
    for (int i = 0; i < MANY; i++) {
        if (&jobs[i].job != job) continue;
        jobs[i].ran++;
        jobs[i].thread = pthread_self();
    }
}

static void done(rd_disk_job *job) {
    rd_loop_assert_locked(&loop);
    for (int i = 0; i < MANY; i++) jobs[i].told += &jobs[i].job == job;
}

static void hand_over(int i, uint64_t volume) {
    jobs[i].job = (rd_disk_job){.run = run, .done = done};
    jobs[i].ran = jobs[i].told = 0;
    rd_loop_lock(&loop);
    rd_disk_do(&loop, &jobs[i].job, volume);
    rd_loop_unlock(&loop);
}

/* Replaces system/thread_start.c, because the system may have no thread left. */
static bool has_threads = true;

int rd_thread_start(pthread_t *thread, void *(*begin)(void *), void *argument) {
    return has_threads ? pthread_create(thread, NULL, begin, argument) : EAGAIN;
}

static void test_jobs_run_elsewhere_and_are_told(void) {
    CHECK(loop.disk == NULL); /* without a job there is no thread */
    for (int i = 0; i < MANY; i++) hand_over(i, (uint64_t)i);
    finish_jobs(&loop);
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(jobs[i].ran, 1);
        CHECK_INT(jobs[i].told, 1);
        CHECK(!pthread_equal(jobs[i].thread, pthread_self()));
    }
    CHECK(!rd_disk_take_failure(&loop));
}

/* A turn reports the end of a job, and a sleeping turn is woken. */
static void test_a_turn_tells(void) {
    static rd_ready_set found;
    hand_over(0, 1);
    while (jobs[0].told == 0) {
        rd_loop_wait(&loop, &found, -1);
        rd_loop_lock(&loop);
        rd_loop_process(&loop, &found);
        rd_loop_unlock(&loop);
    }
    CHECK_INT(jobs[0].told, 1);
}

static void test_a_volume_that_does_not_answer(void) {
    hold_volume(&loop, 77);
    hand_over(0, 77);
    for (int i = 1; i < MANY; i++) hand_over(i, 1000 + (uint64_t)i % (RD_DISK_LANES - 1));
    for (int left = MANY - 1; left > 0;) {
        rd_loop_lock(&loop);
        rd_loop_run_posted(&loop);
        left = MANY - 1;
        for (int i = 1; i < MANY; i++) left -= (int)jobs[i].told;
        CHECK_INT(jobs[0].told, 0);
        rd_loop_unlock(&loop);
    }
    release_jobs(&loop);
    finish_jobs(&loop);
    CHECK_INT(jobs[0].told, 1);
}

/* The caller does the job itself. Its end is still reported later. */
static void test_without_threads(void) {
    has_threads = false;
    hand_over(0, 1);
    CHECK(pthread_equal(jobs[0].thread, pthread_self()));
    CHECK_INT(jobs[0].ran, 1);
    CHECK_INT(jobs[0].told, 0);
    CHECK(rd_disk_take_failure(&loop) && !rd_disk_take_failure(&loop));
    has_threads = true;
    hand_over(1, 1);
    finish_jobs(&loop);
    CHECK_INT(jobs[0].told, 1);
    CHECK(!pthread_equal(jobs[1].thread, pthread_self()));
    CHECK(!rd_disk_take_failure(&loop));
    rd_disk_stop(&loop);
}

static void free_itself(rd_disk_job *job) {
    (void)job;
    __atomic_add_fetch(&frees, 1, __ATOMIC_RELAXED);
}

/* A job that is started while the end is reported runs at once. */
static void done_with_more(rd_disk_job *job) {
    job->run = free_itself;
    job->done = NULL;
    rd_disk_do(&loop, job, 5);
}

static void test_the_end_finishes_what_was_begun(void) {
    rd_loop_lock(&loop);
    jobs[0].job = (rd_disk_job){.run = run, .done = done_with_more};
    rd_disk_do(&loop, &jobs[0].job, 5);
    rd_loop_unlock(&loop);
    hand_over(1, 6);
    frees = 0;
    rd_disk_stop(&loop);
    CHECK_INT(frees, 1);
    CHECK_INT(jobs[1].told, 1);
    CHECK(loop.disk == NULL);
}

/* The threads return after their loop is gone. */
static void test_the_end_leaves_a_stuck_disk_behind(void) {
    hold_volume(&loop, 8);
    hand_over(0, 8);
    rd_disk_stop(&loop);
    CHECK(loop.disk == NULL);
    CHECK_INT(jobs[0].told, 0);
    release_jobs(&loop); /* there is no loop to report to */
}

int main(void) {
    CHECK_INT(rd_loop_init(&loop, false), 0);
    test_jobs_run_elsewhere_and_are_told();
    test_a_turn_tells();
    test_a_volume_that_does_not_answer();
    test_the_end_finishes_what_was_begun();
    test_without_threads();
    test_the_end_leaves_a_stuck_disk_behind();
    rd_loop_clear(&loop);
    return check_summary();
}
