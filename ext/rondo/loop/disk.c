/* SPDX-License-Identifier: MIT
 *
 * Lanes, their threads, and their end; see disk.h. The lock of this file is held for a few
 * instructions only, never during a call that may block.
 */
#include "loop/disk.h"

#include <time.h>

#include "base/alloc.h"
#include "system/condition.h"
#include "system/thread_start.h"

#define PATIENCE_S 1

typedef struct rd_disk_lane {
    uint64_t volume;
    rd_list jobs;
    pthread_cond_t has_jobs;
    uint32_t queued, running;
    uint32_t threads, idle;
} rd_disk_lane;

struct rd_disk {
    rd_loop *loop; /* not used after `left_behind` is set */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* signalled when no job is left, or a thread has ended */
    rd_disk_lane lanes[RD_DISK_LANES];
    uint32_t unfinished; /* jobs, queued and running */
    uint32_t refs;       /* one of the loop, one of each thread */
    bool failed;
    bool over;
    bool left_behind;
};

/* The argument of a new thread. */
typedef struct rd_disk_start {
    rd_disk *disk;
    rd_disk_lane *lane;
} rd_disk_start;

/* ---- the threads ---- */

/* Unlocks, too. */
static void unref(rd_disk *disk) {
    const bool is_last = --disk->refs == 0;
    pthread_cond_broadcast(&disk->changed);
    pthread_mutex_unlock(&disk->lock);
    if (!is_last) return;
    for (int i = 0; i < RD_DISK_LANES; i++) pthread_cond_destroy(&disk->lanes[i].has_jobs);
    pthread_cond_destroy(&disk->changed);
    pthread_mutex_destroy(&disk->lock);
    rd_free(disk);
}

static void report_done(rd_posted *posted) {
    rd_disk_job *job = RD_CONTAINER(posted, rd_disk_job, posted);
    job->done(job);
}

/* A job without done() frees itself in run(). */
static bool run_job(rd_disk_job *job) {
    const bool reports = job->done != NULL;
    job->run(job);
    return reports;
}

static void run_next(rd_disk *disk, rd_disk_lane *lane) {
    rd_list *node = rd_list_shift(&lane->jobs);
    rd_disk_job *job = RD_CONTAINER(node, rd_disk_job, posted.node);
    lane->queued--;
    lane->running++;
    pthread_mutex_unlock(&disk->lock);
    const bool reports = run_job(job);
    pthread_mutex_lock(&disk->lock);
    if (reports && !disk->left_behind) rd_loop_post(disk->loop, &job->posted);
    lane->running--;
    if (--disk->unfinished == 0) pthread_cond_broadcast(&disk->changed);
}

static void *run_lane(void *argument) {
    const rd_disk_start start = *(rd_disk_start *)argument;
    rd_disk *disk = start.disk;
    rd_disk_lane *lane = start.lane;
    rd_free(argument);
    pthread_mutex_lock(&disk->lock);
    while (!disk->left_behind) {
        if (lane->queued > 0) {
            run_next(disk, lane);
        } else if (disk->over) {
            break;
        } else {
            lane->idle++;
            pthread_cond_wait(&lane->has_jobs, &disk->lock);
            lane->idle--;
        }
    }
    lane->threads--;
    unref(disk);
    return NULL;
}

static bool start_thread(rd_disk *disk, rd_disk_lane *lane) {
    pthread_t thread;
    rd_disk_start *start = rd_alloc(sizeof(*start));
    *start = (rd_disk_start){disk, lane};
    if (rd_thread_start(&thread, run_lane, start) != 0) {
        rd_free(start);
        return false;
    }
    pthread_detach(thread);
    lane->threads++;
    disk->refs++;
    return true;
}

/* ---- jobs ---- */

static bool is_free(const rd_disk_lane *lane) {
    return lane->queued + lane->running == 0;
}

/* The lane of the volume, else one without work. With more busy volumes than lanes, volumes share
 * one. */
