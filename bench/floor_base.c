/* SPDX-License-Identifier: MIT
 *
 * The socket of a floor, see floor_base.h. */
#include "floor_base.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

_Noreturn void rd_floor_fail(const char *what) {
    perror(what);
    exit(1);
}

static int listener_open(unsigned port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* accepted sockets inherit it */
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) rd_floor_fail("bind");
    if (listen(fd, 4096) < 0 || getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        rd_floor_fail("listen");
    fprintf(stderr, "Listening on http://127.0.0.1:%u\n", ntohs(address.sin_port));
    return fd;
}

rd_floor rd_floor_open(const char *port) {
    rd_floor floor = {.poller = epoll_create1(0),
                      .listener = listener_open(port ? (unsigned)atoi(port) : 0)};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = floor.listener};
    signal(SIGPIPE, SIG_IGN);
    if (epoll_ctl(floor.poller, EPOLL_CTL_ADD, floor.listener, &event) < 0) rd_floor_fail("epoll");
    return floor;
}

int rd_floor_accept(const rd_floor *floor) {
    int fd;
    while ((fd = accept4(floor->listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (fd < RD_FLOOR_MAX_FD && epoll_ctl(floor->poller, EPOLL_CTL_ADD, fd, &event) == 0)
            return fd;
        close(fd);
    }
    return -1;
}
