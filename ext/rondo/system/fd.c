/* SPDX-License-Identifier: MIT
 *
 * Flags by fcntl(2), the file system by fstatfs(2), nameless files by memfd_create(2) or a file
 * whose name is removed at once; see fd.h.
 */
#include "system/fd.h"

#include <fcntl.h>
#include <stdlib.h>

#include "system/platform.h"

#ifdef RD_LINUX
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#endif

bool rd_fd_is_in_memory(int fd) {
#ifdef RD_LINUX
    struct statfs info;
    if (fstatfs(fd, &info) != 0) return false;
    return info.f_type == TMPFS_MAGIC || (unsigned long)info.f_type == RAMFS_MAGIC;
#else
    (void)fd;
    return false;
#endif
}

int rd_fd_prepare(int fd, bool blocks) {
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return -1;
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0) return -1;
    return fcntl(fd, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

static int open_unlinked(void) {
    char in_memory[] = "/dev/shm/rondo-XXXXXX", on_disk[] = "/tmp/rondo-XXXXXX";
    char *path = in_memory;
    int fd = mkstemp(path);
    if (fd < 0) fd = mkstemp(path = on_disk);
    if (fd < 0) return -1;
    unlink(path);
    if (rd_fd_prepare(fd, true) == 0) return fd;
    rd_close_keeping_errno(fd);
    return -1;
}

int rd_fd_nameless(const char *name, bool *can_be_sealed) {
#ifdef RD_LINUX
    const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    *can_be_sealed = fd >= 0;
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
#else
    (void)name;
    *can_be_sealed = false;
#endif
    return open_unlinked();
}

/* A hole of a file that is mapped gets its memory when it is touched first: if there is none then,
 * a signal ends the process. */
static int fill_holes(int fd, size_t len) {
    static const char zeros[4096];
    for (size_t at = 0; at < len;) {
        const size_t left = len - at;
        const ssize_t written =
            pwrite(fd, zeros, left < sizeof(zeros) ? left : sizeof(zeros), (off_t)at);
        if (written < 0 && errno != EINTR) return -1;
        if (written > 0) at += (size_t)written;
    }
    return 0;
}

int rd_fd_size(int fd, size_t len, bool can_be_sealed) {
    if (ftruncate(fd, (off_t)len) != 0) return -1;
    return can_be_sealed ? 0 : fill_holes(fd, len);
}

int rd_fd_nameless_secret(const char *name, bool *can_be_sealed) {
    const int fd = rd_fd_nameless(name, can_be_sealed);
#ifdef RD_LINUX
    if (fd >= 0 && !rd_fd_is_in_memory(fd)) {
        close(fd);
        errno = ENOTSUP;
        return -1;
    }
#endif
    return fd;
}
