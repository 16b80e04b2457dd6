/* SPDX-License-Identifier: MIT
 *
 * An open file that several answers can send at once. It has a reference count, under the loop
 * lock. When the last reference goes, a thread that may wait for the disk closes the descriptor.
 */
#ifndef RD_TRANSPORT_FILE_H
#define RD_TRANSPORT_FILE_H

#include "base/ledger.h"
#include "loop/disk.h"

/* What is known about a file in the kernel's memory; see warming.h. */
typedef enum rd_file_memory {
    RD_FILE_WARM, /* it is in memory; of a whole file: nothing is known yet */
    RD_FILE_COLD,
    RD_FILE_BLIND,     /* the file system does not say */
    RD_FILE_IS_MEMORY, /* the file system has no disk */
} rd_file_memory;

typedef struct rd_file {
    rd_disk_job job; /* closes it */
    rd_loop *loop;
    rd_ledger *ledger; /* NULL: it is not counted */
    uint64_t volume;   /* its st_dev */
    int fd;            /* -1: closed */
    uint32_t refs;
    rd_file_memory memory; /* WARM, BLIND or IS_MEMORY */
} rd_file;

/* Takes over the descriptor. Returns one reference. `volume`: its st_dev. */
rd_file *rd_file_new(rd_loop *loop, int fd, uint64_t volume);

/* Counts the file as a descriptor of clients until it is closed. */
void rd_file_count(rd_file *file, rd_ledger *ledger);
void rd_file_ref(rd_file *file);
void rd_file_unref(rd_file *file);

/* For a job that has the only reference: closes the descriptor at once. */
void rd_file_close(rd_file *file);

#endif
