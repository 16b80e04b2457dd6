/* SPDX-License-Identifier: MIT
 *
 * The jobs of loop/disk.h in tests that run no turns: finished at a word, or held up before they
 * begin, as by a disk that does not answer.
 */
#ifndef DISK_JOBS_H
#define DISK_JOBS_H

#include <semaphore.h>

#include "loop/disk.h"

/* Waits until no job is left, and reports the finished ones. Without the lock. */
__attribute__((unused)) static void finish_jobs(rd_loop *loop) {
    for (bool more = true; more;) {
        rd_disk_wait_idle(loop);
        rd_loop_lock(loop);
        more = !rd_list_is_empty(&loop->posted);
        rd_loop_run_posted(loop);
        rd_loop_unlock(loop);
    }
}

/* ---- a disk that does not answer ---- */

static bool jobs_are_held;
static sem_t held_begun, held_over;
static rd_disk_job held_jobs[RD_DISK_THREADS];

static void run_held(rd_disk_job *job) {
    (void)job;
    sem_post(&held_begun);
    while (sem_wait(&held_over) != 0) {
    }
}

static void held_done(rd_disk_job *job) {
    (void)job;
}

/* All threads for this volume are busy from now on. Without the lock. */
__attribute__((unused)) static void hold_volume(rd_loop *loop, uint64_t volume) {
    jobs_are_held = true;
    sem_init(&held_begun, 0, 0);
    sem_init(&held_over, 0, 0);
    rd_loop_lock(loop);
    for (int i = 0; i < RD_DISK_THREADS; i++) {
        held_jobs[i] = (rd_disk_job){.run = run_held, .done = held_done};
        rd_disk_do(loop, &held_jobs[i], volume);
    }
    rd_loop_unlock(loop);
    for (int i = 0; i < RD_DISK_THREADS; i++) sem_wait(&held_begun);
}

__attribute__((unused)) static void hold_jobs(rd_loop *loop) {
    hold_volume(loop, RD_DISK_BODIES);
}

__attribute__((unused)) static void release_jobs(rd_loop *loop) {
    for (int i = 0; i < RD_DISK_THREADS; i++) sem_post(&held_over);
    rd_disk_wait_idle(loop);
    jobs_are_held = false;
}

#endif
