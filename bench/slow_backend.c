/* SPDX-License-Identifier: MIT
 *
 * The backend of neverblock.rb: one thread, epoll, an answer of two bytes so many milliseconds
 * after the head of a request has come. All requests wait equally long, so they are answered in the
 * order in which they came, and the one that is due next is always the first of a ring. Keeps
 * connections unless a request asks to close. Usage: slow_backend PORT MILLISECONDS (on 127.0.0.1;
 * 0 takes a free port and prints it). */
#include "floor_base.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RECV_BYTES = 16384, MOST_WAITING = 1 << 17 };

static const char KEEP[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";
static const char CLOSE[] = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: "
                            "2\r\nconnection: close\r\n\r\nok";

typedef struct rd_due {
    int64_t at_ns;
    int fd;
    uint32_t life;
    bool closes;
} rd_due;

typedef struct rd_visitor {
    uint32_t life;         /* how many connections this descriptor has been */
    unsigned char matched; /* how much of "\r\n\r\n" its bytes ended with */
    bool closes;
} rd_visitor;

static char receive_buf[RECV_BYTES];
static rd_visitor visitors[RD_FLOOR_MAX_FD];
static rd_due ring[MOST_WAITING];
static uint32_t first, end;
static int64_t delay_ns;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void visitor_close(int fd) {
    visitors[fd].life++; /* what is due to it is no longer */
    close(fd);
}

static void request_came(int fd) {
    rd_visitor *visitor = &visitors[fd];
    if (end - first == MOST_WAITING) rd_floor_fail("too many requests wait");
    ring[end++ % MOST_WAITING] = (rd_due){now_ns() + delay_ns, fd, visitor->life, visitor->closes};
    visitor->closes = false;
}

static void bytes_came(int fd, size_t len) {
    static const char LINE[] = "\r\n\r\n";
    rd_visitor *visitor = &visitors[fd];
    if (memmem(receive_buf, len, "onnection: close", 16)) visitor->closes = true;
    for (size_t i = 0; i < len; i++) {
        const char byte = receive_buf[i];
        if (byte == LINE[visitor->matched])
            visitor->matched++;
        else
            visitor->matched = byte == '\r';
        if (visitor->matched < 4) continue;
        visitor->matched = 0;
        request_came(fd);
    }
}

static void visitor_read(int fd) {
    const ssize_t got = recv(fd, receive_buf, sizeof receive_buf, 0);
    if (got > 0)
        bytes_came(fd, (size_t)got);
    else if (got == 0 || errno != EAGAIN)
        visitor_close(fd);
}

/* An answer is so much smaller than a socket's buffer that a short write ends the connection. */
static void due_answer(int64_t now) {
    for (; first != end && ring[first % MOST_WAITING].at_ns <= now; first++) {
        const rd_due *due = &ring[first % MOST_WAITING];
        if (visitors[due->fd].life != due->life) continue;
        const char *answer = due->closes ? CLOSE : KEEP;
        const size_t len = (due->closes ? sizeof CLOSE : sizeof KEEP) - 1;
        const bool sent = send(due->fd, answer, len, MSG_NOSIGNAL) == (ssize_t)len;
        if (!sent || due->closes) visitor_close(due->fd);
    }
}

/* Waits for bytes or for the first answer that is due. */
static int events_await(const rd_floor *floor, struct epoll_event *events) {
    if (first == end) return epoll_wait(floor->poller, events, RD_FLOOR_EVENTS, -1);
    int64_t left = ring[first % MOST_WAITING].at_ns - now_ns();
    if (left < 0) left = 0;
    const struct timespec wait = {left / 1000000000, left % 1000000000};
    return epoll_pwait2(floor->poller, events, RD_FLOOR_EVENTS, &wait, NULL);
}

int main(int argc, char **argv) {
    static struct epoll_event events[RD_FLOOR_EVENTS];
    const rd_floor floor = rd_floor_open(argc > 1 ? argv[1] : NULL);
    delay_ns = argc > 2 ? (int64_t)atoi(argv[2]) * 1000000 : 0;
    for (;;) {
        const int ready = events_await(&floor, events);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd != floor.listener) {
                visitor_read(fd);
                continue;
            }
            while ((fd = rd_floor_accept(&floor)) >= 0) {
                visitors[fd].matched = 0;
                visitors[fd].closes = false;
            }
        }
        due_answer(now_ns());
    }
}
