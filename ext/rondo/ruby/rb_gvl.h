/* SPDX-License-Identifier: MIT
 *
 * Every crossing of the GVL: letting go of it to wait, and nothing else. Functions that run
 * without it end in _nogvl.
 */
#ifndef RD_RUBY_GVL_H
#define RD_RUBY_GVL_H

#include <ruby.h>

#include "server/server.h"

/* Sleeps in the poller without the GVL; a rd_server_wait. Never raises: interrupts are looked at
 * by rd_gvl_check_interrupts() once no C frame of the core is on the stack. */
void rd_gvl_wait(rd_server *server, int64_t timeout_us);

/* Lets other threads have their share and runs trap handlers; may raise. Not under the lock. */
void rd_gvl_check_interrupts(void);

/* The same, without raising: the state for rb_jump_tag(), or 0. */
int rd_gvl_protected_interrupts(void);

/* Waits for a post, at most so long (-1: for ever). Whether one came; false also when an interrupt
 * is to be looked at. Never raises. */
bool rd_gvl_wait_semaphore(rd_semaphore *semaphore, int64_t timeout_ms);

/* Runs what may take its time, such as opening a file. False: an interrupt is to be looked at
 * first; nothing was run, nor any other thread. Never raises. */
bool rd_gvl_try(void (*run_nogvl)(void *argument), void *argument);

/* The same, after the interrupts. Raises, if at all, before it began. */
void rd_gvl_run(void (*run_nogvl)(void *argument), void *argument);

#endif
