/* SPDX-License-Identifier: MIT
 *
 * The poller by epoll(7), level-triggered: one recv for each readiness, never a second one just to
 * learn that there is nothing more (0.6-1.0 us a request). See poller.h.
 */
#include "loop/poller.h"

#ifdef RD_HAS_EPOLL

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/clock.h"

#define EVENTS_MAX 256

/* musl has no such macro, and cannot parse a call of it. */
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 35)
#define HAS_PWAIT2 1
#endif
#endif

struct rd_poller {
    int fd;
};

static rd_poller *epoll_open(void) {
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) return NULL;
    rd_poller *poller = rd_alloc(sizeof(*poller));
    poller->fd = fd;
    return poller;
}

static void epoll_close(rd_poller *poller) {
    close(poller->fd);
    rd_free(poller);
}

static int control(rd_poller *poller, int operation, rd_source *source) {
    struct epoll_event event = {.events = 0, .data.ptr = source};
    if (source->interest & RD_READABLE) event.events |= EPOLLIN;
    if (source->interest & RD_WRITABLE) event.events |= EPOLLOUT;
    if (source->interest & RD_ONCE) event.events |= EPOLLONESHOT;
    return epoll_ctl(poller->fd, operation, source->fd, &event);
}

static int epoll_add(rd_poller *poller, rd_source *source) {
    return control(poller, EPOLL_CTL_ADD, source);
}

static int epoll_modify(rd_poller *poller, rd_source *source) {
    return control(poller, EPOLL_CTL_MOD, source);
}

static int epoll_remove(rd_poller *poller, rd_source *source) {
    return control(poller, EPOLL_CTL_DEL, source);
}

static unsigned readiness(uint32_t events) {
    unsigned ready = 0;
    if (events & EPOLLIN) ready |= RD_READABLE;
    if (events & EPOLLOUT) ready |= RD_WRITABLE;
    if (events & (EPOLLERR | EPOLLHUP)) ready |= RD_READABLE | RD_WRITABLE | RD_HANGUP;
    return ready;
}

/* Waits below a millisecond need epoll_pwait2 (Linux 5.11, glibc 2.35). Sandboxes that do not know
 * it return EPERM. */
static int wait_for(rd_poller *poller, struct epoll_event *events, int capacity,
                    int64_t timeout_us) {
#ifdef HAS_PWAIT2
    if (timeout_us > 0 && timeout_us < 1000) {
        const struct timespec timeout = rd_clock_timespec((uint64_t)timeout_us * 1000);
        int count = epoll_pwait2(poller->fd, events, capacity, &timeout, NULL);
        if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    }
#endif
    int64_t timeout_ms = timeout_us < 0 ? -1 : timeout_us / 1000;
    if (timeout_ms > INT_MAX) timeout_ms = INT_MAX;
    return epoll_wait(poller->fd, events, capacity, (int)timeout_ms);
}

static int epoll_wait_ready(rd_poller *poller, rd_ready *ready, int capacity, int64_t timeout_us) {
    if (capacity > EVENTS_MAX) capacity = EVENTS_MAX;
    struct epoll_event events[EVENTS_MAX];
    int count = wait_for(poller, events, capacity, timeout_us);
    if (count < 0) return 0;
    for (int i = 0; i < count; i++) {
        ready[i].source = events[i].data.ptr;
        ready[i].ready = readiness(events[i].events);
    }
    return count;
}

const rd_poller_ops rd_poller_epoll = {
    "epoll",   true,         true,         epoll_open,       epoll_close,
    epoll_add, epoll_modify, epoll_remove, epoll_wait_ready,
};

#endif
