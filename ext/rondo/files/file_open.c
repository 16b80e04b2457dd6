/* SPDX-License-Identifier: MIT
 *
 * Opens files beneath a folder; see file_open.h. Uses openat2(2) if available. Otherwise goes
 * segment by segment, each relative to the descriptor of the one before, and refuses symlinks.
 */
#include "files/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "system/fd.h"
#include "system/platform.h"

#ifdef RD_LINUX
#include <sys/syscall.h>
#endif
#if defined(SYS_openat2) && __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

/* Any rename in the whole system may disturb a lookup that passes through "..". */
enum { TRIES = 128 };

enum {
    LOOK_FOLDER = RD_OPEN_FOLDER | O_DIRECTORY | O_CLOEXEC,
    /* Does not wait for the writer of a FIFO, and does not acquire a terminal. */
    READ = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
#ifdef O_PATH
    LOOK = O_PATH | O_CLOEXEC,
#else
    LOOK = READ,
#endif
};

static int open_by_kernel(int root, const char *name, int flags, uint64_t resolve) {
#ifdef RESOLVE_BENEATH
    const struct open_how how = {
        .flags = (unsigned)flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
    };

    return (int)syscall(SYS_openat2, root, *name ? name : ".", &how, sizeof how);
#else
    (void)root, (void)name, (void)flags, (void)resolve;
    errno = ENOSYS;
    return -1;
#endif
}

/* Without O_PATH looking is opening: then the kind of the file is checked before. Between the two
 * it may become another one. */
static bool may_open(int folder, const char *segment) {
#ifdef O_PATH
    (void)folder, (void)segment;
    return true;
#else
    struct stat info;

    if (fstatat(folder, segment, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
    errno = ENOENT;
    return S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
#endif
}

/* O_PATH opens a symlink itself instead of following it; the result is neither a folder nor a
 * file. */
static int open_segment(int folder, const char *name, size_t len, int flags) {
    char segment[NAME_MAX + 1];

    if (len > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(segment, name, len);
    segment[len] = 0;
    if (!may_open(folder, len ? segment : ".")) return -1;
    return openat(folder, len ? segment : ".", flags | O_NOFOLLOW);
}

static int open_by_walking(int root, const char *name, int flags) {
    int folder = root;

    for (;;) {
        const size_t len = strcspn(name, "/");
        const bool is_last = name[len] == 0;
        const int next = open_segment(folder, name, len, is_last ? flags : LOOK_FOLDER);

        if (folder != root) rd_close_keeping_errno(folder);
        if (next < 0 || is_last) return next;
        folder = next;
        name += len + strspn(name + len, "/");
    }
}

static int open_beneath(const rd_file_root *root, const char *name, int flags) {
    int fd, tries = 0;

    do {
        fd = root->has_openat2 ? open_by_kernel(root->fd, name, flags, 0)
                               : open_by_walking(root->fd, name, flags);
    } while (fd < 0 && (errno == EAGAIN || errno == EINTR) && ++tries < TRIES);
    return fd;
}

bool rd_file_may_pass(int error) {
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN;
}

static int refuse(int error) {
    errno = error == EISDIR || rd_file_may_pass(error) ? error : ENOENT;
    return -1;
}

static int open_regular(const rd_file_root *root, const char *name, int flags, struct stat *info) {
    const int fd = open_beneath(root, name, flags);
    int error = ENOENT;

    if (fd < 0) return refuse(errno);
    if (fstat(fd, info) == 0) {
        if (S_ISREG(info->st_mode)) return fd;
        if (S_ISDIR(info->st_mode)) error = EISDIR;
    }
    close(fd);
    return refuse(error);
}

bool rd_file_has_dotdot(const char *path) {
    for (const char *at = path; (at = strstr(at, "..")); at++) {
        const bool begins = at == path || at[-1] == '/';

        if (begins && (at[2] == 0 || at[2] == '/')) return true;
    }
    return false;
}

int rd_file_open(const rd_file_root *root, const char *name, struct stat *info) {
    int fd;

    if (name[0] == '/' || strlen(name) >= PATH_MAX) return refuse(ENOENT);
    /* The kernel would accept "a/../b", the walk could not: so both refuse it. */
    if (rd_file_has_dotdot(name)) return refuse(ENOENT);
    /* Checked before it is opened: opening alone would wake a process that waits at a FIFO, or
     * rewind a tape. */
    fd = open_regular(root, name, LOOK, info);
    if (fd < 0) return -1;
    close(fd);
    return open_regular(root, name, READ, info);
}

#ifdef RESOLVE_CACHED

/* Errors for which open_regular() reports that nothing is there. A lookup that would have to ask
 * the disk ends with EAGAIN; an older kernel returns EINVAL. */
static bool is_final(int error) {
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV ||
           error == EACCES;
}

bool rd_file_is_absent(const rd_file_root *root, const char *name) {
    if (!root->has_openat2) return false;
    const int fd = open_by_kernel(root->fd, name, LOOK, RESOLVE_CACHED);
    if (fd >= 0) close(fd);
    return fd < 0 && is_final(errno);
}

#else

bool rd_file_is_absent(const rd_file_root *root, const char *name) {
    (void)root, (void)name;
    return false;
}

#endif

/* Returns 1, 0, or -1 when it cannot be known now. Sandboxes return various errors (ENOSYS,
 * EPERM). */
static int probe_openat2(int root) {
    const int fd = open_by_kernel(root, ".", LOOK_FOLDER, 0);

    if (fd < 0) return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -1 : 0;
    close(fd);
    return 1;
}

int rd_file_root_open(rd_file_root *root, const char *path) {
    int inside, has_openat2 = -1;

    root->fd = open(path, LOOK_FOLDER);
    if (root->fd < 0) return -1;
    /* Finding the folder needs no permission on it, finding "." in it does. */
    inside = openat(root->fd, ".", LOOK_FOLDER);
    if (inside >= 0) {
        close(inside);
        has_openat2 = probe_openat2(root->fd);
    }
    if (has_openat2 < 0) {
        rd_close_keeping_errno(root->fd);
        root->fd = -1;
        return -1;
    }
    root->has_openat2 = has_openat2;
    root->is_memory = rd_fd_is_in_memory(root->fd);
    return 0;
}

void rd_file_root_close(rd_file_root *root) {
    if (root->fd >= 0) close(root->fd);
    root->fd = -1;
}
