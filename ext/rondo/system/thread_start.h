/* SPDX-License-Identifier: MIT
 *
 * Native threads beside Ruby's: the watch thread, the control thread, the hub's, those of the disk.
 * Any thread.
 */
#ifndef RD_SYSTEM_THREAD_START_H
#define RD_SYSTEM_THREAD_START_H

#include <pthread.h>

/* Starts a thread that no signal interrupts: signals are for the threads that know Ruby. 0, or an
 * errno. */
int rd_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
