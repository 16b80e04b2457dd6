/* SPDX-License-Identifier: MIT
 *
 * Sockets of the HTTP/2 client, with and without TLS; see http2_client.h. */
#include "client_base.h"
#include "http2_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void watch(rd_wire *wire, int operation, bool wants_write) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = wire};
    if (wants_write) event.events |= EPOLLOUT;
    if (epoll_ctl(wire->client->poller, operation, wire->fd, &event) < 0) rd_client_fail("epoll");
    wire->wants_write = wants_write;
}

bool rd_wire_open(rd_wire *wire) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)wire->client->plan.port)};
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    wire->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (wire->fd < 0) rd_client_fail("socket");
    setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    wire->is_open = false;
    wire->out_len = 0;
    const int result = connect(wire->fd, (struct sockaddr *)&address, sizeof address);
    if (result < 0 && errno != EINPROGRESS) {
        close(wire->fd);
        wire->fd = -1;
        wire->client->connect_errors++;
        return false;
    }
    watch(wire, EPOLL_CTL_ADD, true);
    return true;
}

static int connected(rd_wire *wire) {
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) return -1;
    struct sockaddr_in peer;
    len = sizeof peer;
    return getpeername(wire->fd, (struct sockaddr *)&peer, &len) == 0;
}

int rd_wire_ready(rd_wire *wire) {
    if (wire->is_open) return 1;
    if (wire->tls == NULL) {
        const int result = connected(wire);
        if (result <= 0) return result;
        if (wire->client->plan.tls) {
            wire->tls = rd_tls_client_begin(wire->fd, RD_TLS_FULL);
            if (wire->http2) rd_tls_client_offer_http2(wire->tls);
        }
    }
    const int result = wire->tls ? rd_tls_client_shake_hands(wire->tls) : 1;
    wire->is_open = result > 0;
    if (wire->wants_write && result == 0) watch(wire, EPOLL_CTL_MOD, false);
    return result;
}

char *rd_wire_room(rd_wire *wire, size_t len) {
    if (wire->out_len + len > wire->out_size) {
        wire->out_size = 2 * (wire->out_len + len);
        wire->out = realloc(wire->out, wire->out_size);
        if (wire->out == NULL) rd_client_fail("memory");
    }
    char *room = wire->out + wire->out_len;
    wire->out_len += len;
    return room;
}

static ssize_t send_some(rd_wire *wire, size_t from) {
    const size_t len = wire->out_len - from;
    if (wire->tls) return rd_tls_client_send(wire->tls, wire->out + from, len);
    return send(wire->fd, wire->out + from, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void rd_wire_flush(rd_wire *wire) {
    size_t sent = 0;
    while (sent < wire->out_len) {
        const ssize_t result = send_some(wire, sent);
        if (result < 0) break;
        sent += (size_t)result;
    }
    wire->out_len -= sent;
    if (wire->out_len > 0 && sent > 0) memmove(wire->out, wire->out + sent, wire->out_len);
    if (wire->wants_write != (wire->out_len > 0)) watch(wire, EPOLL_CTL_MOD, wire->out_len > 0);
}

ssize_t rd_wire_receive(rd_wire *wire, char *bytes, size_t len) {
    if (wire->tls) return rd_tls_client_receive(wire->tls, bytes, len, MSG_DONTWAIT);
    return recv(wire->fd, bytes, len, MSG_DONTWAIT);
}

void rd_wire_close(rd_wire *wire) {
    if (wire->fd < 0) return;
    if (wire->tls) rd_tls_client_end(wire->tls);
    wire->tls = NULL;
    rd_client_abort(wire->fd);
    wire->fd = -1;
    wire->is_open = false;
}
