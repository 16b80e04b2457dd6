/* SPDX-License-Identifier: MIT
 *
 * What the parts of the HTTP/2 client share: what it was asked to do, what it counts, its sockets.
 * http2_client.c has the loop and the report, http2_client_streams.c connections of HTTP/2,
 * http2_client_plain.c those of HTTP/1.1 beside them, http2_client_wire.c sockets. */
#ifndef BENCH_HTTP2_CLIENT_H
#define BENCH_HTTP2_CLIENT_H

#include "load/latency.h"
#include "client_tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The command line. */
typedef struct rd_plan {
    unsigned port;
    unsigned connections, streams; /* of HTTP/2 */
    unsigned beside;               /* connections of HTTP/1.1 */
    bool tls, told, idle;          /* idle: one request on each connection, then none */
    double seconds;
    uint64_t limit, ping_ns;     /* requests; 0: no limit. Time between two PINGs; 0: none */
    uint64_t body_bytes;         /* of each request; 0: GET */
    const char *path, *download; /* `download`: what one stream more of each connection fetches */
} rd_plan;

/* What the connections of one version have counted. */
typedef struct rd_tally {
    uint64_t completed, non_2xx, errors, refused, bytes_in, body_min, body_max;
    rd_latency latency;
} rd_tally;

/* The counts of one connection: its answers, and the size of the last. */
typedef struct rd_score {
    uint64_t completed, last_body;
} rd_score;

typedef struct rd_client {
    rd_plan plan;
    int poller;
    bool stopping;
    uint64_t issued, connect_errors;
    rd_tally streams, beside;
    uint64_t downloads, download_bytes;
    rd_latency pings;
} rd_client;

/* Whether a further request may be sent; counts it. */
bool rd_client_may_ask(rd_client *client);

/* An answer is there. */
void rd_tally_answer(rd_tally *tally, rd_score *score, bool is_2xx, uint64_t body_bytes,
                     uint64_t waited_ns);

/* ---- sockets ---- */

/* A socket of the loop, and the bytes that it still has to send. */
typedef struct rd_wire {
    rd_client *client;
    void (*on_ready)(struct rd_wire *wire);
    int fd;             /* -1: not open */
    rd_tls_client *tls; /* NULL: plain */
    bool http2, is_open, wants_write;
    char *out;
    size_t out_len, out_size;
} rd_wire;

/* Begins to connect. Returns false and counts if that fails at once. */
bool rd_wire_open(rd_wire *wire);

/* Whether the connection stands, with its handshake. Goes on with both. -1: it failed. */
int rd_wire_ready(rd_wire *wire);

/* Room for so many bytes at the end of what is to be sent. */
char *rd_wire_room(rd_wire *wire, size_t len);

/* Sends what it can. An error is left to the next receive, which reports it. */
void rd_wire_flush(rd_wire *wire);

/* As recv(2). */
ssize_t rd_wire_receive(rd_wire *wire, char *bytes, size_t len);

void rd_wire_close(rd_wire *wire);

/* ---- connections of HTTP/2 ---- */

typedef struct rd_streams_conn rd_streams_conn;

rd_streams_conn *rd_streams_new(rd_client *client, unsigned count);

/* Opens those that are not open, and sends the PINGs that are due. */
void rd_streams_sweep(rd_streams_conn *conns, unsigned count, uint64_t now);

/* Requests whose answers are still to come. */
unsigned rd_streams_waiting(const rd_streams_conn *conns, unsigned count);

/* The longest wait includes those that are not over. Requests are errors if `lost`. */
void rd_streams_count_waits(rd_streams_conn *conns, unsigned count, bool lost);

/* The counts of one. */
rd_score *rd_streams_score(rd_streams_conn *conns, unsigned index);

/* ---- connections of HTTP/1.1 beside them ---- */

typedef struct rd_plain_conn rd_plain_conn;

rd_plain_conn *rd_plain_new(rd_client *client, unsigned count);
void rd_plain_sweep(rd_plain_conn *conns, unsigned count);
unsigned rd_plain_waiting(const rd_plain_conn *conns, unsigned count);
void rd_plain_count_waits(rd_plain_conn *conns, unsigned count, bool lost);
rd_score *rd_plain_score(rd_plain_conn *conns, unsigned index);

#endif
