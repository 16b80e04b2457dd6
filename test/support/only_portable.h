/* SPDX-License-Identifier: MIT
 *
 * Included before each file of the core in a portable build: what macOS lacks is not there, and
 * calling it is an error. Some BSDs have parts of it. MSG_NOSIGNAL stays: Linux has no socket option in its place.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#undef CLOCK_MONOTONIC_COARSE
#undef CLOCK_REALTIME_COARSE
#undef MSG_CMSG_CLOEXEC
#undef MSG_MORE
#undef O_PATH
#undef O_TMPFILE
#undef SOCK_CLOEXEC
#undef SOCK_NONBLOCK
#undef RWF_NOWAIT
#undef TCP_KEEPIDLE

#pragma GCC poison accept4 close_range copy_file_range dup3 epoll_create epoll_create1 epoll_ctl
#pragma GCC poison epoll_wait epoll_pwait2 eventfd fallocate fstatfs getrandom gettid
#pragma GCC poison inotify_init1 memfd_create memrchr mempcpy pipe2 posix_fallocate
#pragma GCC poison posix_fadvise ppoll prctl preadv2 pthread_getcpuclockid pwritev2 recvmmsg
#pragma GCC poison sched_getcpu sendfile sendmmsg signalfd splice strchrnul syscall timerfd_create
