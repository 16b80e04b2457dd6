/* SPDX-License-Identifier: MIT
 *
 * What rb_fibers.c is made of: the life of a parking, and the switch from one fiber to another.
 * rb_fibers.h has the picture.
 */
#ifndef RD_FIBERS_SWITCH_H
#define RD_FIBERS_SWITCH_H

#include "fibers/rb_fibers.h"

/* ---- parkings ---- */

rd_parking *rd_parking_of_node(rd_list *node);

/* One more in `parked`, for this fiber of this strand. */
rd_parking *rd_parking_add(rd_fibers *fibers, VALUE fiber, VALUE strand);

/* Ends what the wait is registered for. `is_parents`: the parent of this forked child has it. */
void rd_parking_leave(rd_parking *parking, bool is_parents);

/* Back to those that are spare. */
void rd_parking_end(rd_parking *parking);

void rd_parkings_free(rd_list *parkings);

/* ---- switching ---- */

void rd_switch_to(rd_fibers *fibers, VALUE fiber);

/* Control is at the hub. */
void rd_switch_at_hub(rd_fibers *fibers);

/* The fiber of this parking runs again, whoever has switched to it. */
void rd_switch_arrived(rd_parking *parking);

/* Another fiber raised in this one, or switched to it by itself. It has left its strand without
 * waiting for anything, and goes on before all others. */
void rd_switch_let_go_on(rd_fibers *fibers, VALUE strand);

/* The next parking that may run; NULL: none. While the hub starts a fiber it must go on with that
 * first, so only those that started others inside of it may run. */
rd_parking *rd_switch_next(rd_fibers *fibers);

/* Switches to the fiber of another parking. The thread's own fibers end their waits in the order in
 * which they resumed each other, so the innermost one has to run, which is the hub. */
void rd_switch_to_parking(rd_parking *next);

#endif
