/* SPDX-License-Identifier: MIT
 *
 * Strands: what runs a visit of the application, a thread at present. Fibers can be added by
 * another table: code that waits inside a call, or asks whose call it is, goes through it.
 */
#ifndef RD_BINDING_STRAND_H
#define RD_BINDING_STRAND_H

#include <ruby.h>
#include <stdbool.h>
#include <stdint.h>
#include "system/semaphore.h"

typedef struct rd_visit rd_visit;
typedef struct rd_strand_ops rd_strand_ops;

/* One sleep inside a call, or between two checks, on the stack of the strand that sleeps. */
typedef struct rd_sleep {
    const rd_strand_ops *ops;
    rd_semaphore woken; /* what a thread waits for */
} rd_sleep;

struct rd_strand_ops {
    /* Whether the code that runs now belongs to this visit. With threads that is all code of the
     * thread, including what an Enumerator runs in its own fiber. */
    bool (*is_current)(const rd_visit *visit);

    /* Raises in the visit, from another thread. May raise itself. */
    void (*raise)(const rd_visit *visit, VALUE error_class, VALUE message);

    void (*begin)(rd_sleep *sleep);
    /* Sleeps until it is woken, at most timeout_ms (-1: for ever). True: it was woken. False: time
     * is up, or an interrupt is pending. Releases the GVL; never raises. */
    bool (*sleep)(rd_sleep *sleep, int64_t timeout_ms);
    /* Any thread, with or without the loop lock. */
    void (*wake)(rd_sleep *sleep);
};

extern const rd_strand_ops rd_thread_strand;

static inline void rd_sleep_begin(rd_sleep *sleep, const rd_strand_ops *ops) {
    sleep->ops = ops;
    ops->begin(sleep);
}

#endif
