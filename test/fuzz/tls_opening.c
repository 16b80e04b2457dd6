/* SPDX-License-Identifier: MIT
 *
 * What comes on a port for TLS, to a whole server. First byte: 1 a PROXY header is expected, 2 with
 * a real handshake first, 4 of TLS 1.2; the rest of it: the size of the pieces. Without a handshake
 * the other bytes are sent as they are. Behind one they are commands: see act(). Holds: no crash;
 * OpenSSL's queue of errors is empty after each turn; nothing is held when the connection is
 * closed.
 */
#include "fuzz_server.h"
#include "protocol/opening.h"
#include "tls_peer.h"

#include <openssl/err.h>

static const rd_transport *transport;
static tls_client client;
static int peer;

/* What the client has left in the queue does not count. */
static void look(void) {
    ERR_clear_error();
    fuzz_turn();
    const bool is_empty = ERR_peek_error() == 0;
    ERR_print_errors_fp(stderr); /* empties it */
    FUZZ_CHECK(is_empty);
}

static void prepare(void) {
    char error[RD_TLS_ERROR_MAX];
    identity own = new_identity((wish){.names = "DNS:a.test,DNS:*.b.test"});
    identity other = new_identity((wish){.names = "DNS:other.test"});
    const rd_tls_pair pairs[] = {pair_of(&own), pair_of(&other)};
    transport = rd_tls_new(&(rd_tls_options){.pairs = pairs, .pair_count = 2}, error);
    FUZZ_CHECK(transport != NULL);
    free_identity(&own);
    free_identity(&other);
    ERR_clear_error();
    rd_settings_init(&settings);
    settings.max_body_bytes = 4096; /* so that no body goes to a disk */
    start(answer_path);
}

static rd_conn *open_conn(bool has_proxy_header) {
    static const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    rd_network *networks = rd_alloc_zero(sizeof(*networks));
    int pair[2];
    FUZZ_CHECK(rd_network_parse(networks, "unix", 4));
    rd_server_set_proxies(server, networks, has_proxy_header ? 1 : 0);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    peer = pair[1];
    const rd_protocol *protocol = rd_protocol_begin(&server->conns, transport, &nobody);
    rd_loop_lock(&server->loop);
    rd_conn *conn = rd_conn_open(&server->conns, pair[0], transport, protocol, &nobody);
    rd_conn_ref(conn);
    rd_conn_read_now(conn);
    rd_loop_unlock(&server->loop);
    return conn;
}

static void send_in_pieces(const char *bytes, size_t len, size_t size) {
    for (size_t at = 0, part; at < len; at += part) {
        part = len - at < size ? len - at : size;
        if (send(peer, bytes + at, part, MSG_NOSIGNAL) < 0) return;
        look();
    }
}

static void take_answer(void) {
    char bytes[65536];
    ssize_t count;
    while ((count = recv(peer, bytes, sizeof(bytes), 0)) > 0) {
        if (client.ssl != NULL) BIO_write(client.to, bytes, (int)count);
    }
}

/* What the client has to say; with a `mask` its last byte is changed. */
static void carry(size_t size, uint8_t mask) {
    char *bytes;
    const size_t len = take_ciphertext(&client, &bytes);
    if (len > 0) bytes[len - 1] ^= (char)mask;
    send_in_pieces(bytes, len, size);
    free(bytes);
    look();
    take_answer();
    ERR_clear_error();
}

static void shake_hands(size_t size, bool is_old) {
    client = new_client("x.b.test");
    if (is_old) SSL_set_max_proto_version(client.ssl, TLS1_2_VERSION);
    for (int i = 0; i < 4 && SSL_do_handshake(client.ssl) != 1; i++) carry(size, 0);
    carry(size, 0);
    FUZZ_CHECK(SSL_is_init_finished(client.ssl));
}

/* One command, whose argument is the next byte. */
static void act(uint8_t command, uint8_t argument, size_t size) {
    static const char request[] =
        GET("/a") "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    char byte = (char)argument, plain[16384];
    switch (command % 8) {
    case 0:
        SSL_write(client.ssl, request, 1 + argument % (int)(sizeof(request) - 1));
        break;
    case 1:
        SSL_write(client.ssl, &byte, 1);
        break;
    case 2:
        SSL_key_update(client.ssl, argument % 2);
        SSL_renegotiate(client.ssl);
        SSL_do_handshake(client.ssl);
        break;
    case 3:
        SSL_shutdown(client.ssl);
        break;
    case 4:
        (void)!send(peer, &byte, 1, MSG_NOSIGNAL);
        break;
    case 5:
        carry(size, argument);
        break;
    case 6:
        SSL_read(client.ssl, plain, sizeof(plain));
        carry(size, 0);
        break;
    default:
        pass_ms((uint64_t)argument * 100);
        carry(size, 0);
        break;
    }
    ERR_clear_error();
}

static void close_all(rd_conn *conn) {
    rd_loop_lock(&server->loop);
    rd_conn_close(conn);
    rd_conn_unref(conn);
    rd_loop_unlock(&server->loop);
    look();
    look();
    close(peer);
    if (client.ssl != NULL) free_client(&client);
    client = (tls_client){0};
    fuzz_check_nothing_is_held();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (transport == NULL) prepare();
    if (len < 2 || len > 4096) return 0;
    const size_t size = (size_t)1 << (bytes[0] >> 4);
    const bool has_proxy_header = bytes[0] & 1;
    rd_conn *conn = open_conn(has_proxy_header);
    if (bytes[0] & 2) {
        if (has_proxy_header) send_in_pieces("PROXY UNKNOWN\r\n", 15, size);
        shake_hands(size, bytes[0] & 4);
        for (size_t i = 1; i + 1 < len && i < 400; i += 2) act(bytes[i], bytes[i + 1], size);
        carry(size, 0);
    } else {
        send_in_pieces((const char *)bytes + 1, len - 1, size);
        look();
        take_answer();
    }
    close_all(conn);
    return 0;
}