static rd_disk_lane *lane_of(rd_disk *disk, uint64_t volume) {
    rd_disk_lane *found = NULL;
    for (int i = 0; i < RD_DISK_LANES; i++) {
        rd_disk_lane *lane = &disk->lanes[i];
        if (lane->volume == volume) return lane;
        /* A lane that has threads already need not start any. */
        if (is_free(lane) && (found == NULL || lane->threads > found->threads)) found = lane;
    }
    if (found == NULL) return &disk->lanes[volume % RD_DISK_LANES];
    found->volume = volume;
    return found;
}

static rd_disk *disk_of(rd_loop *loop) {
    if (loop->disk != NULL) return loop->disk;
    rd_disk *disk = rd_alloc_zero(sizeof(*disk));
    disk->loop = loop;
    disk->refs = 1;
    pthread_mutex_init(&disk->lock, NULL);
    rd_condition_init(&disk->changed);
    for (int i = 0; i < RD_DISK_LANES; i++) {
        rd_list_init(&disk->lanes[i].jobs);
        pthread_cond_init(&disk->lanes[i].has_jobs, NULL);
    }
    loop->disk = disk;
    return disk;
}

/* Returns false when the lane has no thread and none can be started. */
static bool queue_job(rd_disk *disk, rd_disk_job *job, uint64_t volume) {
    rd_disk_lane *lane = lane_of(disk, volume);
    const bool wants_thread = lane->queued >= lane->idle && lane->threads < RD_DISK_THREADS;
    if (wants_thread && !start_thread(disk, lane) && lane->threads == 0) return false;
    rd_list_append(&lane->jobs, &job->posted.node);
    lane->queued++;
    disk->unfinished++;
    if (lane->idle > 0) pthread_cond_signal(&lane->has_jobs);
    return true;
}

void rd_disk_do(rd_loop *loop, rd_disk_job *job, uint64_t volume) {
    rd_disk *disk = disk_of(loop);
    rd_list_init(&job->posted.node);
    job->posted.run = report_done;
    pthread_mutex_lock(&disk->lock);
    const bool is_queued = !disk->over && queue_job(disk, job, volume);
    const bool is_lost = disk->left_behind; /* together with the threads that do not return */
    disk->failed |= !is_queued && !disk->over && !job->needs_thread; /* which says so itself */
    pthread_mutex_unlock(&disk->lock);
    if (is_queued || is_lost) return;
    if (job->needs_thread || run_job(job)) rd_loop_post(loop, &job->posted);
}

bool rd_disk_take_failure(rd_loop *loop) {
    rd_disk *disk = loop->disk;
    if (disk == NULL || !disk->failed) return false;
    disk->failed = false;
    return true;
}

/* ---- the end ---- */

void rd_disk_wait_idle(rd_loop *loop) {
    rd_disk *disk = loop->disk;
    if (disk == NULL) return;
    pthread_mutex_lock(&disk->lock);
    while (disk->unfinished > 0) pthread_cond_wait(&disk->changed, &disk->lock);
    pthread_mutex_unlock(&disk->lock);
}

/* Whether all threads have ended in time. */
static bool await_threads(rd_disk *disk) {
    struct timespec until; /* real time even in tests whose rd_clock_ns() stands still */
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    while (disk->refs > 1) {
        if (!rd_condition_wait_until(&disk->changed, &disk->lock, &until)) return false;
    }
    return true;
}

static bool has_posted(rd_loop *loop) {
    pthread_mutex_lock(&loop->posted_lock);
    const bool has = !rd_list_is_empty(&loop->posted);
    pthread_mutex_unlock(&loop->posted_lock);
    return has;
}

bool rd_disk_stop(rd_loop *loop) {
    rd_disk *disk = loop->disk;
    if (disk == NULL) return true;
    pthread_mutex_lock(&disk->lock);
    disk->over = true;
    for (int i = 0; i < RD_DISK_LANES; i++) pthread_cond_broadcast(&disk->lanes[i].has_jobs);
    const bool is_over = await_threads(disk);
    disk->left_behind = !is_over;
    pthread_mutex_unlock(&disk->lock);
    /* done() may hand over more jobs; these run on this thread. */
    rd_loop_lock(loop);
    while (has_posted(loop)) rd_loop_run_posted(loop);
    rd_loop_unlock(loop);
    pthread_mutex_lock(&disk->lock);
    loop->disk = NULL;
    unref(disk);
    return is_over;
}
