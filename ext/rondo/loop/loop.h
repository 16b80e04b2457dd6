/* SPDX-License-Identifier: MIT
 *
 * The loop: poller, timer wheel, disposals, the shared receive buffer, the wake-up and the loop
 * lock. A thread must hold the loop lock to read or change what changes in a server.
 *
 * Two rules prevent deadlocks, and debug builds assert what they can of them: while holding the
 * lock, never call into the application, and never wait for the application's own lock (the GVL).
 * rd_loop_wakeup(), rd_loop_interrupt() and rd_loop_post() may be called without the lock.
 */
#ifndef RD_LOOP_LOOP_H
#define RD_LOOP_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "loop/poller.h"
#include "loop/timer.h"

#define RD_LOOP_READY_MAX     256
#define RD_LOOP_RECEIVE_BYTES 65536

/* Something that is freed at the end of the turn in which it was closed. */
typedef struct rd_disposal {
    rd_list node;
    void (*free)(struct rd_disposal *disposal);
} rd_disposal;

/* Something that another thread has done. run() is called under the lock. */
typedef struct rd_posted {
    rd_list node;
    void (*run)(struct rd_posted *posted);
} rd_posted;

/* Somebody with sources that are reported once: RD_ONCE. */
typedef struct rd_once {
    rd_list node;
    /* A set that may have had them was dropped. Under the lock. */
    void (*on_dropped)(struct rd_once *once);
} rd_once;

/* What one wait found. Its sources are valid until another set is processed. */
typedef struct rd_ready_set {
    int count;
    rd_ready ready[RD_LOOP_READY_MAX];
} rd_ready_set;

typedef struct rd_loop {
    const rd_poller_ops *ops;
    rd_poller *poller;
    rd_timer_wheel timers;
    uint64_t now_ns, now_ms; /* monotonic, taken once a turn */
    uint64_t sleep_until_ms; /* until when the thread in wait() sleeps */
    rd_list disposals;
    rd_list onces; /* of rd_once */
    pthread_mutex_t lock;
    pthread_t lock_owner; /* meaningful while lock_held */
    bool lock_held;
    atomic_bool sleeping; /* a thread sleeps in wait() and must be woken */
    rd_source wakeup;
    int wakes; /* the descriptor to write to; that of the source, or the other end of a pipe */
    pthread_mutex_t posted_lock;
    rd_list posted;
    struct rd_disk *disk; /* created for the first job; see disk.h */
    int ready_count;      /* how many were ready in this turn */
    uint32_t turns;
    char receive[RD_LOOP_RECEIVE_BYTES];
} rd_loop;

/* Returns 0, or -1 with errno set. */
int rd_loop_init(rd_loop *loop, bool poll_only);

/* If jobs for disks were handed over, call rd_disk_stop() first. */
void rd_loop_clear(rd_loop *loop);

/* In a forked child: closes its descriptors, and leaves the poller to the parent, which has the
 * same one. */
void rd_loop_abandon(rd_loop *loop);

void rd_loop_lock(rd_loop *loop);
void rd_loop_unlock(rd_loop *loop);
void rd_loop_assert_locked(const rd_loop *loop);

/* Makes a sleeping rd_loop_wait() return. Cheap when no thread sleeps. Any thread, with or without
 * the lock. */
void rd_loop_wakeup(rd_loop *loop);

/* Makes the next wait return, in any thread. Any thread. */
void rd_loop_interrupt(rd_loop *loop);

/* Calls posted->run() under the lock in the next turn, in the order of the posts. Any thread. */
void rd_loop_post(rd_loop *loop, rd_posted *posted);

/* Runs everything posted so far. Locked; each turn does this. */
void rd_loop_run_posted(rd_loop *loop);

/* How long a wait may sleep, in microseconds: until the next timer. -1 when there is no timer. */
int64_t rd_loop_timeout(rd_loop *loop);

/* Waits for ready sources, without the lock. Returns how many it found. */
int rd_loop_wait(rd_loop *loop, rd_ready_set *found, int64_t timeout_us);

/* Calls on_ready of the sources that wait() found, then the timers, then frees what was closed.
 * Locked, and by one owner of the loop at a time: no other thread may hold a set that is still to
 * be processed. */
void rd_loop_process(rd_loop *loop, rd_ready_set *found);

/* In place of that, because another thread has processed a set since this wait began: its sources
 * may be gone. The poller reports again what is still ready, except what is reported once; its
 * owners hear of it. Locked. */
void rd_loop_drop(rd_loop *loop, rd_ready_set *found);

/* Reads the clock again, for a thread that uses the loop while another sleeps in it. Locked. */
void rd_loop_refresh(rd_loop *loop);

/* Register a source, change its interest, remove it. The first two return 0, or -1 with errno
 * set. */
int rd_loop_add(rd_loop *loop, rd_source *source, unsigned interest);
int rd_loop_set_interest(rd_loop *loop, rd_source *source, unsigned interest);
void rd_loop_remove(rd_loop *loop, rd_source *source);

/* Calls `closing->free` at the end of the turn. */
void rd_loop_free_later(rd_loop *loop, rd_disposal *disposal);

#endif
