/* SPDX-License-Identifier: MIT
 *
 * An unnamed temporary file. The threads of loop/disk.h write it, one job at a time and so in
 * order. Opening and closing it are jobs as well: close(2) of a large file has much to free.
 * Counted, under the loop lock: the body has a reference, and so has a job in flight. Dropping a
 * reference never waits for the disk. What the ledger counts, a descriptor and the bytes, is given
 * back when the file is closed.
 *
 * A child of the process has copies of all descriptors. It keeps those of bodies that the
 * application can read on; the others would hold the disk's space for as long as the child lives.
 */
#ifndef RD_REQUEST_SPOOL_H
#define RD_REQUEST_SPOOL_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/ledger.h"
#include "loop/disk.h"

struct rd_spool;

/* Memory that waits for the next piece of a body: memory that is freed and allocated for each piece
 * costs a page fault for every 4 KB. */
#define RD_SPOOL_SPARES 4

/* The files of a server. All zero but the folder: there is none yet. */
typedef struct rd_spools {
    const char *folder; /* must outlive the files and the threads that write them */
    struct rd_spool *first;
    rd_buffer spares[RD_SPOOL_SPARES]; /* without bytes */
    uint32_t spare_count;
} rd_spools;

typedef struct rd_spool {
    struct rd_spool *next, **in_spools;
    rd_disk_job job;
    rd_loop *loop;
    rd_ledger *ledger;
    const char *folder; /* of rd_spools, which may be freed before a thread that is late uses it */
    void (*on_written)(void *owner); /* a job is done */
    void *owner;
    rd_buffer writing; /* what the job in flight writes, or what could not be written */
    uint64_t stored;   /* bytes in the file */
    uint64_t reserved; /* bytes that it may use */
    size_t counted;    /* of `writing`, in the ledger, after the owner has stopped counting them */
    uint32_t refs;
    int fd;                /* -1: not opened yet */
    int error;             /* RD_ERR_*: nothing is written any more; not changed while a job is
                            * in flight */
    bool busy;             /* a job is in flight */
    bool is_kept;          /* a child of the process keeps it, too */
    atomic_bool abandoned; /* the owner has gone */
} rd_spool;

/* The folder for the files: TMPDIR, or /tmp. Reads the environment, which other threads may change:
 * call it only where they cannot, and copy the result. */
const char *rd_spool_folder(void);

/* Returns a spool with one reference. NULL: clients have all descriptors that they may have. */
rd_spool *rd_spool_new(rd_loop *loop, rd_ledger *ledger, rd_spools *spools,
                       void (*on_written)(void *owner), void *owner);

/* Reserves disk space for `len` more bytes. Returns 0, or RD_ERR_BODY_DISK when bodies use all that
 * they may. */
int rd_spool_reserve(rd_spool *spool, uint64_t len);

/* Starts to write these bytes behind the others. Takes them over, and leaves `bytes` empty, with
 * the memory of the piece before. Not while it is busy, and not after an error. */
void rd_spool_write(rd_spool *spool, rd_buffer *bytes);

/* Drops the owner's reference; on_written() is not called any more. */
void rd_spool_abandon(rd_spool *spool);

/* Makes room for `len` more bytes, in spare memory if `buf` has too little. */
void rd_spools_lend(rd_spools *spools, rd_buffer *buf, size_t len);

/* Takes back memory beyond what the bytes need, and keeps it for the next piece. */
void rd_spools_take_back(rd_spools *spools, rd_buffer *buf);

/* Frees the spare memory. */
void rd_spools_clear(rd_spools *spools);

/* In a child of a fork: closes all files that are not to be kept. Nothing can be read of them any
 * more. */
void rd_spools_abandon(rd_spools *spools);

#endif
