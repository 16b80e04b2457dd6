/* SPDX-License-Identifier: MIT
 *
 * The seam to the operating system's readiness call: six functions, level-triggered. epoll is the
 * one of Linux, kqueue that of macOS and the BSDs; poll(2) serves all others and proves the seam. A
 * poller belongs to one loop. wait() runs without the loop lock, the others under it.
 */
#ifndef RD_LOOP_POLLER_H
#define RD_LOOP_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "system/platform.h"

enum { RD_READABLE = 1, RD_WRITABLE = 2, RD_HANGUP = 4 };

/* Added to an interest: epoll and kqueue report the source once (kqueue: each direction),
 * then not until it is modified. */
#define RD_ONCE 8

/* Something with a descriptor. Lives in its owner (connection, listener, wake-up). */
typedef struct rd_source {
    int fd;
    uint8_t interest; /* RD_READABLE | RD_WRITABLE as registered, and RD_ONCE */
    uint8_t registered;
    void (*on_ready)(struct rd_source *source, unsigned ready);
    uint32_t index; /* for the poller's own use */
} rd_source;

typedef struct rd_ready {
    rd_source *source;
    unsigned ready;
} rd_ready;

typedef struct rd_poller rd_poller;

typedef struct rd_poller_ops {
    const char *name;
    bool is_live; /* whether a sleeping wait notices sources that are added or changed meanwhile */
    bool by_file; /* whether a source is an open file, not the number of a descriptor */
    /* Returns a new poller, or NULL with errno set. */
    rd_poller *(*open)(void);
    void (*close)(rd_poller *poller);
    /* These three return 0, or -1 with errno set. */
    int (*add)(rd_poller *poller, rd_source *source);
    int (*modify)(rd_poller *poller, rd_source *source);
    int (*remove)(rd_poller *poller, rd_source *source);
    /* Fills up to `capacity` entries and returns their number, 0 also after a signal. The timeout
     * is in microseconds, -1 for ever. A descriptor that is only hung up or broken is reported
     * readable and writable. Where the system counts in milliseconds, shorter waits return at once.
     * Several threads may wait at the same time. */
    int (*wait)(rd_poller *poller, rd_ready *ready, int capacity, int64_t timeout_us);
} rd_poller_ops;

extern const rd_poller_ops rd_poller_poll;
#ifdef RD_HAS_EPOLL
extern const rd_poller_ops rd_poller_epoll;
#endif
#ifdef RD_HAS_KQUEUE
extern const rd_poller_ops rd_poller_kqueue;
#endif

/* The best one that the system has. `poll_only`: poll(2), which every system has. */
static inline const rd_poller_ops *rd_poller_choose(bool poll_only) {
#if defined(RD_HAS_EPOLL)
    return poll_only ? &rd_poller_poll : &rd_poller_epoll;
#elif defined(RD_HAS_KQUEUE)
    return poll_only ? &rd_poller_poll : &rd_poller_kqueue;
#else
    (void)poll_only;
    return &rd_poller_poll;
#endif
}

#endif
