/* SPDX-License-Identifier: MIT
 *
 * Every crossing of the GVL: letting go of it to wait, and nothing else. Functions that run
 * without it end in _nogvl.
 */
#ifndef RD_RUBY_GVL_H
#define RD_RUBY_GVL_H

#include "ruby/rb_binding.h"

/* Sleeps in the poller without the GVL; a rd_server_wait. Never raises: interrupts are looked at
 * by rd_gvl_check_interrupts() once no C frame of the core is on the stack. */
void rd_gvl_wait(rd_server *server, int64_t timeout_us);

/* Lets other threads have their share and runs trap handlers; may raise. Not under the lock. */
void rd_gvl_check_interrupts(void);

/* For threads that do not run the loop: sleeps until rd_gvl_announce_change() has been called
 * after `seen` was read from binding->change_count. May raise. */
uint64_t rd_gvl_change_count(rd_binding *binding);
void rd_gvl_await_change(rd_binding *binding, uint64_t seen);
void rd_gvl_announce_change(rd_binding *binding);

#endif
