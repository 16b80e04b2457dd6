/* SPDX-License-Identifier: MIT
 *
 * The floor of every table: what the kernel alone costs. One thread, epoll, staged (receive from
 * all that are ready, then send to all), one canned answer of 97 bytes for every empty line seen.
 * It reads nothing else of the request, so bodies and anything clever are none of its business.
 * With WORK it computes for so many microseconds of CPU time before each answer and sends it at
 * once: first come, first served, as fairly as a machine allows. Usage: floor PORT [WORK] (on
 * 127.0.0.1; 0 takes a free one and prints it). */
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

enum { RECV_BYTES = 65536, MAX_ANSWERS = 512 };

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nserver: bare-loop\r\ncontent-type: text/plain\r\n"
                             "content-length: 13\r\n\r\nHello, World!";
enum { ANSWER_BYTES = sizeof ANSWER - 1 };
_Static_assert(sizeof ANSWER - 1 == 97, "the floor's answer has the size the tables name");

typedef struct rd_reply {
    int fd;
    unsigned count;
    bool closes;
} rd_reply;

static char receive_buf[RECV_BYTES];
static char answers[ANSWER_BYTES * MAX_ANSWERS];
/* How much of "\r\n\r\n" each connection's bytes ended with: heads may come in pieces. */
static unsigned char matched[RD_FLOOR_MAX_FD];
/* Whether to close: decided once, by a connection's first bytes, so that keep-alive costs nothing.
 */
static enum { FIRST, KEEP } mood[RD_FLOOR_MAX_FD];

static unsigned empty_lines(int fd, const char *at, size_t len) {
    static const char LINE[] = "\r\n\r\n";
    unsigned found = 0, state = matched[fd];
    const char *end = at + len;
    while (at < end) {
        if (state == 0) {
            at = memchr(at, '\r', (size_t)(end - at));
            if (!at) break;
        }
        if (*at == LINE[state])
            state++, at++;
        else if (state)
            state = *at == '\r' && (state == 1 || state == 3) ? 1 : 0, at += state;
        if (state == 4) state = 0, found++;
    }
    matched[fd] = (unsigned char)state;
    return found;
}

static bool asks_close(int fd, const char *at, size_t len) {
    if (mood[fd] == KEEP) return false;
    mood[fd] = KEEP;
    return memmem(at, len, "Connection: close", 17) || memmem(at, len, "connection: close", 17);
}

static int64_t cpu_us(void) {
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (int64_t)spent.tv_sec * 1000000 + spent.tv_nsec / 1000;
}

static void compute(int64_t work_us) {
    int64_t done = cpu_us() + work_us;
    while (cpu_us() < done) continue;
}

static void replies_send(const rd_reply *replies, unsigned count, int64_t work_us) {
    for (unsigned i = 0; i < count; i++) {
        if (work_us > 0) compute(work_us * replies[i].count);
        size_t len = (size_t)ANSWER_BYTES * replies[i].count;
        /* An answer is so much smaller than a socket's buffer that a short write ends it. */
        bool sent = send(replies[i].fd, answers, len, MSG_NOSIGNAL) == (ssize_t)len;
        if (!sent || replies[i].closes) close(replies[i].fd);
    }
}

int main(int argc, char **argv) {
    static struct epoll_event events[RD_FLOOR_EVENTS];
    static rd_reply replies[RD_FLOOR_EVENTS];
    const int64_t work_us = argc > 2 ? atoll(argv[2]) : 0;
    rd_floor floor = rd_floor_open(argc > 1 ? argv[1] : NULL);
    for (unsigned i = 0; i < MAX_ANSWERS; i++)
        memcpy(answers + (size_t)i * ANSWER_BYTES, ANSWER, ANSWER_BYTES);
    for (;;) {
        unsigned count = 0;
        int ready = epoll_wait(floor.poller, events, work_us > 0 ? 1 : RD_FLOOR_EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == floor.listener) {
                while ((fd = rd_floor_accept(&floor)) >= 0) matched[fd] = 0, mood[fd] = FIRST;
                continue;
            }
            ssize_t got = recv(fd, receive_buf, sizeof receive_buf, 0);
            if (got <= 0) {
                if (got == 0 || errno != EAGAIN) close(fd);
                continue;
            }
            unsigned found = empty_lines(fd, receive_buf, (size_t)got);
            bool closes = asks_close(fd, receive_buf, (size_t)got);
            if (found)
                replies[count++] =
                    (rd_reply){fd, found < MAX_ANSWERS ? found : MAX_ANSWERS, closes};
        }
        replies_send(replies, count, work_us);
    }
}
