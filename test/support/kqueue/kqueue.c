/* SPDX-License-Identifier: MIT
 *
 * kqueue(2) over epoll(7); see sys/event.h. The number of a queue is that of its epoll instance, so
 * close(2) closes it. As in a real kernel, the filters of a descriptor go when it is closed (here:
 * when its number means another file), and a forked child has no queue.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/event.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUEUES_MAX 1024
#define EVENTS_MAX 256

typedef struct note {
    bool present;
    unsigned short flags;
    void *udata;
} note;

enum { READ, WRITE, DIRECTIONS };

/* What is registered for a number. */
typedef struct watched {
    note notes[DIRECTIONS];
    bool is_file; /* epoll does not take it; a real queue is silent at its end */
    dev_t device;
    ino_t inode;
} watched;

typedef struct queue {
    bool open;
    watched *by_fd;
    size_t size;
} queue;

static queue queues[QUEUES_MAX]; /* by the number of the epoll instance */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void in_parent(void) {
    pthread_mutex_unlock(&lock);
}

/* The number may be another file's by now, if the queue was closed. */
static bool is_queue(int fd) {
    char path[32], target[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const ssize_t len = readlink(path, target, sizeof(target));
    return len > 0 && strncmp(target, "anon_inode:[eventpoll]", (size_t)len) == 0;
}

static void in_child(void) {
    for (int fd = 0; fd < QUEUES_MAX; fd++) {
        if (queues[fd].open && is_queue(fd)) close(fd);
        free(queues[fd].by_fd);
        queues[fd] = (queue){0};
    }
    pthread_mutex_unlock(&lock);
}

static void mind_forks(void) {
    pthread_atfork(before_fork, in_parent, in_child);
}

int kqueue(void) {
    pthread_once(&once, mind_forks);
    const int fd = epoll_create1(0);
    if (fd < 0) return -1;
    if (fd >= QUEUES_MAX) abort();
    pthread_mutex_lock(&lock);
    free(queues[fd].by_fd);
    queues[fd] = (queue){.open = true};
    pthread_mutex_unlock(&lock);
    return fd;
}

/* ---- changes ---- */

static bool has_notes(const watched *found) {
    return found->notes[READ].present || found->notes[WRITE].present;
}

/* The entry of a number, without what was registered for a file that had the number before. */
static watched *entry_of(queue *from, int fd) {
    struct stat info;
    if (fstat(fd, &info) != 0) return NULL;
    if ((size_t)fd >= from->size) {
        const size_t size = (size_t)fd + 64;
        watched *grown = realloc(from->by_fd, size * sizeof(*grown));
        if (grown == NULL) abort();
        memset(grown + from->size, 0, (size - from->size) * sizeof(*grown));
        from->by_fd = grown;
        from->size = size;
    }
    watched *found = &from->by_fd[fd];
    if (!has_notes(found) || found->device != info.st_dev || found->inode != info.st_ino) {
        *found = (watched){.device = info.st_dev, .inode = info.st_ino};
        found->is_file = S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
    }
    return found;
}

/* epoll has one entry for both directions. */
static int tell_epoll(int epoll, int fd, const watched *found) {
    struct epoll_event event = {.data.fd = fd};
    const note *read = &found->notes[READ], *write = &found->notes[WRITE];
    if (found->is_file) return 0;
    if (!has_notes(found)) {
        epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    if (read->present) event.events |= EPOLLIN | EPOLLRDHUP;
    if (write->present) event.events |= EPOLLOUT;
    /* A filter for writing beside a quiet one makes both of them level-triggered: the poller adds
     * one after a hang-up only. */
    if (read->present && read->flags & EV_CLEAR && !write->present) event.events |= EPOLLET;
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0) return 0;
    return errno == ENOENT ? epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) : -1;
}

static int change_one(int epoll, queue *in, const struct kevent *wanted) {
    const int fd = (int)wanted->ident;
    watched *found = entry_of(in, fd);
    if (found == NULL) return -1;
    note *of = &found->notes[wanted->filter == EVFILT_READ ? READ : WRITE];
    if (wanted->flags & EV_DELETE) {
        if (!of->present) {
            errno = ENOENT;
            return -1;
        }
        *of = (note){0};
    } else {
        if (!of->present) of->flags = wanted->flags & (EV_CLEAR | EV_ONESHOT); /* never changed */
        of->present = true;
        of->udata = wanted->udata;
    }
    if (tell_epoll(epoll, fd, found) == 0) return 0;
    *of = (note){0};
    return -1;
}

/* ---- reports ---- */

static int report(struct kevent *event, int fd, int direction, note *from, unsigned events) {
    const unsigned of_direction = direction == READ ? EPOLLIN | EPOLLRDHUP : EPOLLOUT;
    if (!from->present || !(events & (of_direction | EPOLLHUP | EPOLLERR))) return 0;
    *event = (struct kevent){.ident = (uintptr_t)fd,
                             .filter = direction == READ ? EVFILT_READ : EVFILT_WRITE,
                             .flags = from->flags,
                             .udata = from->udata};
    if (events & (EPOLLHUP | EPOLLERR | (direction == READ ? EPOLLRDHUP : 0))) {
        event->flags |= EV_EOF;
    }
    if (events & EPOLLERR) event->fflags = ECONNRESET;
    if (from->flags & EV_ONESHOT) *from = (note){0};
    return 1;
}

static int report_both(int epoll, queue *from, struct kevent *event, const struct epoll_event *of) {
    struct stat info;
    const int fd = of->data.fd;
    if ((size_t)fd >= from->size) return 0;
    watched *found = &from->by_fd[fd];
    if (!has_notes(found)) return 0; /* another thread has got it */
    if (fstat(fd, &info) != 0 || info.st_dev != found->device || info.st_ino != found->inode) {
        return 0; /* closed, but a copy of the descriptor is open */
    }
    const bool ends = (found->notes[READ].flags | found->notes[WRITE].flags) & EV_ONESHOT;
    int count = report(event, fd, READ, &found->notes[READ], of->events);
    count += report(event + count, fd, WRITE, &found->notes[WRITE], of->events);
    if (ends) tell_epoll(epoll, fd, found); /* else it would arm one that is edge-triggered */
    return count;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int collect(int epoll, struct kevent *events, int event_count, int timeout_ms) {
    struct epoll_event found[EVENTS_MAX];
    int most = event_count / DIRECTIONS, count = 0;
    if (most > EVENTS_MAX) most = EVENTS_MAX;
    const int ready = epoll_wait(epoll, found, most, timeout_ms);
    if (ready < 0) return -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < ready; i++) {
        count += report_both(epoll, &queues[epoll], events + count, &found[i]);
    }
    pthread_mutex_unlock(&lock);
    return count;
}

int kevent(int epoll, const struct kevent *changes, int change_count, struct kevent *events,
           int event_count, const struct timespec *timeout) {
    for (int i = 0; i < change_count; i++) {
        pthread_mutex_lock(&lock);
        const int result = change_one(epoll, &queues[epoll], &changes[i]);
        pthread_mutex_unlock(&lock);
        if (result != 0) return -1;
    }
    if (event_count == 0) return 0;
    const int64_t until = timeout == NULL ? -1
                                          : now_ms() + (int64_t)timeout->tv_sec * 1000 +
                                                (timeout->tv_nsec + 999999) / 1000000;
    for (;;) {
        int64_t left = until < 0 ? -1 : until - now_ms();
        if (until >= 0 && left < 0) left = 0;
        const int count = collect(epoll, events, event_count, (int)left);
        if (count != 0 || left == 0) return count;
    }
}
