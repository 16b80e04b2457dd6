/* SPDX-License-Identifier: MIT
 *
 * What happens between two turns of the leader: requests, events and tasks run, on its thread or in
 * a fiber of it. With the GVL.
 */
#ifndef RD_THREADS_SERVE_H
#define RD_THREADS_SERVE_H

#include "binding/rb_binding.h"

/* Sends the answers that are ready, because another thread has the loop, or none. Gives `before`
 * back, unless it is NULL. */
void rd_serve_hand_over(rd_binding *binding, rd_request *before);

/* Runs a batch of requests, and then events and tasks if there are any (`others`), all of them as
 * this visit. Returns whether nothing is left for this turn. If not, the thread has lost the loop,
 * or no place is left, or the fiber of the visit cannot go on. `killed` gets the state of a
 * Thread#kill, or 0. */
bool rd_serve(rd_visit *visit, bool others, int *killed);

/* The same for events and tasks alone. */
bool rd_serve_others(rd_visit *visit, int *killed);

/* Whether something waits to be run; `others`: an event or a task. Takes the lock. */
bool rd_serve_waits(rd_binding *binding, bool *others);

#endif
