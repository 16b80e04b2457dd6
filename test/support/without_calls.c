/* SPDX-License-Identifier: MIT
 *
 * Runs a program whose system calls of these names fail, as on an older kernel (ENOSYS) or in a
 * sandbox (EPERM):
 *
 *   without_calls ENOSYS|EPERM openat2,memfd_create,... PROGRAM [ARGUMENT...]
 *
 * SO_REUSEPORT stands for setsockopt(2) with that option. Children inherit the filter.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEPS_MAX 256

/* In the kernel's headers of Debian 11 some are missing. The numbers are the same everywhere. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

static const struct call {
    const char *name;
    unsigned number;
} calls[] = {
    {"bpf", SYS_bpf},
    {"clone3", SYS_clone3},
    {"close_range", SYS_close_range},
    {"copy_file_range", SYS_copy_file_range},
    {"epoll_pwait2", SYS_epoll_pwait2},
    {"getrandom", SYS_getrandom},
    {"io_uring_setup", SYS_io_uring_setup},
    {"memfd_create", SYS_memfd_create},
    {"openat2", SYS_openat2},
    {"pidfd_open", SYS_pidfd_open},
    {"prctl", SYS_prctl},
    {"preadv2", SYS_preadv2},
    {"sendfile", SYS_sendfile},
    {"statx", SYS_statx},
    {"unshare", SYS_unshare},
};

static struct sock_filter steps[STEPS_MAX];
static unsigned short count;

static void add(struct sock_filter step) {
    if (count == STEPS_MAX) abort();
    steps[count++] = step;
}

static void load(size_t offset) {
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Skips that many steps unless what was loaded is this. */
static void unless(uint32_t value, uint8_t skipped) {
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped));
}

static void fail_with(int code) {
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)code));
}

/* Arguments have 64 bits; the lower half of these is all of them. */
static size_t argument(int number) {
    const size_t lower = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;
    return offsetof(struct seccomp_data, args) + (size_t)number * sizeof(uint64_t) + lower;
}

static void deny_reuse_port(int code) {
    unless(SYS_setsockopt, 5);
    load(argument(1));
    unless(SOL_SOCKET, 3);
    load(argument(2));
    unless(SO_REUSEPORT, 1);
    fail_with(code);
    load(offsetof(struct seccomp_data, nr));
}

static int deny(const char *name, int code) {
    if (strcmp(name, "SO_REUSEPORT") == 0) {
        deny_reuse_port(code);
        return 0;
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(calls[i].name, name) != 0) continue;
        unless(calls[i].number, 1);
        fail_with(code);
        return 0;
    }
    fprintf(stderr, "without_calls: no call is known as %s\n", name);
    return -1;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: without_calls ENOSYS|EPERM NAME,... PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    const int code = strcmp(argv[1], "EPERM") == 0 ? EPERM : ENOSYS;
    load(offsetof(struct seccomp_data, nr));
    for (char *name = strtok(argv[2], ","); name != NULL; name = strtok(NULL, ",")) {
        if (deny(name, code) != 0) return 2;
    }
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const struct sock_fprog program = {.len = count, .filter = steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("without_calls: seccomp");
        return 2;
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}
