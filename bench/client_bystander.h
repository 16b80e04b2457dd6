/* SPDX-License-Identifier: MIT
 *
 * Plain HTTP requests beside something else, in an open loop: each is due at its time whatever
 * became of those before, and its wait counts from then. They may go over TLS. Belongs to
 * push_client.c and download_client.c, which turn it between two small batches of their own work,
 * so that the waits are the server's. */
#ifndef BENCH_CLIENT_BYSTANDER_H
#define BENCH_CLIENT_BYSTANDER_H

#include "load/load_answer.h"
#include "load/latency.h"
#include "client_tls.h"

#include <stdbool.h>
#include <stdint.h>

enum { RD_BYSTANDERS = 64 };

typedef struct rd_bystander_conn {
    int fd;
    rd_tls_client *tls; /* NULL: plain */
    bool asked;
    uint64_t due_ns;
    char bytes[2048]; /* an answer that came in pieces */
    size_t len;
    rd_load_answer answer;
} rd_bystander_conn;

typedef struct rd_bystander {
    const char *request;
    uint64_t body_bytes; /* of each answer; anything else is an error */
    int poller, timer;   /* the poller becomes readable when a turn has work to do */
    uint64_t next_ns, interval_ns, stop_ns; /* requests due at stop_ns or later are not sent */
    uint64_t answered, errors;
    rd_latency latency;
    rd_known_answer known;
    rd_bystander_conn conns[RD_BYSTANDERS];
} rd_bystander;

/* The answer of hello.ru and similar applications to a plain request. */
extern const char RD_HELLO_REQUEST[];
enum { RD_HELLO_BYTES = 13 };

/* Connects to that port of the loopback. */
void rd_bystander_open(rd_bystander *bystander, unsigned port, rd_tls_mode tls);

/* Begins to count anew. The first request is due at once, then this many a second. The request must
 * live as long as the bystander. */
void rd_bystander_begin(rd_bystander *bystander, unsigned per_second, const char *request,
                        uint64_t body_bytes);

/* Sends the requests that are due, and reads what has come; never blocks. */
void rd_bystander_turn(rd_bystander *bystander);

/* No further request becomes due. Earlier ones are still sent and awaited, but not for ever: one
 * without an answer then is an error. */
void rd_bystander_end(rd_bystander *bystander);

void rd_bystander_close(rd_bystander *bystander);

#endif
