/* SPDX-License-Identifier: MIT
 *
 * A request body as far as it has been received: in memory up to a limit, whatever its framing,
 * beyond that in an unnamed temporary file. Bytes are appended under the loop lock as they arrive.
 * The file is written meanwhile (spool.h), in larger pieces, because a body may come in chunks of
 * one byte. What is not in the file yet is in memory, in a bounded queue: the caller pauses when
 * rd_body_is_full(). The application reads the body once it is complete and nothing is being
 * written.
 *
 *   0 ──────────── stored ─────────────── + writing ─────────────── size
 *   │ in the file     │ a job writes it       │ memory: comes next   │
 */
#ifndef RD_REQUEST_BODY_H
#define RD_REQUEST_BODY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ledger.h"
#include "request/spool.h"

#define RD_BODY_QUEUE_BYTES 262144 /* waiting to be written */

typedef struct rd_body {
    rd_buffer memory; /* the whole body, or what the spool does not have yet */
    rd_spool *spool;  /* NULL: there is no file */
    uint64_t size;
    size_t counted;                          /* bytes in memory that the ledger counts */
    rd_ledger *ledger;                       /* of the server */
    rd_spools *spools;                       /* where its file is, if it has one */
    void (*on_stored)(struct rd_body *body); /* some of it was written, or could not be */
} rd_body;

/* `spools` must outlive the body and its file, which may still be written after rd_body_clear(). */
void rd_body_init(rd_body *body, rd_ledger *ledger, rd_spools *spools);

/* Appends. Everything moves to a file beyond `memory_limit`, or when requests of all clients use
 * too much memory. Returns 0, or RD_ERR_BODY_DESCRIPTOR, RD_ERR_BODY_DISK, or the error of an
 * earlier write. After an error the bytes before can still be read, but nothing can be appended. */
int rd_body_append(rd_body *body, rd_loop *loop, const char *bytes, size_t len,
                   size_t memory_limit);

/* Whether the caller must wait for on_stored() before it appends more. */
bool rd_body_is_full(const rd_body *body);

/* Whether nothing is being written. */
static inline bool rd_body_is_stored(const rd_body *body) {
    return body->spool == NULL || !body->spool->busy;
}

/* RD_ERR_* when some of the body could not be written, else 0. */
int rd_body_error(const rd_body *body);

/* Copies up to `len` bytes from `offset`. Returns how many, 0 at the end, -1 with errno. Under the
 * lock, or when the body does not change any more. */
ssize_t rd_body_read(const rd_body *body, uint64_t offset, char *bytes, size_t len);

/* Never blocks: the file is closed later. */
void rd_body_clear(rd_body *body);

#endif
