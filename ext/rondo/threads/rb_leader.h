/* SPDX-License-Identifier: MIT
 *
 * An application thread. With the GVL.
 */
#ifndef RD_THREADS_LEADER_H
#define RD_THREADS_LEADER_H

#include "binding/rb_binding.h"

/* The main function of an application thread. The argument is the binding, with a reference. */
VALUE rd_leader_run_thread(void *binding);

#endif
