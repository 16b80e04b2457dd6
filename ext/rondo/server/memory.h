/* SPDX-License-Identifier: MIT
 *
 * How much memory a process has. Asks the kernel; any thread.
 */
#ifndef RD_SERVER_MEMORY_H
#define RD_SERVER_MEMORY_H

#include <stdint.h>

/* Resident bytes of the process; 0 where that cannot be known. */
uint64_t rd_memory_of(uint64_t pid);

#endif
