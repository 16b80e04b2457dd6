/* SPDX-License-Identifier: MIT
 *
 * The members of chat.rb. They get their commands line by line and answer each with a line of JSON.
 *
 *   open COUNT            more members; prints how many there are
 *   chat BYTES SECONDS    ten of them say a line at the same time, and the next ten when all
 *                         members have got all lines
 *
 * Usage: chat_client [--pin CPU] PORT (on 127.0.0.1). */
#include "client_base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 60000, EVENTS = 256, MOST_BYTES = 4096, SPEAKERS = 10 };

static int fds[MOST];
static size_t missing[MOST]; /* bytes of this round that are still to come */
static int count, poller;
static char line[MOST_BYTES], came[SPEAKERS * MOST_BYTES + 1];

static void open_more(unsigned port, int more) {
    for (int i = 0; i < more && count < MOST; i++) {
        const int fd = rd_client_connect(port, 0);
        if (fd < 0) break;
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)count};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0) rd_client_fail("epoll");
        fds[count++] = fd;
    }
    printf("{\"open\": %d}\n", count);
}

static void check(const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != 'x' && bytes[i] != '\n') rd_client_fail("nobody has said that");
    }
}

/* Returns whether this member has got all lines of the round. */
static int hear(uint32_t member) {
    const ssize_t got = recv(fds[member], came, sizeof came, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0 || (size_t)got > missing[member]) rd_client_fail("more came than was said");
    check(came, (size_t)got);
    missing[member] -= (size_t)got;
    return missing[member] == 0;
}

static void say(size_t bytes, uint64_t round) {
    const int speakers = count < SPEAKERS ? count : SPEAKERS;
    for (int i = 0; i < count; i++) missing[i] = bytes * (size_t)speakers;
    for (int i = 0; i < speakers; i++) {
        const uint64_t speaker = (round * SPEAKERS + (uint64_t)i) % (uint64_t)count;
        if (send(fds[speaker], line, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) rd_client_fail("send");
    }
}

static void hear_all(void) {
    struct epoll_event events[EVENTS];
    for (int waiting = count; waiting > 0;) {
        const int found = epoll_wait(poller, events, EVENTS, 10000);
        if (found <= 0) rd_client_fail("a line is missing");
        for (int i = 0; i < found; i++) waiting -= hear(events[i].data.u32);
    }
}

static void chat(size_t bytes, double seconds) {
    const uint64_t begun = rd_client_now_ns(), until = begun + (uint64_t)(seconds * 1e9);
    const int speakers = count < SPEAKERS ? count : SPEAKERS;
    uint64_t rounds = 0;
    line[bytes - 1] = '\n';
    do {
        say(bytes, rounds++);
        hear_all();
    } while (rd_client_now_ns() < until);
    line[bytes - 1] = 'x';
    printf("{\"deliveries\": %llu, \"seconds\": %.3f}\n",
           (unsigned long long)(rounds * (uint64_t)speakers * (uint64_t)count),
           (double)(rd_client_now_ns() - begun) / 1e9);
}

int main(int argc, char **argv) {
    char command[128];
    if (argc > 2 && strcmp(argv[1], "--pin") == 0) rd_client_pin(argv[2]);
    if (argc < 2) rd_client_fail("usage: chat_client [--pin CPU] PORT");
    const unsigned port = (unsigned)atoi(argv[argc - 1]);
    poller = epoll_create1(0);
    memset(line, 'x', sizeof line);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(command, sizeof command, stdin) != NULL) {
        size_t bytes;
        double seconds;
        int more;
        if (sscanf(command, "open %d", &more) == 1)
            open_more(port, more);
        else if (count > 0 && sscanf(command, "chat %zu %lf", &bytes, &seconds) == 2 && bytes > 0 &&
                 bytes <= MOST_BYTES)
            chat(bytes, seconds);
        else
            rd_client_fail("no such command");
    }
}
