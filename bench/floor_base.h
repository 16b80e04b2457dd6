/* SPDX-License-Identifier: MIT
 *
 * What every floor of the tables needs: a listening socket in an epoll, connections. Belongs to
 * floor.c, push_floor.c and file_floor.c. */
#ifndef BENCH_FLOOR_BASE_H
#define BENCH_FLOOR_BASE_H

enum { RD_FLOOR_EVENTS = 256, RD_FLOOR_MAX_FD = 65536 };

typedef struct rd_floor {
    int poller, listener;
} rd_floor;

/* Ends the program with the error and errno. */
_Noreturn void rd_floor_fail(const char *what);

/* Listens on 127.0.0.1 at the port given as on the command line (0 or nothing takes a free one) and
 * prints it; SIGPIPE is ignored from now on. */
rd_floor rd_floor_open(const char *port);

/* Returns the next connection that waits, watched and below RD_FLOOR_MAX_FD; -1 if there is none.
 */
int rd_floor_accept(const rd_floor *floor);

#endif
