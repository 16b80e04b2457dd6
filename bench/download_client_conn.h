/* SPDX-License-Identifier: MIT
 *
 * One connection that fetches something again and again and throws it away: counted, with status
 * and length checked. Belongs to download_client.c. */
#ifndef BENCH_DOWNLOAD_CLIENT_CONN_H
#define BENCH_DOWNLOAD_CLIENT_CONN_H

#include "load/load_answer.h"

#include <stdbool.h>
#include <stdint.h>

enum { RD_HEAD_ROOM = 8192 };

/* What all connections of a command have in common. */
typedef struct rd_errand {
    unsigned port;
    int poller;
    char request[512];
    uint64_t body_bytes; /* of each answer */
    uint64_t failed;
    const char *why; /* of the first failure; "" without one */
    rd_known_answer known;
} rd_errand;

typedef struct rd_download {
    int fd; /* -1 once it is lost */
    rd_load_answer answer;
    char held[RD_HEAD_ROOM]; /* the beginning of a head that came in pieces */
    size_t held_len;
    uint64_t answers, bytes; /* of whole bodies */
} rd_download;

void rd_errand_set(rd_errand *errand, const char *path, uint64_t body_bytes);
void rd_errand_fail(rd_errand *errand, const char *why);

/* Connects and sends the request. */
void rd_download_begin(rd_errand *errand, rd_download *download, int receive_bytes);

/* Reads once, and sends the request again when an answer is complete. A failure counts and ends the
 * connection. */
void rd_download_turn(rd_errand *errand, rd_download *download);

/* Bytes of bodies that arrived, including those of the unfinished answer. */
uint64_t rd_download_bytes(const rd_download *download);

/* Ends the connection, if there is one, with a reset. */
void rd_download_end(rd_download *download);

#endif
