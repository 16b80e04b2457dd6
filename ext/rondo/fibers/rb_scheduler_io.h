/* SPDX-License-Identifier: MIT
 *
 * The hooks for descriptors: waiting, reading, writing, IO.select.
 */
#ifndef RD_FIBERS_SCHEDULER_IO_H
#define RD_FIBERS_SCHEDULER_IO_H

#include <ruby.h>

void rd_init_scheduler_io(VALUE scheduler_class);

#endif
