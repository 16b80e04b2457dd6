/* SPDX-License-Identifier: MIT
 *
 * How much of the file system that request bodies are stored in they may take. Asks the kernel:
 * when a server is made, never while it serves. Any thread.
 */
#ifndef RD_SYSTEM_DISK_ROOM_H
#define RD_SYSTEM_DISK_ROOM_H

#include <stdint.h>

/* Half of what is free in this folder. Where the file system is memory, a quarter of the memory
 * that this process may have at most. */
uint64_t rd_disk_room_for_bodies(const char *path);

#endif
