/* SPDX-License-Identifier: MIT
 *
 * Load for a server of this machine: connections in a closed loop, of three kinds, on the calling
 * thread. For `rondo bench` (ruby/rb_load.c). A server never runs any of this. The caller checks
 * that the address is a loopback address.
 */
#ifndef RD_LOAD_LOAD_H
#define RD_LOAD_LOAD_H

#include "base/slice.h"
#include "load/latency.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { RD_LOAD_CONNECTIONS = 1024, RD_LOAD_DEPTH = 64, RD_LOAD_REQUESTS = 64 };

typedef enum rd_load_kind {
    RD_LOAD_KEPT,  /* one request at a time on a connection that is kept */
    RD_LOAD_PIPED, /* `depth` requests at a time on a connection that is kept */
    RD_LOAD_FRESH, /* a new connection for each request */
    RD_LOAD_KINDS,
} rd_load_kind;

/* What is to be done; the caller keeps the bytes. */
typedef struct rd_load_plan {
    struct sockaddr_storage address;
    socklen_t address_len;
    unsigned connections[RD_LOAD_KINDS];
    unsigned depth; /* 1 to RD_LOAD_DEPTH */
    /* Whole requests, sent in turn: for connections that are kept, and the same ones with
     * "Connection: close". */
    const rd_slice *requests, *last_requests;
    unsigned request_count; /* of each of them */
    uint64_t measure_ns;    /* no request begins after that */
    uint64_t patience_ns;   /* how long the answers are awaited after that */
} rd_load_plan;

/* What one connection, or one place of new connections, has seen. */
typedef struct rd_load_line {
    rd_load_kind kind;
    uint64_t answers;
    rd_latency waits; /* of a new connection: from before connect() */
} rd_load_line;

typedef struct rd_load_result {
    uint64_t answers; /* all */
    uint64_t in_time; /* of them: those that came before the time was over */
    uint64_t statuses[6];
    uint64_t broken;     /* connections that ended, or said what is not HTTP/1, before an answer */
    uint64_t refused;    /* connect() failed */
    uint64_t unanswered; /* requests without an answer when patience was over */
    uint64_t reconnects; /* kept connections that the server closed between two requests */
    uint64_t unclosed;   /* connections that the server did not close after "Connection: close" */
    uint64_t bytes, elapsed_ns;
    uint64_t cpu_ns; /* of this thread */
    rd_latency waits;
    unsigned line_count;
    rd_load_line *lines;
} rd_load_result;

/* Returns 0, or -1 with errno if there is no poller or no socket. It ends early when *stop is set,
 * and after some thousand failures. The result is to be cleared in either case. */
int rd_load_run(const rd_load_plan *plan, const atomic_bool *stop, rd_load_result *result);

void rd_load_result_clear(rd_load_result *result);

#endif
