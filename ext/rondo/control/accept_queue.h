/* SPDX-License-Identifier: MIT
 *
 * How many connections wait in the kernel for a listening socket to accept them. A server cannot
 * see this queue by itself. Asks the kernel, takes no lock of the server. Any thread.
 */
#ifndef RD_CONTROL_ACCEPT_QUEUE_H
#define RD_CONTROL_ACCEPT_QUEUE_H

#include <stddef.h>
#include <sys/types.h>

#include "listen/listener.h"

typedef struct rd_accept_queue {
    char url[RD_LISTENER_URL_MAX];
    int fd;   /* owned by another part, which may have closed it meanwhile */
    int slot; /* of the worker that accepts from it; -1: all workers do */
    ino_t inode;
    int64_t depth; /* as measured; -1: unknown */
    int64_t limit; /* the most that the kernel keeps; -1: unknown */
} rd_accept_queue;

void rd_accept_queue_init(rd_accept_queue *queue, const char *url, int fd, int slot);

/* Measures and sets depth and limit. */
void rd_accept_queue_measure(rd_accept_queue *queue);

#endif
