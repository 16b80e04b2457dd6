/* SPDX-License-Identifier: MIT
 *
 * Rondo::Task: a block that runs on an application thread without a request (request/tasks.h). The
 * server that runs in this process has it, or it is remembered for the next one. With the GVL.
 */
#ifndef RD_APP_TASK_H
#define RD_APP_TASK_H

#include "binding/rb_binding.h"

/* The server runs: gives it the tasks that were remembered. */
void rd_task_begin_remembered(rd_binding *binding);

/* The server has stopped: it has no tasks any more. Reports how many have never begun. */
void rd_task_end_all(rd_binding *binding);

/* Gives back the task that has returned, unless it is NULL, and takes the next one. NULL: there is
 * none for this thread in this turn, or `goes_on` is false. */
rd_task *rd_task_next(rd_binding *binding, rd_task *before, bool goes_on);

/* Its Rondo::Task. Who runs it keeps that until it is given back: a server that ends forgets it. */
VALUE rd_task_object(const rd_binding *binding, const rd_task *task);

/* Calls the block, and reports what it raises. Returns the state of a Thread#kill, or 0. */
int rd_task_run(rd_binding *binding, const rd_task *task);

void rd_init_task(VALUE rondo);

#endif
