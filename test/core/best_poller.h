/* SPDX-License-Identifier: MIT
 *
 * The name of the poller that this build prefers.
 */
#ifndef RD_TEST_BEST_POLLER_H
#define RD_TEST_BEST_POLLER_H

#include "loop/poller.h"

static inline const char *best_poller(void) {
#if defined(RD_HAS_EPOLL)
    return "epoll";
#elif defined(RD_HAS_KQUEUE)
    return "kqueue";
#else
    return "poll";
#endif
}

#endif
