/* SPDX-License-Identifier: MIT
 *
 * The floor of raw.rb: an echo in one thread with epoll. What arrives is sent back at once, and
 * nothing is queued: whoever does not read loses its connection. Usage: raw_floor PORT (on
 * 127.0.0.1). */
#include "floor_base.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECV_BYTES = 65536 };

static char bytes[RECV_BYTES];

static void echo(int fd) {
    const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0 || send(fd, bytes, (size_t)got, MSG_NOSIGNAL) != got) close(fd);
}

int main(int argc, char **argv) {
    const rd_floor floor = rd_floor_open(argc > 1 ? argv[1] : NULL);
    struct epoll_event events[RD_FLOOR_EVENTS];
    for (;;) {
        const int count = epoll_wait(floor.poller, events, RD_FLOOR_EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd != floor.listener)
                echo(events[i].data.fd);
            else
                while (rd_floor_accept(&floor) >= 0) continue;
        }
    }
}
