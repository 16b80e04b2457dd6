/* SPDX-License-Identifier: MIT
 *
 * What the system has. RD_PORTABLE builds on Linux what other systems get, so that it is tested;
 * RD_WITH_KQUEUE says that there is a kqueue(2), which is used where epoll is not.
 */
#ifndef RD_SYSTEM_PLATFORM_H
#define RD_SYSTEM_PLATFORM_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#if UINTPTR_MAX < UINT64_MAX
#error "Rondo needs a system with 64 bits"
#endif

#if defined(__linux__) && !defined(RD_PORTABLE)
#define RD_LINUX 1
#endif

/* Opens a folder in order to look below it, without the right to list it. Where there is neither
 * flag, that right is needed. */
#ifdef O_PATH
#define RD_OPEN_FOLDER O_PATH
#elif defined(O_SEARCH)
#define RD_OPEN_FOLDER O_SEARCH
#else
#define RD_OPEN_FOLDER O_RDONLY
#endif

/* The names of POSIX for times of files. */
#ifdef __APPLE__
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

#if defined(RD_LINUX) && !defined(RD_WITH_KQUEUE)
#define RD_HAS_EPOLL 1
#elif defined(RD_WITH_KQUEUE)
#define RD_HAS_KQUEUE 1
#endif

#endif
