/* SPDX-License-Identifier: MIT
 *
 * Who runs the turns of a server, the leader or the watch thread, and what the leader last did.
 * turn.c and watch.c keep it. Under the loop lock, but for what is atomic.
 */
#ifndef RD_SERVER_LEAD_H
#define RD_SERVER_LEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "system/thread.h"

/* Where the leader is, as far as others have to know. */
typedef enum rd_phase {
    RD_PHASE_TURN,        /* in the core */
    RD_PHASE_SLEEP,       /* in the poll, waiting */
    RD_PHASE_AWAKE,       /* out of it, and not in the core yet: it waits for the GVL */
    RD_PHASE_APPLICATION, /* wherever the application leads */
} rd_phase;

typedef struct rd_lead {
    rd_ready_set found;      /* by the leader's poll */
    rd_thread thread;        /* who ran the last turn that was not the watch thread's */
    uint64_t seen_ns;        /* when the leader last turned or took a request */
    uint64_t cpu_ns;         /* the CPU time it had used when the watch thread came in for it, */
    uint64_t watch_since_ns; /* and when that was */
    uint64_t busy_until_ns;  /* a pause before this one is expected to be short */
    uint64_t awake_ns;       /* when the last sleep was over, set by whoever slept; 0: not said */
    uint64_t return_ns;      /* how long the way back from a sleep took: others had the GVL */
    uint64_t returned_ns;    /* when that was */
    atomic_int phase;        /* rd_phase */
    atomic_uint turns;       /* of the leader's */
    bool watch_owns;         /* the watch thread runs the turns, not the leader */
    bool watch_waits;        /* it is in its poll, whoever owns the turns by now */
    bool slept;              /* in its last turn */
    bool may_hold;           /* no other thread needs the GVL: a brief wait may keep it */
    bool expected;           /* the leader has to come back from this turn at once */
} rd_lead;

#endif
