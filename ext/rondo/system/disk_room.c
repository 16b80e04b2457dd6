/* SPDX-License-Identifier: MIT
 *
 * Free space by statvfs(3); see disk_room.h.
 */
#include "system/disk_room.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "system/fd.h"
#include "system/memory.h"
#include "system/platform.h"

#define FREE_PART   2
#define MEMORY_PART 4

uint64_t rd_disk_room_for_bodies(const char *path) {
    struct statvfs info;
    const int folder = open(path, RD_OPEN_FOLDER | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return UINT64_MAX; /* then opening a file will fail, too */
    const bool is_known = fstatvfs(folder, &info) == 0;
    const bool is_in_memory = rd_fd_is_in_memory(folder);
    close(folder);
    if (!is_known) return UINT64_MAX;
    const uint64_t room = (uint64_t)info.f_bavail * info.f_frsize / FREE_PART;
    const uint64_t memory = is_in_memory ? rd_memory_limit() / MEMORY_PART : UINT64_MAX;
    return room < memory ? room : memory;
}
