/* SPDX-License-Identifier: MIT
 *
 * The poller by kqueue(2), for macOS and the BSDs, level-triggered like the others; see poller.h.
 *
 * kqueue has a filter for each direction and none for a hang-up, which epoll reports to everybody.
 * So a source that wants nothing keeps a filter that reports each change once (EV_CLEAR). The end
 * of a stream may be half of it or all of it: poll(2) knows which.
 *
 * The kernel forgets the filters of a number when the number is closed. The table says whose the
 * filters of a number are: it covers the sources that another owner of the number has replaced.
 */
#include "loop/poller.h"

#ifdef RD_HAS_KQUEUE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/event.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/clock.h"

#define EVENTS_MAX 256
#define GROWS_BY   64

/* Beside the address of the source: this filter is that of a quiet one. */
#define QUIET_BIT ((uintptr_t)1)

/* What is registered for a number. */
typedef enum rd_watched {
    WATCHED_READ = RD_READABLE,
    WATCHED_WRITE = RD_WRITABLE,
    WATCHED_QUIET = RD_HANGUP, /* only the end of the stream */
} rd_watched;

typedef struct rd_entry {
    rd_source *source;
    unsigned watched;
} rd_entry;

struct rd_poller {
    int fd;
    pid_t owner; /* a forked child does not inherit the queue: there the number is another file's */
    pthread_mutex_t lock;
    rd_entry *by_fd;
    int size;
};

static rd_poller *kqueue_open(void) {
    const int fd = kqueue();
    if (fd < 0) return NULL;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    rd_poller *poller = rd_alloc_zero(sizeof(*poller));
    poller->fd = fd;
    poller->owner = getpid();
    pthread_mutex_init(&poller->lock, NULL);
    return poller;
}

static void kqueue_close(rd_poller *poller) {
    if (poller->owner == getpid()) close(poller->fd);
    pthread_mutex_destroy(&poller->lock);
    rd_free(poller->by_fd);
    rd_free(poller);
}

static void make_room(rd_poller *poller, int fd) {
    if (fd < poller->size) return;
    const int size = (fd / GROWS_BY + 1) * GROWS_BY;
    poller->by_fd = rd_realloc(poller->by_fd, (size_t)size * sizeof(rd_entry));
    for (int next = poller->size; next < size; next++) poller->by_fd[next] = (rd_entry){0};
    poller->size = size;
}

/* The entry of a source that still owns its number, or NULL. */
static rd_entry *entry_of(const rd_poller *poller, const rd_source *source) {
    if (source->fd < 0 || source->fd >= poller->size) return NULL;
    rd_entry *entry = &poller->by_fd[source->fd];
    return entry->source == source ? entry : NULL;
}

/* ---- changes ---- */

static int change(rd_poller *poller, rd_source *source, int filter, unsigned flags) {
    const uintptr_t udata = (uintptr_t)source | (flags & EV_CLEAR ? QUIET_BIT : 0);
    struct kevent event;
    /* Before version 10 NetBSD has a number where the others have a pointer: its macro casts. */
    EV_SET(&event, (uintptr_t)source->fd, (short)filter, (unsigned short)flags, 0, 0,
           (void *)udata);
    return kevent(poller->fd, &event, 1, NULL, 0, NULL);
}

/* The filter may have gone: it was reported once, or the number was closed. */
static void forget(rd_poller *poller, rd_source *source, unsigned watched) {
    if (watched & (WATCHED_READ | WATCHED_QUIET)) change(poller, source, EVFILT_READ, EV_DELETE);
    if (watched & WATCHED_WRITE) change(poller, source, EVFILT_WRITE, EV_DELETE);
}

static unsigned wanted_by(const rd_source *source) {
    const unsigned wanted = source->interest & (RD_READABLE | RD_WRITABLE);
    return wanted == 0 ? WATCHED_QUIET : wanted;
}

/* The flags of a filter never change, so it is made anew when its kind does. What is wanted is
 * added again in any case: it may have gone. */
static int apply(rd_poller *poller, rd_entry *entry) {
    rd_source *source = entry->source;
    const unsigned wanted = wanted_by(source);
    const unsigned once = source->interest & RD_ONCE ? EV_ONESHOT : 0;
    forget(poller, source, entry->watched & ~wanted);
    entry->watched = wanted;
    if (wanted & WATCHED_QUIET) return change(poller, source, EVFILT_READ, EV_ADD | EV_CLEAR);
    if (wanted & WATCHED_READ && change(poller, source, EVFILT_READ, EV_ADD | once) != 0) return -1;
    return wanted & WATCHED_WRITE ? change(poller, source, EVFILT_WRITE, EV_ADD | once) : 0;
}

/* kqueue accepts files of a disk, but reports nothing at their end. The loop's own sources are
 * never files; what the application waits for is reported once. */
