/* SPDX-License-Identifier: MIT
 *
 * Parts of files that are about to be sent: sendfile(2) waits for the disk if they are not in the
 * kernel's memory. So a connection sends what a check has found in memory, and for the rest waits
 * for a job that reads it (loop/disk.h). Under the loop lock.
 *
 * The check is preadv2(2) of one byte with RWF_NOWAIT. If the file system does not support that
 * flag (network file systems, some of containers), a job reads each part before it is sent. A file
 * system that is in memory needs neither.
 */
#ifndef RD_TRANSPORT_WARMING_H
#define RD_TRANSPORT_WARMING_H

#include "loop/disk.h"
#include "transport/conn.h"

/* Whether `len` bytes at the beginning of this part of a file can be sent now. */
bool rd_warming_is_warm(rd_chunk *part, size_t len);

/* A job that reads what is about to be sent. It has a reference to the file. */
typedef struct rd_warming {
    rd_disk_job job;
    void (*on_warm)(void *owner); /* it was read or failed: sending will report it */
    void *owner;
    rd_file *file;
    off_t offset;
    size_t len;
    bool finds_out; /* whether the file system is in memory */
} rd_warming;

/* Begins to read `len` bytes at the beginning of this part, or more if that saves a job. Frees
 * itself before on_warm(). */
void rd_warming_begin(rd_chunk *part, size_t len, void (*on_warm)(void *owner), void *owner);

/* Whether a connection may send `len` bytes of the part at the front of its queue. If not, a job
 * reads them, and the connection is flushed again later. This time does not count for its peer. */
bool rd_warming_may_send(rd_conn *conn, rd_chunk *part, size_t len);

#endif
