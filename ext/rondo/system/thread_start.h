/* SPDX-License-Identifier: MIT
 *
 * Native threads beside those of Ruby: the watch thread, the control thread, the hub's thread and
 * those of the disk. Any thread.
 */
#ifndef RD_SYSTEM_THREAD_START_H
#define RD_SYSTEM_THREAD_START_H

#include <pthread.h>

/* Starts a thread with all signals blocked: signals are for the threads that run Ruby. Returns 0,
 * or an errno. */
int rd_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
