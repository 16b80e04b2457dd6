/* SPDX-License-Identifier: MIT
 *
 * A server of HTTP/2 and the client of http2_peer.h on one connection, for the tests of both.
 */
#ifndef HTTP2_SERVING_H
#define HTTP2_SERVING_H

#include "serving.h"

#include "http2_peer.h"

static int open_peer(void) {
    settings.http2 = 1;
    peer_begin();
    return 0;
}

static void send_part(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        const ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            turn();
            peer_hear(fd);
            continue;
        }
        if (sent < 0) return; /* the server has closed: a row may expect that */
        bytes += sent;
        len -= (size_t)sent;
    }
}

static wire arrivals;
static bool hears_probes = true;

static void tell(int fd, wire *said) {
    send_part(fd, said->bytes, said->len);
    said->len = 0;
    for (int i = 0; i < 4; i++) {
        turn();
        peer_hear(fd);
        if (hears_probes) put_arrivals(&arrivals);
        send_part(fd, arrivals.bytes, arrivals.len);
        arrivals.len = 0;
    }
}

static wire out;

/* A client that has begun, and whose settings are acknowledged. */
__attribute__((unused)) static int begin_with(void (*application)(rd_request *)) {
    open_peer();
    start(application);
    const int fd = join();
    out.len = 0;
    put_opening(&out);
    tell(fd, &out);
    CHECK_INT(server_said.settings, 1);
    CHECK_INT(server_said.settings_acks, 1);
    return fd;
}

__attribute__((unused)) static void finish(int fd) {
    close(fd);
    end();
    peer_end();
}

#endif
