/* SPDX-License-Identifier: MIT
 *
 * How much memory processes have, and may have. Asks the kernel; any thread.
 */
#ifndef RD_SYSTEM_MEMORY_H
#define RD_SYSTEM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Resident bytes of the process; 0 where that cannot be known. */
uint64_t rd_memory_of(uint64_t pid);

/* Bytes that this process and those of its control group may have: what the group allows, or what
 * the machine has. UINT64_MAX where that cannot be known. */
uint64_t rd_memory_limit(void);

/* Resident bytes of all children of this process but those that `is_left_out` names; 0 where they
 * cannot be known. Only children that the process's first thread has forked or adopted. */
uint64_t rd_memory_of_children(bool (*is_left_out)(const void *asker, uint64_t pid),
                               const void *asker);

#endif
