/* SPDX-License-Identifier: MIT
 *
 * A disk that does not answer, preloaded into a server: calls for files below SLOW_DISK_FOLDER wait
 * while somebody else holds a lock (flock) of the file SLOW_DISK_GATE, which says the names of those
 * that do, and leave their own in SLOW_DISK_SEEN before. Calls that never wait for a disk pass: RESOLVE_CACHED finds nothing there,
 * RWF_NOWAIT only what pread(2) has brought. Compiled and used by slow_disk.rb.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <linux/openat2.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static off_t warm; /* of the file that is read; tests have one */

static int has_prefix(const char *path) {
    const char *folder = getenv("SLOW_DISK_FOLDER");
    return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_slow(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t len = readlink(link, path, sizeof path - 1);
    if (len <= 0) return 0;
    path[len] = 0;
    return has_prefix(path);
}

static int is_slow_name(int folder, const char *path) {
    return path[0] == '/' ? has_prefix(path) : folder != AT_FDCWD && is_slow(folder);
}

static int raw_open(const char *variable, int flags) {
    const char *path = getenv(variable);
    return path == NULL ? -1 : (int)REAL(syscall)(SYS_openat, AT_FDCWD, path, flags, 0600);
}

static int is_held(int gate, const char *name) {
    char names[256] = "";
    if (gate < 0 || flock(gate, LOCK_SH | LOCK_NB) == 0) return 0;
    const ssize_t len = REAL(pread)(gate, names, sizeof names - 1, 0);
    return len > 0 && strstr(names, name) != NULL;
}

static void wait_for_disk(const char *name) {
    const int error = errno, gate = raw_open("SLOW_DISK_GATE", O_RDONLY | O_CLOEXEC);
    char line[32];
    if (is_held(gate, name)) {
        const int seen = raw_open("SLOW_DISK_SEEN", O_WRONLY | O_APPEND | O_CLOEXEC);
        const int len = snprintf(line, sizeof line, "%s\n", name);
        REAL(write)(seen, line, (size_t)len);
        REAL(close)(seen);
        while (flock(gate, LOCK_SH) != 0) {
        }
    }
    REAL(close)(gate);
    errno = error;
}

static void wait_for(int fd, const char *name) {
    if (is_slow(fd)) wait_for_disk(name);
}

ssize_t write(int fd, const void *bytes, size_t len) {
    wait_for(fd, "<write>");
    return REAL(write)(fd, bytes, len);
}

/* A descriptor by O_PATH has nothing of the disk. */
int close(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && !(flags & O_PATH)) wait_for(fd, "<close>");
    return REAL(close)(fd);
}

int connect(int fd, const struct sockaddr *address, socklen_t len) {
    const struct sockaddr_un *path = (const struct sockaddr_un *)address;
    if (path->sun_family == AF_UNIX && has_prefix(path->sun_path)) wait_for_disk("<connect>");
    return REAL(connect)(fd, address, len);
}

static ssize_t read_at(int fd, void *bytes, size_t len, off_t offset) {
    const ssize_t got = REAL(pread)(fd, bytes, len, offset);
    if (got > 0 && is_slow(fd) && offset + got > warm) warm = offset + got;
    return got;
}

ssize_t pread(int fd, void *bytes, size_t len, off_t offset) {
    wait_for(fd, "<pread>");
    return read_at(fd, bytes, len, offset);
}

ssize_t pread64(int fd, void *bytes, size_t len, off_t offset) {
    wait_for(fd, "<pread>");
    return read_at(fd, bytes, len, offset);
}

static ssize_t probe(int fd, const struct iovec *iov, int count, off_t offset, int flags) {
    const int nowait = flags & 8; /* RWF_NOWAIT */
    if (nowait && is_slow(fd) && offset >= warm) {
        errno = EAGAIN;
        return -1;
    }
    if (!nowait) wait_for(fd, "<preadv2>");
    return REAL(preadv2)(fd, iov, count, offset, flags);
}

ssize_t preadv2(int fd, const struct iovec *iov, int count, off_t offset, int flags) {
    return probe(fd, iov, count, offset, flags);
}

ssize_t preadv64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags) {
    return probe(fd, iov, count, offset, flags);
}

static ssize_t send_from(int to, int fd, off_t *offset, size_t len) {
    ssize_t (*real)(int, int, off_t *, size_t) = dlsym(RTLD_NEXT, "sendfile");
    if (*offset + (off_t)len > warm) wait_for(fd, "<sendfile>");
    return real(to, fd, offset, len);
}

ssize_t sendfile(int to, int fd, off_t *offset, size_t len) {
    return send_from(to, fd, offset, len);
}

ssize_t sendfile64(int to, int fd, off_t *offset, size_t len) {
    return send_from(to, fd, offset, len);
}

static int open_at(int folder, const char *path, int flags, mode_t mode) {
    if (is_slow_name(folder, path)) wait_for_disk("<open>");
    return (int)REAL(syscall)(SYS_openat, folder, path, flags, mode);
}

#define MODE_OF(mode, flags)                                                                       \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    const mode_t mode = va_arg(rest, mode_t); /* garbage where there is none, and not used */      \
    va_end(rest)

int open(const char *path, int flags, ...) {
    MODE_OF(mode, flags);
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE_OF(mode, flags);
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE_OF(mode, flags);
    return open_at(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE_OF(mode, flags);
    return open_at(folder, path, flags, mode);
}

static void wait_for_openat2(int folder, const char *path, const struct open_how *how) {
    if (!(how->resolve & RESOLVE_CACHED) && is_slow_name(folder, path)) wait_for_disk("<openat2>");
}

long syscall(long number, ...) {
    long arguments[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) arguments[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_openat2) {
        wait_for_openat2((int)arguments[0], (const char *)arguments[1],
                         (const struct open_how *)arguments[2]);
    }
    return REAL(syscall)(number, arguments[0], arguments[1], arguments[2], arguments[3],
                         arguments[4], arguments[5]);
}
