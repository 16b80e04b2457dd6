/* SPDX-License-Identifier: MIT
 *
 * The client of raw.rb and chat.rb: connections whose every message comes back, to them or to all.
 * It gets its commands line by line and answers each with a line of JSON.
 *
 *   open COUNT            more connections; prints how many there are
 *   join COUNT            the same, and waits until each has got a byte of welcome
 *   echo BYTES SECONDS    each sends a message, and the next one when all of it has come back
 *   chat BYTES SECONDS    ten of them send a message at the same time, and the next ten when all
 *                         connections have got all ten
 *
 * Usage: raw_client [--pin CPU] PORT (on 127.0.0.1). */
#include "client_base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 60000, EVENTS = 256, MOST_BYTES = 65536, SPEAKERS = 10, PATIENCE_MS = 60000 };

static int fds[MOST];
static size_t missing[MOST]; /* bytes that are still to come back */
static int count, poller;
static char message[MOST_BYTES], came[MOST_BYTES];

static void open_more(unsigned port, int more) {
    for (int i = 0; i < more && count < MOST; i++) {
        const int fd = rd_client_connect(port, 0);
        if (fd < 0) break;
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)count};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0) rd_client_fail("epoll");
        fds[count++] = fd;
    }
}

static void say(uint32_t conn, size_t bytes) {
    if (send(fds[conn], message, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) rd_client_fail("send");
}

/* Returns whether all that is missing has come. */
static int hear(uint32_t conn) {
    const ssize_t got = recv(fds[conn], came, sizeof came, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0 || (size_t)got > missing[conn]) rd_client_fail("what came is no echo");
    if (memcmp(came, message, (size_t)got) != 0) rd_client_fail("the echo is wrong");
    missing[conn] -= (size_t)got;
    return missing[conn] == 0;
}

static void say_one(uint32_t conn, size_t bytes) {
    missing[conn] = bytes;
    say(conn, bytes);
}

static void echo(size_t bytes, double seconds) {
    struct epoll_event events[EVENTS];
    const uint64_t begun = rd_client_now_ns(), until = begun + (uint64_t)(seconds * 1e9);
    uint64_t messages = 0, now = begun;
    int waiting = count;
    for (int i = 0; i < count; i++) say_one((uint32_t)i, bytes);
    while (waiting > 0) {
        const int found = epoll_wait(poller, events, EVENTS, PATIENCE_MS);
        if (found <= 0) rd_client_fail("no echo");
        now = rd_client_now_ns();
        for (int i = 0; i < found; i++) {
            if (!hear(events[i].data.u32)) continue;
            messages++;
            if (now < until)
                say_one(events[i].data.u32, bytes);
            else
                waiting--;
        }
    }
    printf("{\"messages\": %llu, \"seconds\": %.3f}\n", (unsigned long long)messages,
           (double)(now - begun) / 1e9);
}

/* Waits until so many connections have got what they miss. */
static void hear_all(int waiting) {
    struct epoll_event events[EVENTS];
    while (waiting > 0) {
        const int found = epoll_wait(poller, events, EVENTS, PATIENCE_MS);
        if (found <= 0) rd_client_fail("a message is missing");
        for (int i = 0; i < found; i++) waiting -= hear(events[i].data.u32);
    }
}

static void join_more(unsigned port, int more) {
    const int before = count;
    for (int i = before; i < before + more && i < MOST; i++) missing[i] = 1;
    open_more(port, more);
    hear_all(count - before);
}

static void chat(size_t bytes, double seconds) {
    const uint64_t begun = rd_client_now_ns(), until = begun + (uint64_t)(seconds * 1e9);
    const int speakers = count < SPEAKERS ? count : SPEAKERS;
    uint64_t said = 0;
    do {
        for (int i = 0; i < count; i++) missing[i] = bytes * (size_t)speakers;
        for (int i = 0; i < speakers; i++) say((uint32_t)(said++ % (uint64_t)count), bytes);
        hear_all(count);
    } while (rd_client_now_ns() < until);
    printf("{\"deliveries\": %llu, \"seconds\": %.3f}\n",
           (unsigned long long)(said * (uint64_t)count),
           (double)(rd_client_now_ns() - begun) / 1e9);
}

int main(int argc, char **argv) {
    char line[128];
    if (argc > 2 && strcmp(argv[1], "--pin") == 0) rd_client_pin(argv[2]);
    if (argc < 2) rd_client_fail("usage: raw_client [--pin CPU] PORT");
    const unsigned port = (unsigned)atoi(argv[argc - 1]);
    poller = epoll_create1(0);
    memset(message, 'x', sizeof message);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin) != NULL) {
        size_t bytes;
        double seconds;
        int more;
        if (sscanf(line, "open %d", &more) == 1) {
            open_more(port, more);
            printf("{\"open\": %d}\n", count);
        } else if (sscanf(line, "join %d", &more) == 1) {
            join_more(port, more);
            printf("{\"open\": %d}\n", count);
        } else if (sscanf(line, "echo %zu %lf", &bytes, &seconds) == 2 && bytes <= MOST_BYTES)
            echo(bytes, seconds);
        else if (count > 0 && sscanf(line, "chat %zu %lf", &bytes, &seconds) == 2 &&
                 bytes <= MOST_BYTES / SPEAKERS)
            chat(bytes, seconds);
        else
            rd_client_fail("no such command");
    }
}
