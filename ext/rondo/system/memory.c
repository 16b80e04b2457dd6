/* SPDX-License-Identifier: MIT
 *
 * Memory of processes by proc(5); see memory.h.
 */
#include "system/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads the beginning of a small file and ends it with a NUL. */
static bool read_text(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t len = read(fd, text, size - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    return len > 0;
}

uint64_t rd_memory_of(uint64_t pid) {
    char path[40], text[128];
    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/statm", pid);
    if (!read_text(path, text, sizeof(text))) return 0;
    const char *second = strchr(text, ' '); /* the first number is all pages, the second those in
                                             * memory */
    uint64_t pages = second != NULL ? strtoull(second, NULL, 10) : 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t memory_of_machine(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

/* Returns UINT64_MAX for "max", which means no limit. */
static uint64_t limit_in(const char *path) {
    char text[32];
    if (!read_text(path, text, sizeof(text)) || text[0] < '0' || text[0] > '9') return UINT64_MAX;
    return strtoull(text, NULL, 10);
}

/* The lowest limit of a version 2 group ("0::/path") and of the groups above it. `line` is from
 * /proc/self/cgroup. In a container the path is its own root. */
static uint64_t limit_of_groups(const char *line) {
    char path[4096 + 64];
    uint64_t least = limit_in("/sys/fs/cgroup/memory.max");
    if (strncmp(line, "0::/", 4) != 0) return least;
    size_t len = strcspn(line + 3, "\n");
    for (; len > 1 && len < 4096; len--) {
        if (line[3 + len] != '/' && line[3 + len] != '\n' && line[3 + len] != '\0') continue;
        snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/memory.max", (int)len, line + 3);
        const uint64_t limit = limit_in(path);
        if (limit < least) least = limit;
    }
    return least;
}

uint64_t rd_memory_limit(void) {
    char text[4096];
    uint64_t machine = memory_of_machine();
    if (!read_text("/proc/self/cgroup", text, sizeof(text))) return machine;
    const char *line = strstr(text, "0::/");
    uint64_t group = limit_of_groups(line != NULL ? line : "");
    const uint64_t old = limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"); /* version 1 */
    if (old < group) group = old;
    return group < machine ? group : machine;
}

uint64_t rd_memory_of_children(bool (*is_left_out)(const void *asker, uint64_t pid),
                               const void *asker) {
    char path[60];
    uint64_t sum = 0, own = (uint64_t)getpid();
    char number[24]; /* of a process, with a space behind it */
    snprintf(path, sizeof(path), "/proc/self/task/%" PRIu64 "/children", own);
    FILE *children = fopen(path, "re");
    if (children == NULL) return 0;
    while (fscanf(children, "%23s", number) == 1) {
        const uint64_t pid = strtoull(number, NULL, 10);
        if (!is_left_out(asker, pid)) sum += rd_memory_of(pid);
    }
    fclose(children);
    return sum;
}