static bool is_file(const rd_source *source) {
    struct stat info;
    return source->interest & RD_ONCE && fstat(source->fd, &info) == 0 &&
           (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
}

/* The kernel would let a second source replace the first. If it still knows a filter of that one,
 * the number was not closed meanwhile. */
static bool is_taken(rd_poller *poller, rd_entry *entry) {
    if (entry->source == NULL) return false;
    const int filter = entry->watched == WATCHED_WRITE ? EVFILT_WRITE : EVFILT_READ;
    if (change(poller, entry->source, filter, EV_DELETE) != 0) return false;
    apply(poller, entry);
    errno = EEXIST;
    return true;
}

static int add_locked(rd_poller *poller, rd_source *source) {
    make_room(poller, source->fd);
    rd_entry *entry = &poller->by_fd[source->fd];
    if (is_taken(poller, entry)) return -1;
    *entry = (rd_entry){source, 0};
    if (apply(poller, entry) == 0) return 0;
    const int code = errno;
    forget(poller, source, entry->watched);
    *entry = (rd_entry){0};
    errno = code;
    return -1;
}

static int kqueue_add(rd_poller *poller, rd_source *source) {
    if (is_file(source)) {
        errno = EPERM;
        return -1;
    }
    pthread_mutex_lock(&poller->lock);
    const int result = add_locked(poller, source), code = errno;
    pthread_mutex_unlock(&poller->lock);
    errno = code;
    return result;
}

static int kqueue_modify(rd_poller *poller, rd_source *source) {
    int result = -1, code = ENOENT;
    pthread_mutex_lock(&poller->lock);
    rd_entry *entry = entry_of(poller, source);
    if (entry != NULL) {
        result = apply(poller, entry);
        code = errno;
    }
    pthread_mutex_unlock(&poller->lock);
    errno = code;
    return result;
}

static int kqueue_remove(rd_poller *poller, rd_source *source) {
    pthread_mutex_lock(&poller->lock);
    rd_entry *entry = entry_of(poller, source);
    if (entry != NULL) {
        forget(poller, source, entry->watched);
        *entry = (rd_entry){0};
    }
    pthread_mutex_unlock(&poller->lock);
    return 0;
}

/* ---- waiting ---- */

static bool is_hung_up(int fd) {
    struct pollfd look = {.fd = fd};
    return poll(&look, 1, 0) > 0 && look.revents & (POLLHUP | POLLERR);
}

/* The change of a quiet source. It is reported once, but a report may be dropped: after a hang-up
 * the filter for writing reports in each turn. Returns whether it is a hang-up. */
static bool hangs_up(rd_poller *poller, rd_source *source, const struct kevent *event) {
    bool found = false;
    pthread_mutex_lock(&poller->lock);
    rd_entry *entry = (int)event->ident < poller->size ? &poller->by_fd[event->ident] : NULL;
    /* The source may be gone since the kernel reported it. */
    if (entry != NULL && entry->source == source && entry->watched & WATCHED_QUIET) {
        found = event->flags & EV_EOF && is_hung_up((int)event->ident);
        if (found && change(poller, source, EVFILT_WRITE, EV_ADD) == 0) {
            entry->watched |= WATCHED_WRITE;
        }
    }
    pthread_mutex_unlock(&poller->lock);
    return found;
}

static unsigned readiness(rd_poller *poller, rd_source *source, const struct kevent *event) {
    const unsigned all = RD_READABLE | RD_WRITABLE | RD_HANGUP;
    if ((uintptr_t)event->udata & QUIET_BIT) return hangs_up(poller, source, event) ? all : 0;
    if (event->flags & EV_EOF && (event->fflags != 0 || is_hung_up((int)event->ident))) return all;
    return event->filter == EVFILT_READ ? RD_READABLE : RD_WRITABLE;
}

/* Two filters of a source are one report. */
static int add_report(rd_ready *ready, int count, rd_ready report, bool may_be_second) {
    for (int i = 0; may_be_second && i < count; i++) {
        if (ready[i].source != report.source) continue;
        ready[i].ready |= report.ready;
        return count;
    }
    ready[count] = report;
    return count + 1;
}

static int kqueue_wait_ready(rd_poller *poller, rd_ready *ready, int capacity, int64_t timeout_us) {
    struct kevent events[EVENTS_MAX];
    if (capacity > EVENTS_MAX) capacity = EVENTS_MAX;
    struct timespec timeout = {0, 0};
    if (timeout_us > 0) timeout = rd_clock_timespec((uint64_t)timeout_us * 1000);
    const int found =
        kevent(poller->fd, NULL, 0, events, capacity, timeout_us < 0 ? NULL : &timeout);
    int count = 0, writable = 0;
    for (int i = 0; i < found; i++) writable += events[i].filter == EVFILT_WRITE;
    for (int i = 0; i < found; i++) {
        rd_source *source = (rd_source *)((uintptr_t)events[i].udata & ~QUIET_BIT);
        const unsigned what = readiness(poller, source, &events[i]);
        if (what == 0) continue;
        count = add_report(ready, count, (rd_ready){source, what}, writable > 0);
    }
    return count;
}

const rd_poller_ops rd_poller_kqueue = {
    "kqueue",   true,          false,         kqueue_open,       kqueue_close,
    kqueue_add, kqueue_modify, kqueue_remove, kqueue_wait_ready,
};

#endif
