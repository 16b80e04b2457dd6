/* SPDX-License-Identifier: MIT
 *
 * Connections of the transport of xor_transport.h with a protocol that only takes note, and their
 * peer.
 */
#ifndef TEST_XOR_CONN_H
#define TEST_XOR_CONN_H

#include <sys/socket.h>
#include <unistd.h>

#include "conn_notes.h"
#include "transport/layer.h"
#include "xor_transport.h"

#define HELLO                                                                                      \
    "XOR?1XOR?2\x02\x01"                                                                           \
    "b"

static int peer;
static int shaken; /* the argument of on_handshake; 1: none yet */
static rd_slice agreed;

static void begin_at_once(rd_conn *conn) {
    told.opened++;
    rd_layer_begin(conn, NULL, 0);
}

static void note_handshake(rd_conn *conn, int code) {
    CHECK_INT(shaken, 1);
    shaken = code;
    if (code == 0) agreed = conn->transport->agreed(conn);
    if (code != 0) rd_conn_finish(conn, false);
}

/* Closed, or another protocol goes on. */
static void note_end(rd_conn *conn) {
    told.closed += conn != NULL;
}

static rd_slice offer(size_t index) {
    static const rd_slice names[] = {RD_SLICE_INIT("a"), RD_SLICE_INIT("b"), {0}};
    return names[index];
}

__attribute__((unused)) static rd_conn *open_with(const rd_transport *transport) {
    static rd_protocol shaking;
    shaking = notes;
    shaking.on_open = begin_at_once;
    shaking.on_handshake = note_handshake;
    shaking.on_close = note_end;
    shaken = 1;
    agreed = (rd_slice){0};
    set.offer = offer;
    return open_pair_with(transport, &shaking, &peer);
}

__attribute__((unused)) static rd_conn *open_conn(void) {
    return open_with(&rd_transport_xor);
}

__attribute__((unused)) static void turn(void) {
    rd_conn_set_flush(&set);
    rd_loop_wait(&loop, &found, 0);
    rd_loop_process(&loop, &found);
    rd_conn_set_serve_layers(&set, false);
}

__attribute__((unused)) static void say(const char *bytes, size_t len) {
    CHECK_INT(send(peer, bytes, len, MSG_NOSIGNAL), len);
}

/* As one record. */
__attribute__((unused)) static void say_record(const char *bytes, size_t len) {
    char record[2 + XOR_RECORD_MAX];
    record[0] = (char)(len >> 8);
    record[1] = (char)(len & 0xff);
    for (size_t i = 0; i < len; i++) record[2 + i] = (char)(bytes[i] ^ XOR_BYTE);
    say(record, 2 + len);
}

/* Reads the raw bytes that have come; -1: the end, without bytes before it. */
__attribute__((unused)) static ssize_t hear(char *bytes, size_t size) {
    size_t len = 0;
    ssize_t got = 1;
    while (len < size && (got = recv(peer, bytes + len, size - len, 0)) > 0) len += (size_t)got;
    return len == 0 && got == 0 ? -1 : (ssize_t)len;
}

__attribute__((unused)) static void check_heard(const char *expected, size_t expected_len) {
    char bytes[256];
    const ssize_t len = hear(bytes, sizeof(bytes));
    CHECK_INT(len, expected_len);
    CHECK(len == (ssize_t)expected_len && memcmp(bytes, expected, expected_len) == 0);
}

/* Completes the handshake. */
__attribute__((unused)) static rd_conn *open_shaken(void) {
    rd_conn *conn = open_conn();
    say(HELLO, sizeof(HELLO) - 1);
    rd_conn_read_now(conn);
    turn();
    CHECK_INT(shaken, 0);
    check_heard("XOR!1XOR!2\x01"
                "b",
                12);
    return conn;
}

__attribute__((unused)) static void check_gone(void) {
    turn();
    CHECK_INT(told.closed, 1);
    CHECK_INT(set.count, 0);
    CHECK(!rd_conn_set_has_layers(&set) && rd_list_is_empty(&set.dirty));
    close(peer);
}

__attribute__((unused)) static void end(rd_conn *conn) {
    rd_conn_close(conn);
    check_gone();
}

__attribute__((unused)) static void queue(rd_conn *conn, const char *bytes, size_t len) {
    rd_outq_copy(&conn->out, &set.chunks, bytes, len);
    rd_conn_mark_dirty(conn);
}

#endif
