/* SPDX-License-Identifier: MIT
 *
 * Descriptors on the way out of a failure, and what file system they are of. Any thread.
 */
#ifndef RD_SYSTEM_FD_H
#define RD_SYSTEM_FD_H

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

/* The caller is still to tell why it failed. */
static inline void rd_close_keeping_errno(int fd) {
    const int error = errno;
    close(fd);
    errno = error;
}

/* Whether the file system has no disk (tmpfs, ramfs). May wait where it is one of a network. */
bool rd_fd_is_in_memory(int fd);

#endif
