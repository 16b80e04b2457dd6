/* SPDX-License-Identifier: MIT
 *
 * A fiber that starts others for the hub. If no stack is left for a new fiber, Ruby raises in the
 * one that switches to it. In the thread's own fiber it has then lost count of what blocks the
 * thread, and no fiber of that thread finds its scheduler any more. In this one it has not.
 */
#ifndef RD_FIBERS_LAUNCHER_H
#define RD_FIBERS_LAUNCHER_H

#include "fibers/rb_fibers.h"

/* The block of a launcher for these fibers. */
VALUE rd_launcher_block(rd_fibers *fibers);

/* Begins the launcher, which the caller keeps. On the thread's own fiber. Raises. */
void rd_launcher_begin(rd_fibers *fibers, VALUE launcher);

/* Switches to a new fiber. Control is back when that waits or has ended. On the hub. Raises. */
void rd_launcher_start(rd_fibers *fibers, VALUE fiber);

#endif
