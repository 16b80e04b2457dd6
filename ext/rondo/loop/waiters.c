/* SPDX-License-Identifier: MIT
 *
 * From a descriptor to its waiters, with one source in the poller for all of them; see waiters.h.
 */
#include "loop/waiters.h"

#include <assert.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/alloc.h"

#define GROWS_BY      64
#define AGAIN_IN_TURN 256 /* numbers of descriptors */

/* A descriptor that has waiters. */
typedef struct rd_waited {
    rd_source source;
    dev_t device; /* and inode: which file it is */
    ino_t inode;
    rd_list waiting;
    rd_fd_waiters *waiters;
    rd_disposal closing;
} rd_waited;

void rd_waiter_init(rd_fd_waiter *waiter, void (*on_ready)(rd_fd_waiter *waiter, int ready)) {
    *waiter = (rd_fd_waiter){.fd = -1, .on_ready = on_ready};
    rd_list_init(&waiter->node);
}

/* ---- the table ---- */

static rd_waited *find(const rd_fd_waiters *waiters, int fd) {
    return fd >= 0 && fd < waiters->size ? waiters->by_fd[fd] : NULL;
}

static void make_room(rd_fd_waiters *waiters, int fd) {
    const size_t before = (size_t)waiters->size, size = ((size_t)fd / GROWS_BY + 1) * GROWS_BY;
    if (size <= before) return;
    waiters->by_fd = rd_realloc(waiters->by_fd, size * sizeof(void *));
    for (size_t next = before; next < size; next++) waiters->by_fd[next] = NULL;
    waiters->size = (int)size;
}

static void free_waited(rd_disposal *disposal) {
    rd_free(RD_CONTAINER(disposal, rd_waited, closing));
}

/* Whether the number still names the file that was waited for. If that file was closed without
 * notice, the number may now belong to a connection of the loop, whose source must not be
 * touched. */
static bool is_same_file(const rd_waited *waited) {
    struct stat info;
    return fstat(waited->source.fd, &info) == 0 && info.st_dev == waited->device &&
           info.st_ino == waited->inode;
}

/* Removes the descriptor from the table and the poller. epoll reports by the address of the source.
 * If the descriptor was closed without notice, epoll keeps the source while a copy of the
 * descriptor is open, for instance in a forked child, and no number is left by which to remove it.
 * Such a source is kept until the end; as it is reported only once, it costs nothing but its
 * memory. */
static void forget(rd_waited *waited) {
    rd_fd_waiters *waiters = waited->waiters;
    rd_loop *loop = waiters->loop;
    waiters->by_fd[waited->source.fd] = NULL;
    waited->source.registered = 0;
    const bool has_name = !loop->ops->by_file || is_same_file(waited);
    if (has_name && loop->ops->remove(loop->poller, &waited->source) == 0) {
        rd_loop_free_later(loop, &waited->closing);
    } else {
        rd_list_append(&waiters->lost, &waited->closing.node);
    }
}

/* ---- waking ---- */

static void wake(rd_fd_waiters *waiters, rd_list *due, int ready) {
    for (rd_list *node; (node = rd_list_shift(due)) != NULL;) {
        rd_fd_waiter *waiter = RD_CONTAINER(node, rd_fd_waiter, node);
        waiters->count--;
        waiter->on_ready(waiter, ready < 0 ? ready : ready & (int)waiter->wanted);
    }
}

static void wake_all(rd_waited *waited, int code) {
    rd_list due;
    rd_list_take(&due, &waited->waiting);
    wake(waited->waiters, &due, code);
}

static int set_interest(rd_waited *waited, unsigned wanted) {
    rd_loop *loop = waited->waiters->loop;
    waited->source.interest = (uint8_t)(wanted | RD_ONCE);
    return loop->ops->modify(loop->poller, &waited->source);
}

/* Makes the poller look only for what is still wanted. If it cannot, the descriptor was closed
 * without notice, and the poller would never report it to the other waiters: they are woken. */
static void narrow(rd_waited *waited) {
    unsigned wanted = 0;
    for (rd_list *node = waited->waiting.next; node != &waited->waiting; node = node->next) {
        wanted |= RD_CONTAINER(node, rd_fd_waiter, node)->wanted;
    }
    if (wanted == 0) {
        forget(waited);
    } else if (!is_same_file(waited) || set_interest(waited, wanted) != 0) {
        forget(waited);
        wake_all(waited, -EBADF);
    }
}

/* Callbacks may do anything. So waiters that are due are in a list of their own, from which they
 * can be removed as from any other. */
static void on_ready(rd_source *source, unsigned ready) {
    rd_waited *waited = RD_CONTAINER(source, rd_waited, source);
    rd_list due;
    rd_list_init(&due);
    for (rd_list *node = waited->waiting.next, *next; node != &waited->waiting; node = next) {
        next = node->next;
        if ((RD_CONTAINER(node, rd_fd_waiter, node)->wanted & ready) == 0) continue;
        rd_list_unlink(node);
        rd_list_append(&due, node);
    }
    wake(waited->waiters, &due, (int)ready);
    if (source->registered) narrow(waited);
}

