/* SPDX-License-Identifier: MIT
 *
 * The thread that called run(). With the GVL.
 */
#ifndef RD_THREADS_SUPERVISOR_H
#define RD_THREADS_SUPERVISOR_H

#include "binding/rb_binding.h"

/* Serves until the server has stopped. Then raises what was raised into this thread meanwhile. */
void rd_supervisor_run(rd_binding *binding);

/* What a stop waits for: [requests], or [requests, method, path, seconds] with the oldest call. */
VALUE rd_supervisor_in_flight(rd_binding *binding);

#endif
