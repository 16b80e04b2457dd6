/* SPDX-License-Identifier: MIT
 *
 * Preloaded into a server: each write(2) into a file without a name takes 200 ms, as on a disk that
 * the kernel has told to wait. Built and used by attacks.rb. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(int fd) {
    struct stat is;
    if (fstat(fd, &is) != 0 || !S_ISREG(is.st_mode) || is.st_nlink != 0) return;
    nanosleep(&(struct timespec){.tv_nsec = 200 * 1000 * 1000}, NULL);
}

ssize_t write(int fd, const void *bytes, size_t len) {
    static ssize_t (*real)(int, const void *, size_t);
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "write");
    wait_for_disk(fd);
    return real(fd, bytes, len);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
    wait_for_disk(fd);
    return real(fd, bytes, len, offset);
}
