/* SPDX-License-Identifier: MIT
 *
 * The floor of chat.rb: a chat in one thread with epoll. A member is welcomed with a byte. What a
 * member says is sent to all of them at once, and nothing is queued: whoever does not read loses
 * its connection. Usage: chat_floor PORT (on 127.0.0.1). */
#include "floor_base.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECV_BYTES = 65536, MOST = 60000 };

static char bytes[RECV_BYTES];
static int members[MOST];
static int count;

static void leave(int place) {
    close(members[place]);
    members[place] = members[--count];
}

/* Backwards, because the last one takes the place of who leaves. */
static void tell_all(const char *words, size_t len) {
    for (int i = count - 1; i >= 0; i--) {
        if (send(members[i], words, len, MSG_NOSIGNAL) != (ssize_t)len) leave(i);
    }
}

static void hear(int fd) {
    const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) {
        tell_all(bytes, (size_t)got);
        return;
    }
    for (int i = count - 1; i >= 0; i--) {
        if (members[i] == fd) leave(i);
    }
}

static void welcome(const rd_floor *floor) {
    for (int fd; (fd = rd_floor_accept(floor)) >= 0;) {
        if (count < MOST && send(fd, "x", 1, MSG_NOSIGNAL) == 1)
            members[count++] = fd;
        else
            close(fd);
    }
}

int main(int argc, char **argv) {
    const rd_floor floor = rd_floor_open(argc > 1 ? argv[1] : NULL);
    struct epoll_event events[RD_FLOOR_EVENTS];
    for (;;) {
        const int found = epoll_wait(floor.poller, events, RD_FLOOR_EVENTS, -1);
        for (int i = 0; i < found; i++) {
            if (events[i].data.fd == floor.listener)
                welcome(&floor);
            else
                hear(events[i].data.fd);
        }
    }
}
