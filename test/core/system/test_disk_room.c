/* SPDX-License-Identifier: MIT
 *
 * How much of a file system bodies may take, and what memory there is.
 */
#include "system/disk_room.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include "check.h"
#include "system/memory.h"

static uint64_t free_in(const char *folder) {
    struct statvfs info;
    CHECK_INT(statvfs(folder, &info), 0);
    return (uint64_t)info.f_blocks * info.f_frsize;
}

static void test_memory(void) {
    CHECK(rd_memory_limit() > 1 << 20);
    CHECK(rd_memory_of((uint64_t)getpid()) < rd_memory_limit());
}

static void test_room(void) {
    CHECK(rd_disk_room_for_bodies("/var/tmp") <= free_in("/var/tmp") / 2);
    CHECK(rd_disk_room_for_bodies("/dev/shm") <= free_in("/dev/shm") / 2);
    CHECK(rd_disk_room_for_bodies("/dev/shm") <= rd_memory_limit() / 4); /* on every Linux */
    CHECK(rd_disk_room_for_bodies("/nonexistent") == UINT64_MAX); /* the first body will find out */
}

int main(void) {
    test_memory();
    test_room();
    return check_summary();
}
