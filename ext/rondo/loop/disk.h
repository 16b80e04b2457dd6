/* SPDX-License-Identifier: MIT
 *
 * Threads for calls that may wait for a disk: write(2), open(2), read(2) and close(2) of files. The
 * loop never makes such a call itself. It hands over a job; a thread runs it without any lock, and
 * the loop is told under its lock in a later turn:
 *
 *   rd_disk_do() ──▶ lane of the volume ──▶ run(), on a thread ──▶ rd_loop_post() ──▶ done()
 *
 * A lane has one volume at a time (a device, or a purpose of its own) and at most two threads. A
 * volume that does not answer holds up its own lane and no other. Threads are started when jobs
 * wait for them, so a process without such jobs has none; a forked child has none either, and asks
 * for none. They stay until rd_disk_stop().
 *
 * A job that writes to a full queue is the caller's to hold back: nothing here is refused.
 */
#ifndef RD_LOOP_DISK_H
#define RD_LOOP_DISK_H

#include "loop/loop.h"

typedef struct rd_disk rd_disk;

#define RD_DISK_LANES   6
#define RD_DISK_THREADS 2 /* of a lane */

/* Volumes that are no devices; those are told by their st_dev. */
enum { RD_DISK_BODIES = 1, RD_DISK_FOLDER = 2 };

typedef struct rd_disk_job {
    rd_posted posted; /* its node is also the place in the lane */
    /* On a thread, without a lock. */
    void (*run)(struct rd_disk_job *job);
    /* Later, under the lock; may free the job or hand it over again. NULL: `run` has freed it. */
    void (*done)(struct rd_disk_job *job);
} rd_disk_job;

/* Hands a job over: it is not the caller's until done(). Under the lock. Where the system gives no
 * thread, the caller runs it itself; done() comes later all the same. */
void rd_disk_do(rd_loop *loop, rd_disk_job *job, uint64_t volume);

/* Whether jobs had to run without a thread since this was asked last. Under the lock. */
bool rd_disk_take_failure(rd_loop *loop);

/* Waits until no job is queued or running; what they have done is posted. For tests. */
void rd_disk_settle(rd_loop *loop);

/* Waits for all jobs, up to a second, tells what they have done, and ends the threads. Those that
 * wait for a disk that does not answer are left behind with their jobs: false. Without the lock;
 * nobody else uses the loop any more. */
bool rd_disk_stop(rd_loop *loop);

#endif
