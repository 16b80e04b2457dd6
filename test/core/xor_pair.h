/* SPDX-License-Identifier: MIT
 *
 * The pair of servers of siblings_pair.h with a listener whose transport is that of
 * xor_transport.h, and its clients.
 */
#ifndef RD_TEST_XOR_PAIR_H
#define RD_TEST_XOR_PAIR_H

#include "siblings_pair.h"
#include "xor_transport.h"

#define URL "http://127.0.0.1:80"

static void begin(const rd_transport *transport) {
    start();
    for (int i = 0; i < SERVERS; i++) {
        rd_listener listener = {.transport = transport};
        snprintf(listener.url, sizeof(listener.url), "%s", URL);
        rd_listener_names_add(&servers[i]->accepting.names, &listener);
        servers[i]->accepting.is_secure = true;
    }
    dialed = transport;
    dialed_name = RD_SLICE(URL);
}

static void finish(void) {
    dialed = &rd_transport_tcp;
    dialed_name = RD_SLICE("");
    end();
}

static void serve_all(void) {
    for (int i = 0; i < 4; i++) {
        serve(servers[A]);
        serve(servers[B]);
    }
}

/* The record of this text; returns its length. */
static size_t make_record(char *record, const char *text) {
    const size_t len = strlen(text);
    record[0] = (char)(len >> 8);
    record[1] = (char)(len & 0xff);
    for (size_t i = 0; i < len; i++) record[2 + i] = (char)(text[i] ^ XOR_BYTE);
    return 2 + len;
}

static void say_record(int fd, const char *text) {
    char record[1024];
    const size_t len = make_record(record, text);
    CHECK_INT(send(fd, record, len, MSG_NOSIGNAL), len);
}

/* The body of the answer that came in records; "": none came, or it came in clear. */
static const char *hear_records(int fd) {
    static char text[4096];
    unsigned char bytes[4096];
    size_t used = 0;
    const ssize_t len = recv(fd, bytes, sizeof(bytes), 0);
    for (ssize_t at = 0; at + 2 <= len;) {
        const ssize_t record = bytes[at] << 8 | bytes[at + 1];
        at += 2;
        if (record == 0 || at + record > len) break;
        for (ssize_t i = 0; i < record; i++) text[used++] = (char)(bytes[at + i] ^ XOR_BYTE);
        at += record;
    }
    text[used] = '\0';
    const char *body = strstr(text, "\r\n\r\n");
    return body == NULL ? "" : body + 4;
}

/* A handshake waits its turn if those before it took long. */
static void serve_until_heard(rd_server *server, int fd) {
    char byte;
    for (int i = 0; i < 5000 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0; i++)
        serve(server);
}

/* A client of A, past its handshake, that stays there. */
static int dial_shaken(void) {
    board.rows[B].connections = 100;
    const int fd = dial();
    say(fd, "XOR?1XOR?2");
    CHECK_INT(send(fd, "\x01", 2, MSG_NOSIGNAL), 2); /* a list with one empty name */
    serve_until_heard(servers[A], fd);
    serve(servers[A]);
    CHECK(recv(fd, got, sizeof(got), 0) >= 11);
    CHECK(memcmp(got, "XOR!1XOR!2", 10) == 0);
    say_record(fd, GET("/first"));
    serve(servers[A]);
    serve(servers[A]);
    CHECK_STR(hear_records(fd), "A /first 0");
    board.rows[B].connections = 0;
    return fd;
}

/* The same, when the application of the test does not answer at once. */
__attribute__((unused)) static int dial_shaken_with(void (*first)(rd_server *, rd_request *)) {
    void (*own)(rd_server *, rd_request *) = app;
    app = first;
    const int fd = dial_shaken();
    app = own;
    return fd;
}

#endif
