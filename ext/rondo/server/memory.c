/* SPDX-License-Identifier: MIT
 *
 * Memory by proc(5); see memory.h.
 */
#include "server/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t rd_memory_of(uint64_t pid) {
    char path[40], text[128];
    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/statm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    const char *second = strchr(text, ' '); /* all pages, then those in memory */
    uint64_t pages = second != NULL ? strtoull(second, NULL, 10) : 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
