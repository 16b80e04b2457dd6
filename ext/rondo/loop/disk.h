/* SPDX-License-Identifier: MIT
 *
 * Threads for calls that may wait for a disk: write(2), open(2), read(2) and close(2) of files. The
 * loop never makes such a call itself, nor one that waits for a name server (listen/lookup.h) or
 * for a path (listen/path_call.h). It hands over a job; a thread runs the job without any lock, and
 * the loop calls done() under its lock in a later turn:
 *
 *   rd_disk_do() ──▶ lane of the volume ──▶ run(), on a thread ──▶ rd_loop_post() ──▶ done()
 *
 * A lane has one volume at a time (a device, or a purpose of its own) and at most two threads. A
 * volume that does not answer holds up its own lane and no other. Threads start when jobs wait for
 * them, so a process without such jobs has none. A forked child has none either and needs none.
 * Threads stay until rd_disk_stop().
 *
 * Nothing is refused here: a caller that adds jobs faster than the disk takes them must limit
 * itself.
 */
#ifndef RD_LOOP_DISK_H
#define RD_LOOP_DISK_H

#include "loop/loop.h"

typedef struct rd_disk rd_disk;

#define RD_DISK_LANES   6
#define RD_DISK_THREADS 2 /* of a lane */

/* Volumes that are not devices; devices are identified by their st_dev. */
enum { RD_DISK_BODIES = 1, RD_DISK_FOLDER = 2, RD_DISK_NAMES = 3, RD_DISK_PATHS = 4 };

typedef struct rd_disk_job {
    rd_posted posted; /* its node also links the job in its lane */
    /* Runs on a thread, without a lock. */
    void (*run)(struct rd_disk_job *job);
    /* Runs later, under the lock; may free the job or hand it over again. NULL: `run` frees the
     * job. */
    void (*done)(struct rd_disk_job *job);
    bool needs_thread; /* run() may take too long for any other: without one, only done() comes */
} rd_disk_job;

/* Hands a job over. The job is not the caller's until done(). Under the lock. When no thread can be
 * started, the caller runs the job itself, unless it needs a thread; done() comes later in this
 * case, too. */
void rd_disk_do(rd_loop *loop, rd_disk_job *job, uint64_t volume);

/* Whether jobs have run without a thread since the last call. Under the lock. */
bool rd_disk_take_failure(rd_loop *loop);

/* Waits until no job is queued or running and their done() calls are posted. For tests. */
void rd_disk_wait_idle(rd_loop *loop);

/* Waits up to a second for all jobs, calls their done(), and ends the threads. Returns false when a
 * disk does not answer: the threads that wait for it are left behind with their jobs. Call it
 * without the lock, and when no other thread uses the loop any more. */
bool rd_disk_stop(rd_loop *loop);

#endif
