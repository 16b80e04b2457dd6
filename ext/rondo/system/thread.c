/* SPDX-License-Identifier: MIT
 *
 * The state of a thread from proc(5); see thread.h. Other systems do not say. It is the field
 * behind the name. The name is in parentheses and may contain parentheses itself.
 */
#include "system/thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "system/platform.h"

#ifdef RD_LINUX
#include <sys/prctl.h>
#endif

rd_thread rd_thread_self(void) {
    rd_thread self = {.id = 0};
#ifdef RD_LINUX
    self.id = gettid();
    if (pthread_getcpuclockid(pthread_self(), &self.cpu_clock) != 0) self.id = 0;
#endif
    return self;
}

rd_thread_state rd_thread_state_of(const rd_thread *thread) {
    char text[256]; /* number, name and state are far shorter */
    if (thread->id == 0) return RD_THREAD_UNKNOWN;
    snprintf(text, sizeof(text), "/proc/self/task/%d/stat", (int)thread->id);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return RD_THREAD_UNKNOWN;
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len <= 0) return RD_THREAD_UNKNOWN;
    text[len] = '\0';
    const char *behind_name = strrchr(text, ')');
    if (behind_name == NULL || behind_name[1] != ' ') return RD_THREAD_UNKNOWN;
    return behind_name[2] == 'R' ? RD_THREAD_RUNNABLE : RD_THREAD_SLEEPING;
}

static uint64_t used_ns(clockid_t clock) {
    struct timespec used;
    if (clock_gettime(clock, &used) != 0) return 0;
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

uint64_t rd_thread_cpu_ns(const rd_thread *thread) {
    return thread->id == 0 ? 0 : used_ns(thread->cpu_clock);
}

uint64_t rd_process_cpu_ns(void) {
    return used_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void rd_thread_be_punctual(void) {
#ifdef RD_LINUX
    prctl(PR_SET_TIMERSLACK, 1UL);
#endif
}
