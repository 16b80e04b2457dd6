/* SPDX-License-Identifier: MIT
 *
 * What the system has. RD_PORTABLE builds on Linux what other systems get, so that it is tested;
 * RD_WITH_KQUEUE says that there is a kqueue(2), which is used where epoll is not.
 */
#ifndef RD_SYSTEM_PLATFORM_H
#define RD_SYSTEM_PLATFORM_H

#if defined(__linux__) && !defined(RD_PORTABLE)
#define RD_LINUX 1
#endif

#if defined(RD_LINUX) && !defined(RD_WITH_KQUEUE)
#define RD_HAS_EPOLL 1
#elif defined(RD_WITH_KQUEUE)
#define RD_HAS_KQUEUE 1
#endif

#endif
