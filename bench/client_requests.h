/* SPDX-License-Identifier: MIT
 *
 * The requests the client sends, laid one behind the other so that several leave with one send.
 * Belongs to client.c. */
#ifndef BENCH_CLIENT_REQUESTS_H
#define BENCH_CLIENT_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>

enum { RD_MAX_REQUESTS = 16384 };

typedef struct rd_requests {
    unsigned count;
    /* All requests one behind the other, repeated: any `depth` in a row are contiguous. */
    char *bytes;
    size_t *offsets; /* where each begins, over all repetitions; offsets[count] is one round */
} rd_requests;

/* Adds a whole request from a file. */
void rd_requests_add_file(rd_requests *requests, const char *path);

/* The parts of the one request when there is no file. */
void rd_requests_set_method(const char *method);
void rd_requests_set_body(const char *body);
void rd_requests_add_header(const char *line);
/* So many requests in turn, whose paths end with their numbers. */
void rd_requests_set_paths(unsigned count);

/* Makes the requests if no file was added, and lays them out for `depth` at once on the way. */
void rd_requests_lay(rd_requests *requests, const char *path, bool close_each, unsigned depth);

#endif
