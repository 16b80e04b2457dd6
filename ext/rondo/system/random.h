/* SPDX-License-Identifier: MIT
 *
 * Random bytes that nobody can foresee, from the kernel. Any thread.
 */
#ifndef RD_SYSTEM_RANDOM_H
#define RD_SYSTEM_RANDOM_H

#include <stddef.h>

/* At most 256 bytes. Ends the process if the kernel has none. */
void rd_random(void *bytes, size_t len);

#endif
