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
} rd_file;

/* Takes the descriptor over; one reference. */
rd_file *rd_file_new(int fd);
void rd_file_ref(rd_file *file);
void rd_file_unref(rd_file *file);

#endif
