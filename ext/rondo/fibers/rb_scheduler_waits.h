/* SPDX-License-Identifier: MIT
 *
 * The hooks for waits without a descriptor: sleep, locks and queues, child processes, limits of
 * time.
 */
#ifndef RD_FIBERS_SCHEDULER_WAITS_H
#define RD_FIBERS_SCHEDULER_WAITS_H

#include <ruby.h>

void rd_init_scheduler_waits(VALUE scheduler_class);

#endif
