/* SPDX-License-Identifier: MIT
 *
 * Sockets that no program inherits and, if wanted, that do not block. In one call where the system
 * has it, else in two: then a program that another thread starts in between inherits the
 * descriptor. Any thread.
 */
#ifndef RD_SYSTEM_SOCKET_H
#define RD_SYSTEM_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>

/* macOS has a socket option in place of the first (rd_socket_open() and the others set it), and
 * nothing like the second: small segments leave earlier there. */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef MSG_MORE
#define MSG_MORE 0
#endif
/* Then whoever receives a descriptor calls rd_fd_prepare(). */
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif

/* POSIX says int, glibc size_t. */
typedef __typeof__(((struct msghdr *)0)->msg_iovlen) rd_iovec_count;

/* These return a descriptor, or -1 with errno set. */
int rd_socket_open(int family, bool blocks);
int rd_socket_accept(int fd, struct sockaddr *from, socklen_t *len); /* does not block */

/* Two connected Unix sockets. Returns 0, or -1 with errno set. */
int rd_socket_pair(int fds[2], bool blocks);

#endif