/* ---- reports that were dropped ---- */

/* Which ones is not known: a dropped set has sources that may be gone. So all are armed again, and
 * those that were not reported stay as they are. */
static void arm_some(rd_fd_waiters *waiters) {
    for (int left = AGAIN_IN_TURN; left > 0 && waiters->next < waiters->size; left--) {
        rd_waited *waited = waiters->by_fd[waiters->next++];
        if (waited != NULL) narrow(waited);
    }
    if (waiters->next >= waiters->size) return;
    rd_timer_set(&waiters->loop->timers, &waiters->again, waiters->loop->now_ms);
}

static void on_again(rd_timer *timer) {
    arm_some(RD_CONTAINER(timer, rd_fd_waiters, again));
}

static void on_dropped(rd_once *once) {
    rd_fd_waiters *waiters = RD_CONTAINER(once, rd_fd_waiters, once);
    if (rd_timer_is_armed(&waiters->again)) rd_timer_cancel(&waiters->again);
    waiters->next = 0;
    arm_some(waiters);
}

void rd_waiters_init(rd_fd_waiters *waiters, rd_loop *loop, uint32_t limit) {
    *waiters = (rd_fd_waiters){.loop = loop, .limit = limit};
    rd_list_init(&waiters->lost);
    rd_timer_init(&waiters->again, on_again);
    waiters->once.on_dropped = on_dropped;
    rd_list_append(&loop->onces, &waiters->once.node);
}

/* ---- waiting ---- */

/* Returns NULL with errno on failure. */
static rd_waited *begin(rd_fd_waiters *waiters, int fd, unsigned wanted) {
    struct stat info;
    if (fstat(fd, &info) != 0) return NULL;
    rd_waited *waited = rd_alloc_zero(sizeof(*waited));
    waited->source = (rd_source){.fd = fd, .on_ready = on_ready};
    waited->device = info.st_dev;
    waited->inode = info.st_ino;
    waited->waiters = waiters;
    waited->closing.free = free_waited;
    rd_list_init(&waited->waiting);
    if (rd_loop_add(waiters->loop, &waited->source, wanted | RD_ONCE) != 0) {
        const int code = errno;
        rd_free(waited);
        errno = code;
        return NULL;
    }
    make_room(waiters, fd);
    return waiters->by_fd[fd] = waited;
}

/* Returns false when the others wait for another file that had this number. */
static bool widen(rd_waited *waited, unsigned wanted) {
    return is_same_file(waited) && set_interest(waited, waited->source.interest | wanted) == 0;
}

static int wait_for(rd_fd_waiters *waiters, rd_waited *waited, rd_fd_waiter *waiter) {
    if (waited == NULL) waited = begin(waiters, waiter->fd, waiter->wanted);
    if (waited == NULL) return errno == EPERM ? 1 : -1;
    rd_list_append(&waited->waiting, &waiter->node);
    waiters->count++;
    return 0;
}

int rd_waiters_add(rd_fd_waiters *waiters, rd_fd_waiter *waiter, int fd, unsigned wanted) {
    assert(!rd_waiter_waits(waiter) && wanted != 0);
    rd_waited *waited = find(waiters, fd), *gone = NULL;
    if (fd < 0 || waiters->count >= waiters->limit) {
        errno = fd < 0 ? EBADF : ENOBUFS;
        return -1;
    }
    waiter->fd = fd;
    waiter->wanted = wanted;
    if (waited != NULL && !widen(waited, wanted)) {
        forget(gone = waited);
        waited = NULL;
    }
    const int result = wait_for(waiters, waited, waiter), code = errno;
    if (gone != NULL) wake_all(gone, -EBADF);
    errno = code;
    return result;
}

void rd_waiters_remove(rd_fd_waiters *waiters, rd_fd_waiter *waiter) {
    if (!rd_waiter_waits(waiter)) return;
    rd_list_unlink(&waiter->node);
    waiters->count--;
    rd_waited *waited = find(waiters, waiter->fd);
    if (waited != NULL) narrow(waited);
}

static void end(rd_fd_waiters *waiters, int fd, int code) {
    rd_waited *waited = find(waiters, fd);
    if (waited == NULL) return;
    forget(waited);
    wake_all(waited, code);
}

void rd_waiters_close(rd_fd_waiters *waiters, int fd) {
    end(waiters, fd, -EBADF);
}

void rd_waiters_clear(rd_fd_waiters *waiters) {
    waiters->limit = 0; /* woken waiters cannot wait again */
    for (int fd = 0; fd < waiters->size; fd++) end(waiters, fd, -ECANCELED);
    for (rd_list *node; (node = rd_list_shift(&waiters->lost)) != NULL;) {
        free_waited(RD_CONTAINER(node, rd_disposal, node));
    }
    if (rd_timer_is_armed(&waiters->again)) rd_timer_cancel(&waiters->again);
    rd_list_unlink(&waiters->once.node);
    rd_free(waiters->by_fd);
    waiters->by_fd = NULL;
    waiters->size = 0;
}
