/* SPDX-License-Identifier: MIT
 *
 * getrandom(2), elsewhere getentropy(3); see random.h.
 */
#include "system/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include "system/platform.h"

#ifdef RD_LINUX

/* Up to 256 bytes come at once, and no signal interrupts that. Before the system has booted it
 * waits. */
void rd_random(void *bytes, size_t len) {
    ssize_t got;
    do {
        got = getrandom(bytes, len, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0 || (size_t)got != len) abort();
}

#else

void rd_random(void *bytes, size_t len) {
    enum { MOST = 256 };
    for (char *at = bytes; len > 0;) {
        const size_t part = len < MOST ? len : MOST;
        if (getentropy(at, part) != 0) abort();
        at += part;
        len -= part;
    }
}

#endif
