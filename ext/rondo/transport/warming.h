/* SPDX-License-Identifier: MIT
 *
 * Parts of files that are about to be sent: sendfile(2) waits for the disk when they are not in the
 * memory of the kernel. So a connection sends what a look has found there, and for the rest waits
 * for a job that reads it (loop/disk.h). Under the loop lock.
 *
 * The look is preadv2(2) with RWF_NOWAIT of one byte. Where the file system does not know that flag
 * (network file systems, some of containers), each part is read by a job before it is sent; one
 * that is in memory itself needs neither.
 */
#ifndef RD_TRANSPORT_WARMING_H
#define RD_TRANSPORT_WARMING_H

#include "loop/disk.h"
#include "transport/conn.h"

/* Whether `len` bytes at the beginning of this part of a file can be sent now. */
bool rd_warming_is_warm(rd_chunk *part, size_t len);

/* A job that reads what is about to be sent. The holder's connection has it, and it has a reference
 * to the file. */
typedef struct rd_warming {
    rd_disk_job job;
    void (*on_warm)(void *owner); /* read, or could not be: sending it will tell */
    void *owner;
    rd_file *file;
    off_t offset;
    size_t len;
    bool finds_out; /* what kind of file system it is */
} rd_warming;

/* Begins to read `len` bytes at the beginning of this part, or more where that saves a job. Frees
 * itself before on_warm(). */
void rd_warming_begin(rd_chunk *part, size_t len, void (*on_warm)(void *owner), void *owner);

/* Whether a connection may send `len` bytes of the part at the front of its queue. If not, they are
 * read meanwhile, which is not its peer's time, and it is flushed again later. */
bool rd_warming_may_send(rd_conn *conn, rd_chunk *part, size_t len);

#endif
