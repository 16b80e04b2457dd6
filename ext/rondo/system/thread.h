/* SPDX-License-Identifier: MIT
 *
 * What another thread of this process is doing, as the kernel sees it. A thread that has not been
 * heard of for a while computes, sleeps, or would go on if only it had a CPU: three different
 * things to whoever waits for it.
 */
#ifndef RD_SYSTEM_THREAD_H
#define RD_SYSTEM_THREAD_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

typedef struct rd_thread {
    pid_t id; /* 0: nobody */
    clockid_t cpu_clock;
} rd_thread;

typedef enum rd_thread_state {
    RD_THREAD_UNKNOWN,  /* nobody, or the system does not say */
    RD_THREAD_RUNNABLE, /* on a CPU, or waiting for one */
    RD_THREAD_SLEEPING, /* waiting for anything else: input, a lock, the time, a debugger */
} rd_thread_state;

/* The thread that calls. One system call: keep what it says. */
rd_thread rd_thread_self(void);

/* proc(5), /proc/self/task/ID/stat; about 10 µs. */
rd_thread_state rd_thread_state_of(const rd_thread *thread);

/* CPU time it has used, in ns; 0 when nobody can tell. */
uint64_t rd_thread_cpu_ns(const rd_thread *thread);

#endif
