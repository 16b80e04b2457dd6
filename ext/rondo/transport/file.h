/* SPDX-License-Identifier: MIT
 *
 * An open file that several answers are sent from at once. Counted, under the loop lock; its
 * descriptor is closed with the last reference.
 */
#ifndef RD_TRANSPORT_FILE_H
#define RD_TRANSPORT_FILE_H

#include <stdint.h>

typedef struct rd_file {
    int fd;
    uint32_t refs;
    uint32_t *open; /* or NULL */
} rd_file;

/* Takes the descriptor over; one reference. */
rd_file *rd_file_new(int fd);

/* Is one of `open` from now on, until it is closed. */
void rd_file_count(rd_file *file, uint32_t *open);
void rd_file_ref(rd_file *file);
void rd_file_unref(rd_file *file);

#endif
