/* SPDX-License-Identifier: MIT
 *
 * Descriptors on the way out of a failure. Any thread.
 */
#ifndef RD_BASE_FD_H
#define RD_BASE_FD_H

#include <errno.h>
#include <unistd.h>

/* The caller is still to tell why it failed. */
static inline void rd_close_keeping_errno(int fd) {
    const int error = errno;
    close(fd);
    errno = error;
}

#endif
