/* SPDX-License-Identifier: MIT
 *
 * How much of a file system request bodies may use. Asks the kernel, so it is called when a server
 * is made, never while it serves. Any thread.
 */
#ifndef RD_SYSTEM_DISK_ROOM_H
#define RD_SYSTEM_DISK_ROOM_H

#include <stdint.h>

/* Half of the free space in this folder. When the file system is in memory, at most a quarter of
 * the memory that this process may have. */
uint64_t rd_disk_room_for_bodies(const char *path);

#endif
