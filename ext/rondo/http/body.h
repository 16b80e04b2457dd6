/* SPDX-License-Identifier: MIT
 *
 * A request body as it has come so far: in memory up to a limit, whatever its framing, beyond that
 * in a temporary file that has no name. It is appended to under the loop lock while it comes. The
 * file is written meanwhile (spool.h), in larger pieces: a body may come in chunks of one byte.
 * What the file does not have yet is in memory, a bounded queue: the caller pauses when
 * rd_body_is_full(). The application reads it once it is complete and nothing is being written.
 *
 *   0 ──────────── stored ─────────────── + writing ─────────────── size
 *   │ in the file     │ a job writes it       │ memory: comes next   │
 */
#ifndef RD_HTTP_BODY_H
#define RD_HTTP_BODY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ledger.h"
#include "http/spool.h"

#define RD_BODY_QUEUE_BYTES 262144 /* waiting to be written */

typedef struct rd_body {
    rd_buffer memory; /* all of it, or what the spool was not given yet */
    rd_spool *spool;  /* NULL: there is no file */
    uint64_t size;
    size_t counted;                          /* of the bytes in memory, in the ledger */
    rd_ledger *ledger;                       /* of the server */
    const char *folder;                      /* of the file */
    void (*on_stored)(struct rd_body *body); /* some of it was written, or could not be */
} rd_body;

/* `folder` outlives it and its file, which may be written after rd_body_clear(). */
void rd_body_init(rd_body *body, rd_ledger *ledger, const char *folder);

/* Appends; beyond `memory_limit`, or when requests of all clients take too much memory, everything
 * moves to a file. 0, or RD_ERR_BODY_DESCRIPTOR,
 * RD_ERR_BODY_DISK, or the error of an earlier write: what came before can still be read, nothing
 * can be appended. */
int rd_body_append(rd_body *body, rd_loop *loop, const char *bytes, size_t len,
                   size_t memory_limit);

/* Whether nothing more is to be appended until on_stored(). */
bool rd_body_is_full(const rd_body *body);

/* Whether nothing is being written. */
static inline bool rd_body_is_stored(const rd_body *body) {
    return body->spool == NULL || !body->spool->busy;
}

/* RD_ERR_* when some of it could not be written, else 0. */
int rd_body_error(const rd_body *body);

/* Copies up to `len` bytes from `offset`; how many, 0 at the end, -1 with errno. Under the lock, or
 * when nobody changes it any more. */
ssize_t rd_body_read(const rd_body *body, uint64_t offset, char *bytes, size_t len);

/* Never waits: the file is closed later. */
void rd_body_clear(rd_body *body);

#endif
