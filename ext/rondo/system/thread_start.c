/* SPDX-License-Identifier: MIT
 *
 * A new thread inherits the signal mask of the thread that starts it.
 */
#include "system/thread_start.h"

#include <signal.h>

int rd_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}
