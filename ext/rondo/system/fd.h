/* SPDX-License-Identifier: MIT
 *
 * Closing a descriptor after a failure, and the kind of file system a descriptor belongs to. Any
 * thread.
 */
#ifndef RD_SYSTEM_FD_H
#define RD_SYSTEM_FD_H

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

/* Closes, but keeps errno for the caller, which reports why the call before failed. */
static inline void rd_close_keeping_errno(int fd) {
    const int error = errno;
    close(fd);
    errno = error;
}

/* Whether the file system has no disk (tmpfs, ramfs). May block on a network file system. */
bool rd_fd_is_in_memory(int fd);

#endif
