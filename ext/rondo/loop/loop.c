/* SPDX-License-Identifier: MIT
 *
 * The loop's phases and its lock; see loop.h.
 */
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "system/clock.h"
#include "system/fd.h"
#include "system/platform.h"

#ifdef RD_LINUX
#include <sys/eventfd.h>
#endif

static void on_wakeup(rd_source *source, unsigned ready) {
    (void)ready;
    uint64_t count[8];
    while (read(source->fd, count, sizeof(count)) == (ssize_t)sizeof(count)) { /* a pipe is full */
    }
    rd_loop_run_posted(RD_CONTAINER(source, rd_loop, wakeup));
}

void rd_loop_post(rd_loop *loop, rd_posted *posted) {
    pthread_mutex_lock(&loop->posted_lock);
    const bool is_first = rd_list_is_empty(&loop->posted);
    rd_list_append(&loop->posted, &posted->node);
    pthread_mutex_unlock(&loop->posted_lock);
    if (is_first) rd_loop_interrupt(loop);
}

void rd_loop_run_posted(rd_loop *loop) {
    rd_list all;
    pthread_mutex_lock(&loop->posted_lock);
    rd_list_take(&all, &loop->posted);
    pthread_mutex_unlock(&loop->posted_lock);
    for (rd_list *node; (node = rd_list_shift(&all)) != NULL;) {
        rd_posted *posted = RD_CONTAINER(node, rd_posted, node);
        posted->run(posted);
    }
}

void rd_loop_refresh(rd_loop *loop) {
    loop->now_ns = rd_clock_ns();
    loop->now_ms = loop->now_ns / 1000000;
}

