/* SPDX-License-Identifier: MIT
 *
 * getrandom(2); see random.h.
 */
#include "system/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>

/* Up to 256 bytes come at once, and no signal interrupts that. Before the system has booted it
 * waits. */
void rd_random(void *bytes, size_t len) {
    ssize_t got;
    do {
        got = getrandom(bytes, len, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0 || (size_t)got != len) abort();
}
