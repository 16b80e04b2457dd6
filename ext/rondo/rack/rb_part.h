/* SPDX-License-Identifier: MIT
 *
 * Queueing and sending one part of a body. On any thread, with the GVL; may raise.
 */
#ifndef RD_RACK_PART_H
#define RD_RACK_PART_H

#include "rack/rb_call.h"

/* Queues one part of a body: copied, or borrowed if it is long. Takes the lock itself. Returns 0 or
 * RD_ERR_CLOSED. */
int rd_part_write(rd_call *call, VALUE part);

/* The same, but copies a part of any length. Under the lock. */
int rd_part_copy(rd_call *call, VALUE part);

/* Sends one part of a body, then waits until the client has read enough, or, if the call has had
 * its turn, lets others go first. Returns 0, or RD_ERR_CLOSED if the client is gone. A wait for the
 * client does not count as the body's time: the caller adds waited_ns to quantum_since_ns, unless
 * another thread has ended the call meanwhile. */
int rd_part_send(rd_call *call, VALUE part, uint64_t *waited_ns);

/* Whether a part of this length is copied. */
bool rd_part_is_small(VALUE part);

#endif
