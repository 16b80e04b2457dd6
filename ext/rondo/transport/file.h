/* SPDX-License-Identifier: MIT
 *
 * An open file that several answers are sent from at once. Counted, under the loop lock; with the
 * last reference its descriptor is closed by a thread that may wait for the disk.
 */
#ifndef RD_TRANSPORT_FILE_H
#define RD_TRANSPORT_FILE_H

#include "base/ledger.h"
#include "loop/disk.h"

/* What can be known of the kernel's memory of a file; see warming.h. */
typedef enum rd_file_memory {
    RD_FILE_WARM, /* it is there; of a whole file: nothing is known yet */
    RD_FILE_COLD,
    RD_FILE_BLIND,     /* the file system does not say */
    RD_FILE_IS_MEMORY, /* the file system has no disk */
} rd_file_memory;

typedef struct rd_file {
    rd_disk_job job; /* that closes it */
    rd_loop *loop;
    rd_ledger *ledger; /* or NULL: nobody counts it */
    uint64_t volume;   /* its st_dev */
    int fd;            /* -1: closed */
    uint32_t refs;
    rd_file_memory memory; /* WARM, BLIND or IS_MEMORY */
} rd_file;

/* Takes the descriptor over; one reference. `volume`: its st_dev. */
rd_file *rd_file_new(rd_loop *loop, int fd, uint64_t volume);

/* It counts as a descriptor that clients hold, until it is closed. */
void rd_file_count(rd_file *file, rd_ledger *ledger);
void rd_file_ref(rd_file *file);
void rd_file_unref(rd_file *file);

/* For a job that has the only reference: closes the descriptor at once. */
void rd_file_close(rd_file *file);

#endif
