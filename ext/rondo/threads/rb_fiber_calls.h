/* SPDX-License-Identifier: MIT
 *
 * Requests, events and tasks in fibers of an application thread, one fiber for each. The thread's
 * own fiber is the hub (fibers/rb_fibers.h): it runs the loop when the thread leads, begins fibers,
 * and goes on with those that have waited. A fiber that waits is back at the hub at once.
 *
 *   hub ──(begins)──▶ fiber: in the application ──(ends)──▶ hub
 *    ▲                      │          ▲
 *    └──────(waits)─────────┘          └──(the wait is over: hub)
 *
 * The descriptors that fibers wait for are in the loop of the server. The thread that runs its
 * turn, the leader or the watch thread, puts fibers that can go on in the list of their own thread,
 * and wakes that. So a fiber always runs on the thread that began it, whoever leads.
 *
 * A visit finds its fiber as if it were new: a fiber is used again only if the visits before have
 * left nothing in it. With the setting fiber_pool, it is in any case. With the GVL.
 */
#ifndef RD_THREADS_FIBER_CALLS_H
#define RD_THREADS_FIBER_CALLS_H

#include "binding/rb_binding.h"

/* The thread, which runs now, calls the application in fibers from now on. Raises. */
void rd_fiber_calls_begin(rd_runner *runner);

/* Ends the fibers, those that wait by an exception. False: one of them does not end, so the runner
 * must stay as it is. */
bool rd_fiber_calls_end(rd_runner *runner);

/* This is the hub again, whatever was raised in it. */
void rd_fiber_calls_at_hub(rd_runner *runner);

/* Begins a fiber for what waits, and one more whenever it waits or cannot go on, but not very many.
 * `others`: events or tasks wait, too. */
void rd_fiber_calls_begin_some(rd_runner *runner, bool others);

/* Goes on with fibers whose waits are over, some of them if `is_leader`. May raise what one of them
 * raises. */
void rd_fiber_calls_go_on(rd_runner *runner, bool is_leader);

/* The state of a Thread#kill in one of the fibers, or 0: the hub has to end the thread. */
int rd_fiber_calls_killed(const rd_runner *runner);

/* Whether nothing is left on this thread: no fiber waits. */
bool rd_fiber_calls_are_over(const rd_runner *runner);

/* The wait of a leader's turn. */
void rd_fiber_calls_wait(rd_server *server, int64_t timeout_us);

/* The sleep of a thread that does not lead, at most `most_ns` (-1: for ever). Returns whether that
 * time has passed. */
bool rd_fiber_calls_sleep(rd_runner *runner, int64_t most_ns);

#endif
