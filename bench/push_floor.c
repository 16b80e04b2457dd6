/* SPDX-License-Identifier: MIT
 *
 * The floor of the tables of push: what send() to each subscriber costs. One thread, epoll; what is
 * published in a turn is gathered as frames in one buffer, and each subscriber gets it with one
 * send() straight from there. It knows the handshake of push_client.c only, takes each frame to
 * come whole, queues nothing: whoever does not read loses its connection. Paths as in apps/push.ru.
 * Usage: push_floor PORT (on 127.0.0.1). */
#include "floor_base.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECV_BYTES = 262144, GATHERED_BYTES = 1 << 20 };
enum { MOST_PAYLOAD = 65535, DIGITS = 10 };

static const char HELLO[] = "HTTP/1.1 200 OK\r\nserver: bare-loop\r\ncontent-type: text/plain\r\n"
                            "content-length: 13\r\n\r\nHello, World!";
/* The answer to the key of RFC 6455, section 1.3. */
static const char UPGRADE[] = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
                              "connection: Upgrade\r\n"
                              "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
static const char READY[] = "\x81\x05ready";

/* The kind of a connection, by its path. */
typedef enum rd_role { RD_HTTP, RD_ECHO, RD_SUBSCRIBER, RD_CHATTER, RD_CONTROL, RD_IDLE } rd_role;

static const struct {
    const char *path;
    rd_role role;
    bool greeted;
} PATHS[] = {{"/echo", RD_ECHO, true},     {"/subscribe", RD_SUBSCRIBER, true},
             {"/chat", RD_CHATTER, true},  {"/control", RD_CONTROL, true},
             {"/patterns", RD_IDLE, true}, {"/idle", RD_IDLE, false}};

static unsigned char receive_buf[RECV_BYTES], gathered[GATHERED_BYTES];
static size_t gathered_len;
static unsigned char roles[RD_FLOOR_MAX_FD];
static int subscribers[RD_FLOOR_MAX_FD],
    place[RD_FLOOR_MAX_FD]; /* place: the index of a descriptor in it */
static unsigned subscriber_count;

static void drop(int fd) {
    if (roles[fd] == RD_SUBSCRIBER || roles[fd] == RD_CHATTER) {
        int last = subscribers[--subscriber_count];
        subscribers[place[fd]] = last;
        place[last] = place[fd];
    }
    close(fd);
}

static bool send_all(int fd, const void *bytes, size_t len) {
    return send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* ---- publishing ---- */

static size_t head_write(unsigned char *to, size_t len) {
    to[0] = 0x81;
    to[1] = (unsigned char)(len < 126 ? len : 126);
    if (len < 126) return 2;
    to[2] = (unsigned char)(len >> 8);
    to[3] = (unsigned char)len;
    return 4;
}

static void gathered_send(void) {
    for (unsigned i = subscriber_count; i > 0; i--)
        if (!send_all(subscribers[i - 1], gathered, gathered_len)) drop(subscribers[i - 1]);
    gathered_len = 0;
}

static void publish(const unsigned char *payload, size_t len) {
    if (gathered_len + len + 4 > sizeof gathered) gathered_send();
    gathered_len += head_write(gathered + gathered_len, len);
    memcpy(gathered + gathered_len, payload, len);
    gathered_len += len;
}

/* "COUNT BYTES FIRST": COUNT messages of that size, numbered from FIRST. */
static void publish_numbered(const char *order) {
    static unsigned char payload[MOST_PAYLOAD + 1];
    unsigned count, bytes, number;
    if (sscanf(order, "%u %u %u", &count, &bytes, &number) != 3 || bytes > MOST_PAYLOAD) return;
    memset(payload, 'x', sizeof payload);
    for (unsigned i = 0; i < count; i++, number++) {
        char digits[DIGITS + 1];
        snprintf(digits, sizeof digits, "%010u", number);
        memcpy(payload, digits, DIGITS);
        publish(payload, bytes);
    }
}

/* ---- input ---- */

static bool message_came(int fd, unsigned char *payload, size_t len) {
    if (roles[fd] == RD_CHATTER) {
        publish(payload, len);
    } else if (roles[fd] == RD_CONTROL) {
        payload[len] = 0; /* the mask of the next frame, or room behind the buffer's end */
        publish_numbered((const char *)payload);
    } else if (roles[fd] == RD_ECHO) {
        size_t head = len < 126 ? 2 : 4;
        head_write(payload - head, len); /* over the mask */
        return send_all(fd, payload - head, len + head);
    }
    return true;
}

/* Frames of a client, all of them complete. Returns false for anything else. */
static bool frames_read(int fd, unsigned char *at, size_t len) {
    while (len > 0) {
        size_t head = len > 1 && (at[1] & 127) == 126 ? 8 : 6;
        if (len < head || at[0] != 0x81 || !(at[1] & 128)) return false;
        size_t bytes = head == 6 ? (size_t)(at[1] & 127) : (size_t)(at[2] << 8 | at[3]);
        if (len - head < bytes) return false;
        unsigned char *payload = at + head, mask[4];
        memcpy(mask, payload - 4, sizeof mask);
        for (size_t i = 0; i < bytes; i++) payload[i] ^= mask[i & 3];
        unsigned char after = payload[bytes];
        if (!message_came(fd, payload, bytes)) return false;
        payload[bytes] = after;
        at = payload + bytes;
        len -= head + bytes;
    }
    return true;
}

static bool upgrade(int fd, rd_role role, bool greeted) {
    char answer[sizeof UPGRADE + sizeof READY];
    memcpy(answer, UPGRADE, sizeof UPGRADE - 1);
    memcpy(answer + sizeof UPGRADE - 1, READY, sizeof READY - 1);
    roles[fd] = (unsigned char)role;
    if (role == RD_SUBSCRIBER || role == RD_CHATTER) {
        place[fd] = (int)subscriber_count;
        subscribers[subscriber_count++] = fd;
    }
    return send_all(fd, answer, sizeof UPGRADE - 1 + (greeted ? sizeof READY - 1 : 0));
}

static bool request_came(int fd, const char *at, size_t len) {
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        size_t path_len = strlen(PATHS[i].path);
        if (len > 4 + path_len && memcmp(at + 4, PATHS[i].path, path_len) == 0)
            return upgrade(fd, PATHS[i].role, PATHS[i].greeted);
    }
    bool closes = memmem(at, len, "Connection: close", 17) != NULL;
    return send_all(fd, HELLO, sizeof HELLO - 1) && !closes;
}

static void ready(int fd) {
    ssize_t got = recv(fd, receive_buf, sizeof receive_buf - 1, 0);
    if (got < 0 && errno == EAGAIN) return;
    bool goes_on =
        got > 0 && (roles[fd] == RD_HTTP ? request_came(fd, (const char *)receive_buf, (size_t)got)
                                         : frames_read(fd, receive_buf, (size_t)got));
    if (!goes_on) drop(fd);
}

int main(int argc, char **argv) {
    static struct epoll_event events[RD_FLOOR_EVENTS];
    rd_floor floor = rd_floor_open(argc > 1 ? argv[1] : NULL);
    for (;;) {
        int count = epoll_wait(floor.poller, events, RD_FLOOR_EVENTS, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != floor.listener) {
                ready(fd);
                continue;
            }
            while ((fd = rd_floor_accept(&floor)) >= 0) roles[fd] = RD_HTTP;
        }
        if (gathered_len) gathered_send();
    }
}
