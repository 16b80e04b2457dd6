/* SPDX-License-Identifier: MIT
 *
 * What every client needs, see client_base.h. */
#include "client_base.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Noreturn void rd_client_fail(const char *what) {
    if (errno)
        fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    else
        fprintf(stderr, "client: %s\n", what);
    exit(2);
}

uint64_t rd_client_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void rd_client_pin(const char *cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)strtoul(cpu, NULL, 10), &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0) rd_client_fail("--pin");
}
