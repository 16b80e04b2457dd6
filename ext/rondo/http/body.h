/* SPDX-License-Identifier: MIT
 *
 * A request body as it has come so far: in memory up to a limit, whatever its framing, beyond that
 * in a temporary file that has no name, which is written in larger pieces: a body may come in
 * chunks of one byte. Written under the loop lock while it comes; read by the application once it
 * is complete, or up to what has come.
 */
#ifndef RD_HTTP_BODY_H
#define RD_HTTP_BODY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"

typedef struct rd_body {
    rd_buffer memory; /* all of it, or what the file has not got yet */
    int fd;           /* -1: no file */
    uint64_t stored;  /* in the file */
    uint64_t size;
} rd_body;

void rd_body_init(rd_body *body);

/* Appends; beyond `memory_limit` everything moves to the file. 0, or RD_ERR_DISK_FULL: what came
 * before can still be read, nothing can be appended. */
int rd_body_append(rd_body *body, const char *bytes, size_t len, size_t memory_limit);

/* Copies up to `len` bytes from `offset`; how many, 0 at the end, -1 with errno. */
ssize_t rd_body_read(const rd_body *body, uint64_t offset, char *bytes, size_t len);

void rd_body_clear(rd_body *body);

#endif
