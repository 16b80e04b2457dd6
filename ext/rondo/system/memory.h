/* SPDX-License-Identifier: MIT
 *
 * How much memory processes have, and how much they may have. Asks the kernel; any thread.
 */
#ifndef RD_SYSTEM_MEMORY_H
#define RD_SYSTEM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Resident bytes of the process; 0 where they are unknown. */
uint64_t rd_memory_of(uint64_t pid);

/* Bytes that this process and the others of its control group may have: the group's limit, else the
 * memory of the machine. UINT64_MAX where they are unknown. */
uint64_t rd_memory_limit(void);

/* Resident bytes of all children of this process except those that `is_left_out` names; 0 where
 * they are unknown. Counts only children that the first thread of the process has forked or
 * adopted. */
uint64_t rd_memory_of_children(bool (*is_left_out)(const void *asker, uint64_t pid),
                               const void *asker);

#endif
