/* SPDX-License-Identifier: MIT
 *
 * Every crossing of the GVL: releasing it to wait, and nothing else. Functions that run without it
 * end in _nogvl.
 */
#ifndef RD_RUBY_GVL_H
#define RD_RUBY_GVL_H

#include <ruby.h>

#include "server/server.h"

/* Sleeps in the poller without the GVL; a rd_server_wait. Never raises: the caller runs
 * rd_gvl_check_interrupts() when no C frame of the core is on the stack. */
void rd_gvl_wait(rd_server *server, int64_t timeout_us);

/* Lets other threads run and runs trap handlers. May raise. Not under the lock. */
void rd_gvl_check_interrupts(void);

/* The same, but never raises: returns the state for rb_jump_tag(), or 0. */
int rd_gvl_protected_interrupts(void);

/* Waits for a post, at most timeout_ms (-1: for ever). True: a post came. False: time is up, or an
 * interrupt is pending. Never raises. */
bool rd_gvl_wait_semaphore(rd_semaphore *semaphore, int64_t timeout_ns);

/* Runs a function that may take long, such as opening a file, without the GVL. False: an interrupt
 * is pending; neither the function nor another thread was run. Never raises. */
bool rd_gvl_try(void (*run_nogvl)(void *argument), void *argument);

/* The same, but checks interrupts first. If it raises, the function has not begun. */
void rd_gvl_run(void (*run_nogvl)(void *argument), void *argument);

/* Runs a function that takes long by design. An interrupt calls stop_nogvl on another thread, and
 * the function must return soon after that. May raise afterwards. */
void rd_gvl_run_until_stopped(void (*run_nogvl)(void *argument), void (*stop_nogvl)(void *argument),
                              void *argument);

/* Prepares for rd_gvl_call_for_way(). False: Ruby has no room for it. Under the GVL. */
bool rd_gvl_can_call_for_way(void);

/* The thread that has the GVL releases it for a moment, when it checks interrupts next. Any thread,
 * also one that Ruby does not know. */
void rd_gvl_call_for_way(void);

#endif
