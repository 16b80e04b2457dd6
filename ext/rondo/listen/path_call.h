/* SPDX-License-Identifier: MIT
 *
 * connect(2) to the path of a Unix socket, for dial.c. The kernel looks the path up, and may wait
 * for the disk on which it is, so a thread of loop/disk.h does it, two at a time. Under the loop
 * lock.
 */
#ifndef RD_LISTEN_PATH_CALL_H
#define RD_LISTEN_PATH_CALL_H

#include <stdatomic.h>

#include "base/ledger.h"
#include "listen/lookup.h"

typedef struct rd_path_call rd_path_call;

/* A socket that a thread connects. It has the socket until then. */
struct rd_path_call {
    rd_disk_job job;
    rd_list node; /* of those that a thread may still know */
    atomic_bool is_dropped;
    /* Later, unless it was dropped: the descriptor is the owner's again, and connect(2) came to
     * this; 0: it has succeeded. */
    void (*on_called)(rd_path_call *call, int fd, int code);
    void *owner;
    rd_ledger *ledger; /* counts the descriptor, and still does in on_called() */
    uint32_t *live;    /* counts these calls */
    int fd;
    int code;
    rd_target target;
};

/* Whether connecting to it may wait for a disk: an abstract name is in no folder. */
bool rd_target_is_path(const rd_target *target);

/* The caller sets on_called, owner, ledger and live. */
rd_path_call *rd_path_call_new(int fd, const rd_target *target);

/* After on_called() the call is not the caller's any more. */
void rd_path_call_begin(rd_loop *loop, rd_path_call *call, rd_list *all);

/* The answer is not wanted any more: the descriptor is closed when the thread is back. */
void rd_path_call_drop(rd_path_call *call);

#endif
