/* SPDX-License-Identifier: MIT
 *
 * What the clients of the benchmarks need: a clock, a CPU of their own, connections, a way to give
 * up. Belongs to client.c, push_client.c, download_client.c, http2_client.c and
 * restart_client.c. */
#ifndef BENCH_CLIENT_BASE_H
#define BENCH_CLIENT_BASE_H

#include <stdint.h>
#include <sys/socket.h>

/* Ends the program with the error (and errno if it is set). */
_Noreturn void rd_client_fail(const char *what);

/* How long a client waits for a server that does not go on, before it gives up: on a busy machine a
 * server may get no CPU for seconds. */
#define RD_CLIENT_PATIENCE_S  20
#define RD_CLIENT_PATIENCE_NS (RD_CLIENT_PATIENCE_S * UINT64_C(1000000000))

uint64_t rd_client_now_ns(void);

/* Keeps the process on that CPU, given as on the command line. */
void rd_client_pin(const char *cpu);

/* A blocking connection to that port of the loopback; receive_bytes limits its buffer if it is not
 * 0. Returns -1 with errno if it was refused. */
int rd_client_connect(unsigned port, int receive_bytes);

/* The address of that Unix socket; returns its length. */
socklen_t rd_client_unix_address(struct sockaddr_storage *address, const char *path);

/* Closes with a reset, so that nothing waits in the kernel for the next run. */
void rd_client_abort(int fd);

#endif
