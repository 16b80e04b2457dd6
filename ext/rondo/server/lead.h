/* SPDX-License-Identifier: MIT
 *
 * Which thread runs the turns of a server, the leader or the watch thread, and what the leader last
 * did. turn.c and watch.c write it. Under the loop lock, except for what is atomic.
 */
#ifndef RD_SERVER_LEAD_H
#define RD_SERVER_LEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "system/thread.h"

/* Where the leader is, as other threads need to know it. */
typedef enum rd_phase {
    RD_PHASE_TURN,        /* in the core */
    RD_PHASE_SLEEP,       /* in the poll, waiting */
    RD_PHASE_AWAKE,       /* the poll has returned, and the leader waits for the GVL */
    RD_PHASE_APPLICATION, /* in the application, or outside the core for another reason */
} rd_phase;

/* How a thread that computes gives way to the leader (watch.h). */
typedef struct rd_way {
    uint64_t since_ns;  /* since when the leader has turned without being away */
    uint64_t share_ns;  /* how long the other thread may keep the GVL now */
    uint64_t called_ns; /* when it was called to give way last */
    uint64_t asked_ns;  /* when the CPU time of the process was read last, */
    uint64_t cpu_ns;    /* and what it was */
    int64_t wait_us;    /* how long the watch thread may wait in its poll */
    bool computes;      /* by that, a thread of the process computes, or may do so */
    bool was_called;    /* since the leader slept last: another thread computes */
} rd_way;

typedef struct rd_lead {
    rd_ready_set found;      /* by the leader's poll */
    rd_thread thread;        /* the last leader */
    uint64_t seen_ns;        /* when the leader last turned or took a request */
    uint64_t cpu_ns;         /* the leader's CPU time when the watch thread took over, */
    uint64_t watch_since_ns; /* and when that was */
    uint64_t stuck_ns;       /* when it was last found to be stuck */
    uint64_t busy_until_ns;  /* pauses before this time are expected to be short */
    uint64_t call_due_ns;    /* when the poll ends because of a request or a call that is late */
    uint64_t awake_ns;       /* when the last sleep was over, set by rd_server_wait; 0: not set */
    uint64_t return_ns;      /* how long the leader then waited for the GVL */
    uint64_t returned_ns;    /* when that was */
    atomic_int phase;        /* rd_phase */
    atomic_uint turns;       /* number of the leader's turns */
    rd_way way;
    bool watch_owns;   /* the watch thread runs the turns, not the leader */
    bool watch_waits;  /* the watch thread is in its poll; the leader may own the turns */
    bool watch_called; /* it has called a thread for what waits for the application now */
    bool slept;        /* the leader, in its last turn */
    bool may_hold;     /* no other thread needs the GVL: a brief wait may keep it */
    bool expected;     /* the leader must not sleep in this turn */
} rd_lead;

#endif
