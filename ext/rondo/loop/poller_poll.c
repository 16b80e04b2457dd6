/* SPDX-License-Identifier: MIT
 *
 * The poller by poll(2), for systems without epoll. Two parallel arrays hold what the kernel reads
 * and the sources it belongs to. wait() works on a copy, because it sleeps without the loop lock,
 * under which sources come and go. A small mutex covers the copying. See poller.h.
 */
#include "loop/poller.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"

typedef struct rd_poll_set {
    struct pollfd *fds;
    rd_source **sources;
    uint32_t count, capacity;
} rd_poll_set;

struct rd_poller {
    pthread_mutex_t lock;
    rd_poll_set live;
    uint32_t first; /* where the next wait() starts to look, so that no source is always last */
};

static rd_poller *poll_open(void) {
    rd_poller *poller = rd_alloc_zero(sizeof(rd_poller));
    pthread_mutex_init(&poller->lock, NULL);
    return poller;
}

static void set_clear(rd_poll_set *set) {
    rd_free(set->fds);
    rd_free(set->sources);
}

static void poll_close(rd_poller *poller) {
    set_clear(&poller->live);
    pthread_mutex_destroy(&poller->lock);
    rd_free(poller);
}

static void set_reserve(rd_poll_set *set, uint32_t count) {
    if (count <= set->capacity) return;
    uint32_t capacity = set->capacity ? set->capacity * 2 : 64;
    while (capacity < count) capacity *= 2;
    set->fds = rd_realloc(set->fds, capacity * sizeof(*set->fds));
    set->sources = rd_realloc(set->sources, capacity * sizeof(rd_source *));
    set->capacity = capacity;
}

static short poll_events(const rd_source *source) {
    short events = 0;
    if (source->interest & RD_READABLE) events |= POLLIN;
    if (source->interest & RD_WRITABLE) events |= POLLOUT;
    return events;
}

static int poll_add(rd_poller *poller, rd_source *source) {
    rd_poll_set *set = &poller->live;
    pthread_mutex_lock(&poller->lock);
    set_reserve(set, set->count + 1);
    source->index = set->count++;
    set->fds[source->index] = (struct pollfd){.fd = source->fd, .events = poll_events(source)};
    set->sources[source->index] = source;
    pthread_mutex_unlock(&poller->lock);
    return 0;
}

static int poll_modify(rd_poller *poller, rd_source *source) {
    pthread_mutex_lock(&poller->lock);
    poller->live.fds[source->index].events = poll_events(source);
    pthread_mutex_unlock(&poller->lock);
    return 0;
}

static int poll_remove(rd_poller *poller, rd_source *source) {
    rd_poll_set *set = &poller->live;
    pthread_mutex_lock(&poller->lock);
    uint32_t last = --set->count;
    set->fds[source->index] = set->fds[last];
    set->sources[source->index] = set->sources[last];
    set->sources[source->index]->index = source->index;
    pthread_mutex_unlock(&poller->lock);
    return 0;
}

static unsigned readiness(short events) {
    unsigned ready = 0;
    if (events & POLLIN) ready |= RD_READABLE;
    if (events & POLLOUT) ready |= RD_WRITABLE;
    if (events & (POLLERR | POLLHUP)) ready |= RD_READABLE | RD_WRITABLE | RD_HANGUP;
    return ready;
}

/* Copies what one wait() sleeps on. Returns where it starts to look. */
static uint32_t copy_live(rd_poller *poller, rd_poll_set *copy) {
    pthread_mutex_lock(&poller->lock);
    uint32_t count = poller->live.count, first = poller->first;
    set_reserve(copy, count);
    copy->count = count;
    if (count > 0) {
        memcpy(copy->fds, poller->live.fds, count * sizeof(*copy->fds));
        memcpy(copy->sources, poller->live.sources, count * sizeof(rd_source *));
    }
    pthread_mutex_unlock(&poller->lock);
    return count > 0 ? first % count : 0;
}

static void begin_next_at(rd_poller *poller, uint32_t first) {
    pthread_mutex_lock(&poller->lock);
    poller->first = first;
    pthread_mutex_unlock(&poller->lock);
}

static int poll_wait_ready(rd_poller *poller, rd_ready *ready, int capacity, int64_t timeout_us) {
    rd_poll_set copy = {0};
    uint32_t at = copy_live(poller, &copy);
    int64_t timeout_ms = timeout_us < 0 ? -1 : timeout_us / 1000;
    int left = poll(copy.fds, copy.count, timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms);
    int found = 0;
    for (uint32_t seen = 0; seen < copy.count && left > 0 && found < capacity; seen++) {
        if (copy.fds[at].revents != 0) {
            left--;
            unsigned what = readiness(copy.fds[at].revents);
            if (what != 0) ready[found++] = (rd_ready){copy.sources[at], what};
        }
        if (++at == copy.count) at = 0;
    }
    set_clear(&copy);
    begin_next_at(poller, at);
    return found;
}

const rd_poller_ops rd_poller_poll = {
    "poll",   false,       false,       poll_open,       poll_close,
    poll_add, poll_modify, poll_remove, poll_wait_ready,
};
