/* SPDX-License-Identifier: MIT
 *
 * The application threads of a server. One of them is the leader: it runs the loop and calls the
 * application itself, so a request that does not block never changes threads. When the leader's
 * call releases the GVL, a standby that queues for the GVL takes the loop:
 *
 *   standby ──(takes the loop)──▶ leader ──(calls)──▶ in the application ──(returns)──▶ leader
 *      ▲                                                │     │     │
 *      │                  (another thread took the loop)│     │     │(its body had its time)
 *      └────────────────────────────────────────────────┘     │     ▼
 *                                       (waits for its client)│   aside ──(a place is left)──▶ …
 *                                                             ▼
 *                                                        stepped out ──(a place is free)──▶ …
 *
 * A thread that waits for its client inside the application steps out: it gives its place to
 * another thread, and comes back in as soon as a place is free, before new requests. A thread whose
 * body has given parts for long stands aside in the same way, and the leader lets it back in after
 * a batch of new requests. With fibers a place is a fiber's, and a fiber that waits leaves its
 * thread to the others of that thread. A call that says that it only waits (rd_pool_mark()) keeps
 * its place, and there is one place more until it ends. At most max_parked_bodies are stepped out
 * or aside. For one more, the client that was waited for longest is given up. Everything here is
 * under the GVL, except for the atomics, which the watch thread uses.
 */
#ifndef RD_BINDING_POOL_H
#define RD_BINDING_POOL_H

#include <ruby.h>
#include <stdatomic.h>

#include "base/list.h"
#include "system/semaphore.h"
#include "request/request.h"
#include "binding/rb_strand.h"
#include "server/server.h"

typedef struct rd_binding rd_binding;

typedef struct rd_call rd_call;

typedef struct rd_runner rd_runner;

typedef struct rd_fiber_calls rd_fiber_calls;

/* One stay in the application: a call, an event, or a task. A thread has one at a time, or one for
 * each of its fibers. It is not on a stack, because a continuation restores an old copy of it. */
struct rd_visit {
    rd_list node;      /* in rd_pool.visits, or among those that its runner has spare */
    rd_runner *runner; /* the runner whose thread runs it */
    const rd_strand_ops *strand;
    VALUE fiber;            /* that runs it, of this thread; Qfalse: the thread does */
    struct rd_limit *limit; /* raises what was raised in it while it waited; NULL: nothing was */
    uint32_t round;         /* of the runner, when it began */
    uint64_t serial;        /* unique */
    rd_request *request;    /* of the call; NULL: an event */
    rd_call *call;          /* the call itself, on the stack of the thread that runs it */
    bool is_inside;         /* it has begun and not ended */
    bool stepped_out;       /* or stands aside: in the application, without a place */
    bool is_needed;         /* others probably need it: its body steps aside later */
    bool logged_slow, logged_hung;
    uint8_t to_undo; /* RD_UNDO_*: what its end has to undo */
};

/* What few visits have to undo at their end. */
enum {
    RD_UNDO_TIMEOUT = 1, /* it was logged, and raised */
    RD_UNDO_MARK = 2     /* it has said that it only waits */
};

/* One application thread. */
struct rd_runner {
    rd_list node;       /* in rd_pool.runners */
    rd_list as_standby; /* in rd_pool.standby_list */
    rd_binding *binding;
    VALUE thread;
    rd_thread self;       /* the kernel's name of it */
    rd_semaphore woken;   /* outside of the loop it sleeps here */
    uint32_t inside;      /* its visits */
    uint64_t reported_ns; /* since when a fiber had it that was reported for that */
    uint32_t round;       /* of its fibers: changes whenever the hub begins or continues some */
    bool away;            /* not inside the core: another thread may take the loop */
    bool has_incidents;   /* there are incidents for the log */
    rd_visit visit;       /* of the thread itself */
    rd_fibers *fibers;    /* NULL: it has none, and calls the application itself */
    rd_fiber_calls *own;  /* what else it needs to call the application in fibers */
};

/* All visits that are in the application; `node` is any name. */
#define RD_EACH_VISIT(pool, visit, node)                                                           \
    for (rd_list *node = (pool)->visits.next; node != &(pool)->visits; node = node->next)          \
        for (rd_visit *visit = RD_CONTAINER(node, rd_visit, node); visit != NULL; visit = NULL)    \
            if (visit->is_inside)

