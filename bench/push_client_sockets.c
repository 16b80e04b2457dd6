/* SPDX-License-Identifier: MIT
 *
 * Opening WebSockets, see push_client_sockets.h. */
#include "push_client_sockets.h"

#include "client_base.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { AT_ONCE = 64, MOST_ERRORS = 5 };

/* The key and its answer are the example of RFC 6455, section 1.3. */
static const char HANDSHAKE[] = "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
static const char ACCEPT[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/* Reads the answer to the handshake. Returns the number of bytes behind it, -1 if it is not an
 * upgrade. */
static ssize_t handshake_read(rd_socket *socket, char *bytes, size_t room, const char **rest) {
    size_t len = 0;
    const char *end = NULL;
    while (!end && len < room) {
        ssize_t got = recv(socket->fd, bytes + len, room - len, 0);
        if (got <= 0) return -1;
        len += (size_t)got;
        end = memmem(bytes, len, "\r\n\r\n", 4);
    }
    if (!end || memcmp(bytes, "HTTP/1.1 101", 12) != 0) return -1;
    if (!memmem(bytes, (size_t)(end - bytes), ACCEPT, sizeof ACCEPT - 1)) return -1;
    *rest = end + 4;
    return (ssize_t)len - (*rest - bytes);
}

static bool greeting_read(rd_socket *socket, char *bytes, size_t room, const char *at, size_t len) {
    for (;;) {
        while (len > 0) {
            size_t used;
            rd_frame frame;
            rd_frame_progress progress =
                rd_frame_take(&socket->reader, (const unsigned char *)at, len, &used, &frame);
            at += used;
            len -= used;
            if (progress == RD_FRAME_BAD) return false;
            if (progress == RD_FRAME_WHOLE) return frame.opcode <= RD_FRAME_BINARY;
        }
        ssize_t got = recv(socket->fd, bytes, room, 0);
        if (got <= 0) return false;
        at = bytes;
        len = (size_t)got;
    }
}

static bool socket_opened(rd_socket *socket, bool greeted) {
    char bytes[8192];
    const char *rest;
    if (socket->fd < 0) return false;
    ssize_t behind = handshake_read(socket, bytes, sizeof bytes, &rest);
    if (behind < 0) return false;
    if (!greeted) return behind == 0;
    return greeting_read(socket, bytes, sizeof bytes, rest, (size_t)behind);
}

unsigned rd_sockets_open(rd_socket *sockets, unsigned count, unsigned port, const char *path,
                         bool greeted, int receive_bytes) {
    char request[1024];
    int len = snprintf(request, sizeof request, HANDSHAKE, path);
    unsigned begun = 0, done = 0, errors = 0;
    for (unsigned i = 0; i < count; i++) sockets[i] = (rd_socket){.fd = -1, .index = i};
    while (done < count && errors < MOST_ERRORS) {
        for (; begun < count && begun < done + AT_ONCE; begun++) {
            sockets[begun].fd = rd_client_connect(port, receive_bytes);
            if (sockets[begun].fd >= 0) rd_socket_send(&sockets[begun], request, (size_t)len);
        }
        for (; done < begun && errors < MOST_ERRORS; done++) {
            if (socket_opened(&sockets[done], greeted)) continue;
            if (sockets[done].fd >= 0) rd_socket_abort(&sockets[done]);
            errors++;
        }
    }
    for (unsigned i = done; i < begun; i++) /* given up */
        if (sockets[i].fd >= 0) rd_socket_abort(&sockets[i]);
    return done - errors;
}

bool rd_socket_send(rd_socket *socket, const void *bytes, size_t len) {
    return send(socket->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

static void quick_acknowledgement_set(rd_socket *socket, int value) {
    setsockopt(socket->fd, IPPROTO_TCP, TCP_QUICKACK, &value, sizeof value);
}

void rd_socket_delay_acknowledgement(rd_socket *socket) {
    quick_acknowledgement_set(socket, 0);
}

void rd_socket_acknowledge(rd_socket *socket) {
    quick_acknowledgement_set(socket, 2); /* even: only what has come by now */
}

void rd_socket_abort(rd_socket *socket) {
    rd_client_abort(socket->fd);
    socket->fd = -1;
}
