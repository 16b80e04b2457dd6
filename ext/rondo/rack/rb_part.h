/* SPDX-License-Identifier: MIT
 *
 * One part of a body: queueing it, and what follows. On any thread, with the GVL; may raise.
 */
#ifndef RD_RACK_PART_H
#define RD_RACK_PART_H

#include "rack/rb_call.h"

/* Queues one part of a body, copied or, when it is long, borrowed. Takes the lock itself. 0 or
 * RD_ERR_CLOSED. */
int rd_part_write(rd_call *call, VALUE part);

/* The same for one that is copied whatever its length, under the lock. */
int rd_part_copy(rd_call *call, VALUE part);

/* Sends one part of a body, then waits until the client has taken enough, or, when the call had its
 * turn, lets others go first. 0, or RD_ERR_CLOSED when nobody is there any more. The wait for the
 * client takes nothing of the body's time: to be added to turn_ns, unless the call is over by then,
 * ended by another thread. */
int rd_part_send(rd_call *call, VALUE part, uint64_t *waited_ns);

/* Whether a part of this length is copied. */
bool rd_part_is_small(VALUE part);

#endif
