/* SPDX-License-Identifier: MIT
 *
 * The floor of every table: what the kernel alone costs. One thread, epoll, staged (receive from
 * all that are ready, then send to all), one canned answer of 97 bytes for every empty line seen.
 * It reads nothing else of the request, so bodies and anything clever are none of its business.
 * Usage: floor PORT (on 127.0.0.1; 0 takes a free one and prints it). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, RECV_BYTES = 65536, MAX_ANSWERS = 512, MAX_FD = 65536 };

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
static unsigned char matched[MAX_FD];
/* Whether to close: asked once, of a connection's first bytes, so that keep-alive does not pay. */
static enum { FIRST, KEEP } mood[MAX_FD];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int listener_open(unsigned port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* inherited by what it accepts */
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("bind");
    if (listen(fd, 1024) < 0 || getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        fail("listen");
    fprintf(stderr, "Listening on http://127.0.0.1:%u\n", ntohs(address.sin_port));
    return fd;
}

static void accept_all(int poller, int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (fd >= MAX_FD || epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0)
            close(fd);
        else
            matched[fd] = 0, mood[fd] = FIRST;
    }
}

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

static void replies_send(const rd_reply *replies, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        size_t len = (size_t)ANSWER_BYTES * replies[i].count;
        /* An answer is so much smaller than a socket's buffer that a short write ends it. */
        bool sent = send(replies[i].fd, answers, len, MSG_NOSIGNAL) == (ssize_t)len;
        if (!sent || replies[i].closes) close(replies[i].fd);
    }
}

int main(int argc, char **argv) {
    static struct epoll_event events[EVENTS];
    static rd_reply replies[EVENTS];
    signal(SIGPIPE, SIG_IGN);
    int poller = epoll_create1(0), listener = listener_open(argc > 1 ? (unsigned)atoi(argv[1]) : 0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (unsigned i = 0; i < MAX_ANSWERS; i++)
        memcpy(answers + (size_t)i * ANSWER_BYTES, ANSWER, ANSWER_BYTES);
    for (;;) {
        unsigned count = 0;
        int ready = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                accept_all(poller, listener);
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
        replies_send(replies, count);
    }
}
