/* SPDX-License-Identifier: MIT
 *
 * What another thread of this process is doing, as the kernel sees it. A thread that has not
 * reported for a while may compute, sleep, or be ready but without a CPU. The watch thread must
 * tell these apart.
 */
#ifndef RD_SYSTEM_THREAD_H
#define RD_SYSTEM_THREAD_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

typedef struct rd_thread {
    pid_t id; /* 0: no thread, or the system does not say */
    clockid_t cpu_clock;
} rd_thread;

typedef enum rd_thread_state {
    RD_THREAD_UNKNOWN,  /* no thread, or the system does not say */
    RD_THREAD_RUNNABLE, /* on a CPU, or waiting for one */
    RD_THREAD_SLEEPING, /* waiting for anything else: input, a lock, time, a debugger */
} rd_thread_state;

/* The calling thread. Makes a system call: keep the result. */
rd_thread rd_thread_self(void);

/* Reads /proc/self/task/ID/stat, see proc(5). Takes about 10 µs. */
rd_thread_state rd_thread_state_of(const rd_thread *thread);

/* CPU time that the thread has used, in ns; 0 when it is unknown. */
uint64_t rd_thread_cpu_ns(const rd_thread *thread);

/* Sleeps of the calling thread end on time from now on. By default the kernel may let them last 50
 * us longer, in order to wake several threads at once. */
void rd_thread_be_punctual(void);

/* CPU time that all threads of this process have used, in ns. */
uint64_t rd_process_cpu_ns(void);

#endif