/* A wait of a call for its client, on the stack of the thread that waits. */
typedef struct rd_client_wait {
    rd_list node; /* in rd_pool.for_clients */
    rd_waiter waiter;
    rd_request *request;
    uint64_t since_ns;
    bool stepped_out; /* for this wait */
    bool given_up;    /* while it was out */
} rd_client_wait;

typedef struct rd_pool {
    rd_list runners, visits;
    rd_runner *leader;  /* NULL: the first thread that comes takes the loop */
    uint32_t threads;   /* number of runners */
    uint32_t places;    /* max_threads, and one for each of max_io_threads that is marked; or,
                         * with fibers, their number */
    uint32_t marked;    /* calls that only wait, as they have said; more than max_io_threads, too */
    uint32_t active;    /* places taken; more than there are if visits came in past others */
    uint32_t waiting;   /* stepped out or aside: max_parked_bodies, and those that come back */
    uint32_t returning; /* of these: wait only for a place */
    uint32_t blocking;  /* how often calls lost the loop lately: 0..65535, fast up, slow down */
    uint32_t busy_turns; /* turns in a row that did not sleep */
    uint64_t next_yield_ns;
    rd_list for_clients; /* rd_client_wait, the oldest first */
    rd_list resuming;    /* visits that want to come back in, in order */
    rd_list aside;       /* the same, for bodies that stand aside */
    bool begun;          /* a request has begun since bodies were let back in */
    rd_semaphore supervisor;
    pthread_mutex_t standby_lock; /* taken last */
    rd_list standby_list;         /* rd_runner.as_standby: those that would take the loop */
    atomic_uint standbys;         /* how many there are */
    atomic_bool armed;            /* one of them is being woken */
    atomic_bool thread_wanted, attention_wanted;
    bool over;
} rd_pool;

void rd_pool_init(rd_binding *binding);

/* The visit that the code which runs now belongs to, or NULL. */
rd_visit *rd_visit_current(rd_binding *binding);

/* Call it before each sleep of a wait for the client: gives the place away. Returns how many ms to
 * sleep at most before the next call; -1: for ever. Not -1 if the place was kept, because no client
 * has been waited for long enough to be given up. */
int64_t rd_pool_wait_for_client(rd_visit *visit, rd_client_wait *wait);
/* The wait is over. Returns 0, or the state of an exception that was raised meanwhile; the place is
 * taken in both cases. `at_once`: an exception is being raised, so it waits for no place. */
int rd_pool_client_came(rd_visit *visit, rd_client_wait *wait, bool at_once);

/* The call says that it only waits from now on. Until it ends there is a place and a thread more,
 * if not max_io_threads of them have said so. Has no effect with fibers, where calls that wait
 * share threads. */
void rd_pool_mark(rd_visit *visit);

/* For a long body between two of its parts: lets visits that wait for a place go first, and comes
 * back in after them. The place is kept if no client can be given up. Returns 0, or the state of an
 * exception that was raised meanwhile; the place is taken in both cases. */
int rd_pool_step_aside(rd_visit *visit);

/* ---- for the leader and the supervisor ---- */

uint32_t rd_pool_max_threads(const rd_binding *binding);
/* Whether visits are fibers. */
bool rd_pool_has_fibers(const rd_binding *binding);
bool rd_pool_has_place(const rd_binding *binding);
/* Threads that can take the loop, or will. */
uint32_t rd_pool_useful_threads(const rd_binding *binding);
bool rd_pool_may_grow(const rd_binding *binding);
void rd_pool_write_scores(const rd_binding *binding);
/* The thread is about to sleep at `woken`, and takes the loop if it is woken. */
void rd_pool_begin_standby(rd_runner *runner);
void rd_pool_end_standby(rd_runner *runner);
/* Wakes a standby, which then queues for the GVL. False: there is none. Any thread. */
bool rd_pool_arm(rd_pool *pool);
/* Asks the supervisor for one more thread. Any thread. */
void rd_pool_want_thread(rd_pool *pool);
/* Around a call of the application. */
void rd_pool_enter(rd_visit *visit, rd_request *request);
void rd_pool_leave(rd_visit *visit);
/* Called by the leader, so that new requests and long bodies take turns. */
void rd_pool_let_back_in(rd_binding *binding);
/* Nothing is left to do: all threads end. */
void rd_pool_end(rd_binding *binding);

#endif
