/* SPDX-License-Identifier: MIT
 *
 * By SOCK_CLOEXEC, SOCK_NONBLOCK and accept4(2), else by fcntl(2); see socket.h.
 */
#include "system/socket.h"

#include "system/fd.h"
#include "system/platform.h"

#ifdef SOCK_CLOEXEC

static int type_of(bool blocks) {
    return SOCK_STREAM | SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK);
}

int rd_socket_open(int family, bool blocks) {
    return socket(family, type_of(blocks), 0);
}

int rd_socket_accept(int fd, struct sockaddr *from, socklen_t *len) {
    return accept4(fd, from, len, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

int rd_socket_pair(int fds[2], bool blocks) {
    return socketpair(AF_UNIX, type_of(blocks), 0, fds);
}

#else

/* Returns the descriptor, or -1. */
static int prepare(int fd, bool blocks) {
    if (fd < 0) return -1;
    if (rd_fd_prepare(fd, blocks) != 0) {
        rd_close_keeping_errno(fd);
        return -1;
    }
#ifdef SO_NOSIGPIPE
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
    return fd;
}

int rd_socket_open(int family, bool blocks) {
    return prepare(socket(family, SOCK_STREAM, 0), blocks);
}

/* BSDs pass on O_NONBLOCK of the listener, Linux does not. */
int rd_socket_accept(int fd, struct sockaddr *from, socklen_t *len) {
    return prepare(accept(fd, from, len), false);
}

int rd_socket_pair(int fds[2], bool blocks) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) return -1;
    if (prepare(fds[0], blocks) < 0) {
        rd_close_keeping_errno(fds[1]);
        return -1;
    }
    if (prepare(fds[1], blocks) >= 0) return 0;
    rd_close_keeping_errno(fds[0]);
    return -1;
}

#endif
