/* SPDX-License-Identifier: MIT
 *
 * Closing a descriptor after a failure, its flags, the kind of file system it belongs to, and files
 * without a name. Any thread.
 */
#ifndef RD_SYSTEM_FD_H
#define RD_SYSTEM_FD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* Closes, but keeps errno for the caller, which reports why the call before failed. */
static inline void rd_close_keeping_errno(int fd) {
    const int error = errno;
    close(fd);
    errno = error;
}

/* Whether the file system has no disk (tmpfs, ramfs). May block on a network file system. */
bool rd_fd_is_in_memory(int fd);

/* No program inherits the descriptor, and it blocks or not. For systems where the call that opened
 * it cannot say so. Returns 0, or -1 with errno set. */
int rd_fd_prepare(int fd, bool blocks);

/* A file that only its descriptor leads to, which no program inherits. It is memory. Where the
 * system has no such files, or forbids them, it is one of /dev/shm, else of /tmp, whose name is
 * gone: that cannot be sealed. Returns -1 with errno on failure. */
int rd_fd_nameless(const char *name, bool *can_be_sealed);

/* The same for what no disk may have: on Linux it fails with ENOTSUP if the file has one. */
int rd_fd_nameless_secret(const char *name, bool *can_be_sealed);

/* Gives a new nameless file its size. One that cannot be sealed gets its room at once, because
 * others may fill the file system later. Returns 0, or -1 with errno set: ENOSPC. */
int rd_fd_size(int fd, size_t len, bool can_be_sealed);

#endif
