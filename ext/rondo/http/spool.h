/* SPDX-License-Identifier: MIT
 *
 * A temporary file without a name that is written by the threads of loop/disk.h, one job at a time,
 * so in order. Opening and closing it are jobs as well: where a file is large, close(2) has much to
 * give back. Counted, under the loop lock: its body has a reference, and so has a job in flight.
 * Whoever lets go of it never waits for the disk. What the ledger counts, a descriptor and the
 * bytes, is given back when the file is closed.
 */
#ifndef RD_HTTP_SPOOL_H
#define RD_HTTP_SPOOL_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/ledger.h"
#include "loop/disk.h"

typedef struct rd_spool {
    rd_disk_job job;
    rd_loop *loop;
    rd_ledger *ledger;
    const char *folder;
    void (*on_written)(void *owner); /* a job is done */
    void *owner;
    rd_buffer writing; /* what the job in flight writes, or what could not be written */
    uint64_t stored;   /* bytes in the file */
    uint64_t reserved; /* bytes that it may have */
    size_t counted;    /* of `writing`, in the ledger, when its owner counts it no more */
    uint32_t refs;
    int fd;                /* -1: not opened yet */
    int error;             /* RD_ERR_*: nothing is written any more; not while a job is in flight */
    bool busy;             /* a job is in flight */
    atomic_bool abandoned; /* nobody wants it any more */
} rd_spool;

/* The folder for the files: TMPDIR, or /tmp. Looks into the environment, which other threads may
 * change: only where they cannot, and the caller copies it. */
const char *rd_spool_folder(void);

/* With one reference. `folder` outlives it. NULL: clients have all descriptors that they may. */
rd_spool *rd_spool_new(rd_loop *loop, rd_ledger *ledger, const char *folder,
                       void (*on_written)(void *owner), void *owner);

/* So many bytes more are to be written. 0, or RD_ERR_BODY_DISK: bodies have all that they may. */
int rd_spool_reserve(rd_spool *spool, uint64_t len);

/* Begins to write these bytes behind the others and takes them over, leaving `bytes` empty. Not
 * while it is busy, and not after an error. */
void rd_spool_write(rd_spool *spool, rd_buffer *bytes);

/* The owner's reference ends; on_written() is not called any more. */
void rd_spool_abandon(rd_spool *spool);

#endif
