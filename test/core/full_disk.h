/* SPDX-License-Identifier: MIT
 *
 * A disk that is full after some bytes of every file: the limit of file sizes, with the signal that
 * comes with it ignored, so that write(2) fails half-way as it does on a real one.
 */
#ifndef FULL_DISK_H
#define FULL_DISK_H

#include <signal.h>
#include <sys/resource.h>

static struct rlimit file_limit_before;

static void fill_disk(rlim_t room) {
    (void)signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &file_limit_before);
    struct rlimit full = {room, file_limit_before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
}

static void empty_disk(void) {
    setrlimit(RLIMIT_FSIZE, &file_limit_before);
}

#endif
