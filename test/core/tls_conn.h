/* SPDX-License-Identifier: MIT
 *
 * Connections of TLS at one end of a socket pair, and OpenSSL's own client at the other one. The
 * program links rd_tls_new()'s transport into `transport`; see tls_peer.h.
 */
#ifndef TEST_TLS_CONN_H
#define TEST_TLS_CONN_H

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "conn_notes.h"
#include "tls_peer.h"
#include "transport/layer.h"

static identity own;
static const rd_transport *transport;
static tls_client client;
static int peer, shaken;
static bool was_idle; /* before each turn */
static char agreed[16];
static rd_slice refusal; /* what a client without a handshake is told */

/* ---- the server's side ---- */

__attribute__((unused)) static void begin_at_once(rd_conn *conn) {
    told.opened++;
    rd_layer_begin(conn, NULL, 0);
}

__attribute__((unused)) static void note_handshake(rd_conn *conn, int code) {
    CHECK_INT(shaken, 1);
    shaken = code;
    if (code != 0) {
        if (refusal.len > 0) rd_outq_copy(&conn->out, &set.chunks, refusal.ptr, refusal.len);
        rd_conn_finish(conn, true);
        return;
    }
    const rd_slice name = conn->transport->agreed(conn);
    snprintf(agreed, sizeof(agreed), "%.*s", (int)name.len, name.ptr == NULL ? "" : name.ptr);
}

__attribute__((unused)) static rd_slice offer(size_t index) {
    static const rd_slice names[] = {RD_SLICE_INIT("h9"), RD_SLICE_INIT("http/1.1"), {0}};
    return names[index];
}

__attribute__((unused)) static rd_conn *open_conn(void) {
    static rd_protocol shaking;
    shaking = notes;
    shaking.on_open = begin_at_once;
    shaking.on_handshake = note_handshake;
    shaken = 1;
    set.offer = offer;
    rd_conn *conn = open_pair_with(transport, &shaking, &peer);
    rd_conn_ref(conn);
    rd_conn_read_now(conn);
    return conn;
}

__attribute__((unused)) static void turn(void) {
    rd_conn_set_flush(&set);
    rd_loop_wait(&loop, &found, 0);
    rd_loop_process(&loop, &found);
    rd_conn_set_serve_layers(&set, was_idle);
    CHECK_INT(ERR_peek_error(), 0);
}

__attribute__((unused)) static void queue(rd_conn *conn, const char *bytes, size_t len) {
    rd_outq_copy(&conn->out, &set.chunks, bytes, len);
    rd_conn_mark_dirty(conn);
}

__attribute__((unused)) static void end(rd_conn *conn) {
    if (conn->state != RD_CONN_CLOSED) rd_conn_close(conn);
    rd_conn_unref(conn);
    turn();
    CHECK_INT(set.count, 0);
    CHECK(!rd_conn_set_has_layers(&set) && rd_list_is_empty(&set.dirty));
    close(peer);
    free_client(&client);
}

/* ---- the client's side ---- */

__attribute__((unused)) static void send_raw(const char *bytes, size_t len) {
    CHECK_INT(send(peer, bytes, len, MSG_NOSIGNAL), len);
}

/* What the client has to say, in pieces of this size, with a turn after each of them. */
__attribute__((unused)) static void carry_in_pieces(size_t size) {
    char *bytes;
    const size_t len = take_ciphertext(&client, &bytes);
    for (size_t at = 0, part; at < len; at += part) {
        part = len - at < size ? len - at : size;
        send_raw(bytes + at, part);
        turn();
    }
    free(bytes);
}

/* What the server has said. Returns the bytes; -1: its end. */
__attribute__((unused)) static ssize_t hear(void) {
    char bytes[65536];
    ssize_t got, all = 0;
    while ((got = recv(peer, bytes, sizeof(bytes), 0)) > 0) {
        BIO_write(client.to, bytes, (int)got);
        all += got;
    }
    return all == 0 && (got == 0 || errno == ECONNRESET) ? -1 : all;
}

static char client_reason[128]; /* the last error of the client, as OpenSSL words it */

__attribute__((unused)) static void note_error(void) {
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    if (reason != NULL) snprintf(client_reason, sizeof(client_reason), "%s", reason);
    ERR_clear_error();
}

__attribute__((unused)) static int do_handshake(void) {
    const int result = SSL_do_handshake(client.ssl);
    note_error();
    return result;
}

/* The clock may be the machine's, so how long a step takes must decide nothing. */
static void turn_without_debt(void) {
    set.layers.owed_ns = 0;
    turn();
    set.layers.owed_ns = 0;
}

__attribute__((unused)) static bool shake_hands_in_pieces(size_t size) {
    for (int i = 0; i < 8 && do_handshake() != 1; i++) {
        carry_in_pieces(size);
        turn_without_debt();
        hear();
    }
    carry_in_pieces(size);
    for (int i = 0; i < 3; i++) turn_without_debt();
    return SSL_is_init_finished(client.ssl) && shaken == 0;
}

__attribute__((unused)) static rd_conn *open_shaken(void) {
    client = new_client("a.test");
    rd_conn *conn = open_conn();
    client_reason[0] = '\0';
    CHECK(shake_hands_in_pieces(SIZE_MAX));
    hear();
    return conn;
}

__attribute__((unused)) static void say(const char *bytes, size_t len) {
    CHECK_INT(SSL_write(client.ssl, bytes, (int)len), len);
}

/* Everything that comes, until it is `len` bytes or comes to an end. */
__attribute__((unused)) static size_t read_all(char *bytes, size_t len) {
    size_t done = 0;
    for (int idle = 0; done < len && idle < 5; idle++) {
        if (hear() > 0) idle = 0;
        for (int got; (got = SSL_read(client.ssl, bytes + done, (int)(len - done))) > 0;) {
            done += (size_t)got;
        }
        ERR_clear_error();
        carry_in_pieces(SIZE_MAX); /* what it answers to new keys */
        turn();
    }
    return done;
}

__attribute__((unused)) static void check_reads(const char *expected) {
    char bytes[256];
    const size_t len = read_all(bytes, strlen(expected));
    CHECK_BYTES(bytes, len, expected);
}

/* The alert that the server has sent, as OpenSSL words it. */
__attribute__((unused)) static const char *alert_heard(void) {
    char byte;
    hear();
    if (do_handshake() == 1) SSL_read(client.ssl, &byte, 1);
    note_error();
    return client_reason;
}

/* Runs the tests against a listener with one certificate of this kind. */
__attribute__((unused)) static int check_tls(void (*test_all)(void), bool is_rsa) {
    char error[RD_TLS_ERROR_MAX];
    own = new_identity((wish){.names = "DNS:a.test", .is_rsa = is_rsa});
    const rd_tls_pair pair = pair_of(&own);
    transport = rd_tls_new(&(rd_tls_options){.pairs = &pair, .pair_count = 1}, error);
    CHECK(transport != NULL);
    const int result = check_on_both_pollers(test_all);
    rd_transport_unref(transport);
    free_identity(&own);
    return result;
}

#endif
