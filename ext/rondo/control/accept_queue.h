/* SPDX-License-Identifier: MIT
 *
 * How many connections wait in the kernel for a listening socket to accept them: the only queue of
 * a server that it cannot see by itself. Asks the kernel, takes no lock of the server. Any thread.
 */
#ifndef RD_CONTROL_ACCEPT_QUEUE_H
#define RD_CONTROL_ACCEPT_QUEUE_H

#include <stddef.h>
#include <sys/types.h>

#include "transport/listener.h"

typedef struct rd_accept_queue {
    char url[RD_LISTENER_URL_MAX];
    int fd;   /* somebody else's, who may have closed it meanwhile */
    int slot; /* of the worker that accepts from it; -1: everybody does */
    ino_t inode;
    int64_t depth; /* as measured; -1: not known */
    int64_t limit; /* what the kernel keeps at most; -1: not known */
} rd_accept_queue;

void rd_accept_queue_init(rd_accept_queue *queue, const char *url, int fd, int slot);

/* Fills in depth and limit. */
void rd_accept_queue_measure(rd_accept_queue *queue);

#endif
