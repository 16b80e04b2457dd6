/* SPDX-License-Identifier: MIT
 *
 * The file system of a descriptor by fstatfs(2); see fd.h.
 */
#include "system/fd.h"

#ifdef __linux__
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

bool rd_fd_is_in_memory(int fd) {
#ifdef __linux__
    struct statfs info;
    if (fstatfs(fd, &info) != 0) return false;
    return info.f_type == TMPFS_MAGIC || (unsigned long)info.f_type == RAMFS_MAGIC;
#else
    (void)fd;
    return false;
#endif
}