/* One descriptor for both ends if the system has such a thing, else a pipe. */
static int open_ends(int ends[2]) {
#ifdef RD_LINUX
    ends[0] = ends[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return ends[0] < 0 ? -1 : 0;
#else
    if (pipe(ends) != 0) return -1;
    if (rd_fd_prepare(ends[0], false) == 0 && rd_fd_prepare(ends[1], false) == 0) return 0;
    rd_close_keeping_errno(ends[0]);
    rd_close_keeping_errno(ends[1]);
    return -1;
#endif
}

static int open_wakeup(rd_loop *loop) {
    int ends[2] = {-1, -1};
    const int result = open_ends(ends);
    loop->wakeup = (rd_source){.fd = result == 0 ? ends[0] : -1, .on_ready = on_wakeup};
    loop->wakes = ends[1];
    return result == 0 ? rd_loop_add(loop, &loop->wakeup, RD_READABLE) : -1;
}

int rd_loop_init(rd_loop *loop, bool poll_only) {
    loop->ops = rd_poller_choose(poll_only);
    loop->poller = loop->ops->open();
    if (loop->poller == NULL) return -1;
    rd_loop_refresh(loop);
    rd_timer_wheel_init(&loop->timers, loop->now_ms);
    rd_list_init(&loop->disposals);
    rd_list_init(&loop->onces);
    pthread_mutex_init(&loop->lock, NULL);
    pthread_mutex_init(&loop->posted_lock, NULL);
    rd_list_init(&loop->posted);
    loop->disk = NULL;
    loop->lock_held = false;
    atomic_init(&loop->sleeping, false);
    loop->turns = 0;
    loop->ready_count = 0;
    if (open_wakeup(loop) == 0) return 0;
    const int code = errno;
    rd_loop_abandon(loop);
    errno = code;
    return -1;
}

static void free_closed(rd_loop *loop) {
    for (rd_list *node; (node = rd_list_shift(&loop->disposals)) != NULL;) {
        rd_disposal *disposal = RD_CONTAINER(node, rd_disposal, node);
        disposal->free(disposal);
    }
}

void rd_loop_clear(rd_loop *loop) {
    assert(loop->disk == NULL);
    free_closed(loop);
    rd_loop_remove(loop, &loop->wakeup);
    rd_loop_abandon(loop);
    pthread_mutex_destroy(&loop->lock);
    pthread_mutex_destroy(&loop->posted_lock);
}

void rd_loop_abandon(rd_loop *loop) {
    if (loop->wakeup.fd >= 0 && loop->wakes != loop->wakeup.fd) close(loop->wakes);
    if (loop->wakeup.fd >= 0) close(loop->wakeup.fd);
    loop->ops->close(loop->poller);
}

/* Who holds the lock is written down for the assertions only: it is fifteen instructions for each
 * request. */
static void note_holder(rd_loop *loop, bool held) {
#ifndef NDEBUG
    if (held) loop->lock_owner = pthread_self();
    loop->lock_held = held;
#endif
    (void)loop;
    (void)held;
}

void rd_loop_lock(rd_loop *loop) {
    pthread_mutex_lock(&loop->lock);
    note_holder(loop, true);
}

void rd_loop_unlock(rd_loop *loop) {
    note_holder(loop, false);
    pthread_mutex_unlock(&loop->lock);
}

void rd_loop_assert_locked(const rd_loop *loop) {
    assert(loop->lock_held && pthread_equal(loop->lock_owner, pthread_self()));
    (void)loop;
}

void rd_loop_wakeup(rd_loop *loop) {
    if (!atomic_load(&loop->sleeping)) return;
    if (atomic_exchange(&loop->sleeping, false)) rd_loop_interrupt(loop);
}

void rd_loop_interrupt(rd_loop *loop) {
    uint64_t one = 1;
    ssize_t written = write(loop->wakes, &one, sizeof(one));
    (void)written; /* when the counter or the pipe is full, the sleeper wakes anyway */
}

int64_t rd_loop_timeout(rd_loop *loop) {
    uint64_t next = rd_timer_next(&loop->timers);
    loop->sleep_until_ms = next;
    if (next == UINT64_MAX) return -1;
    uint64_t now = rd_clock_ms();
    return next > now ? (int64_t)(next - now) * 1000 : 0;
}

int rd_loop_wait(rd_loop *loop, rd_ready_set *found, int64_t timeout_us) {
    found->count = loop->ops->wait(loop->poller, found->ready, RD_LOOP_READY_MAX, timeout_us);
    return found->count;
}

void rd_loop_process(rd_loop *loop, rd_ready_set *found) {
    rd_loop_assert_locked(loop);
    rd_loop_refresh(loop);
    int count = found->count;
    found->count = 0;
    loop->ready_count = count;
    /* Starts at another place each turn. The poller tends to repeat its order: a connection that is
     * always first is answered first, asks again first, and gets more than its share. */
    int at = count > 0 ? (int)(loop->turns++ % (uint32_t)count) : 0;
    for (int left = count; left > 0; left--) {
        rd_ready *ready = &found->ready[at];
        if (ready->source->registered) ready->source->on_ready(ready->source, ready->ready);
        if (++at == count) at = 0;
    }
    rd_timer_advance(&loop->timers, loop->now_ms);
    free_closed(loop);
}

void rd_loop_drop(rd_loop *loop, rd_ready_set *found) {
    rd_loop_assert_locked(loop);
    const bool had_some = found->count > 0;
    found->count = 0;
    if (!had_some) return;
    for (rd_list *node = loop->onces.next; node != &loop->onces; node = node->next) {
        rd_once *once = RD_CONTAINER(node, rd_once, node);
        once->on_dropped(once);
    }
}

int rd_loop_add(rd_loop *loop, rd_source *source, unsigned interest) {
    source->interest = (uint8_t)interest;
    if (loop->ops->add(loop->poller, source) != 0) return -1;
    source->registered = 1;
    return 0;
}

int rd_loop_set_interest(rd_loop *loop, rd_source *source, unsigned interest) {
    if (!source->registered || source->interest == interest) return 0;
    source->interest = (uint8_t)interest;
    return loop->ops->modify(loop->poller, source);
}

void rd_loop_remove(rd_loop *loop, rd_source *source) {
    if (!source->registered) return;
    source->registered = 0;
    loop->ops->remove(loop->poller, source);
}

void rd_loop_free_later(rd_loop *loop, rd_disposal *disposal) {
    rd_list_append(&loop->disposals, &disposal->node);
}
