/* SPDX-License-Identifier: MIT
 *
 * What every client of the benchmarks needs: a clock, a CPU of its own, a way to give up. Belongs
 * to client.c and push_client.c. */
#ifndef BENCH_CLIENT_BASE_H
#define BENCH_CLIENT_BASE_H

#include <stdint.h>

/* Ends the program with what went wrong (and errno when it is set). */
_Noreturn void rd_client_fail(const char *what);

uint64_t rd_client_now_ns(void);

/* Keeps the process on that CPU, given as on the command line. */
void rd_client_pin(const char *cpu);

#endif
