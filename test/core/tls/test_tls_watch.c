/* SPDX-License-Identifier: MIT
 *
 * Handshakes and requests over TLS, while leaders and the watch thread take the loop from each
 * other, and while no leader is there: see tls_handshake.c and watch.c. The clients use OpenSSL in
 * threads of the same process.
 * Meant for ThreadSanitizer, too.
 */
#include <openssl/err.h>

#include "check.h"
#include "leaders.h"
#include "tls_peer.h"

enum { CLIENTS = 4, CONNECTIONS = 12 };

static SSL_CTX *shared; /* of all clients */

/* A connection after its handshake, or NULL. */
static SSL *connect_securely(void) {
    const int fd = dial();
    SSL *ssl = SSL_new(shared);
    SSL_set_fd(ssl, fd);
    if (SSL_connect(ssl) == 1) return ssl;
    ERR_clear_error();
    close(fd);
    SSL_free(ssl);
    return NULL;
}

static void leave(SSL *ssl) {
    const int fd = SSL_get_fd(ssl);
    SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
    ERR_clear_error();
}

static bool ask(SSL *ssl, const char *path) {
    char bytes[2048];
    const int len = snprintf(bytes, sizeof(bytes), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    if (SSL_write(ssl, bytes, len) != len) return false;
    size_t got = 0;
    const size_t end = strlen(path);
    while (got < sizeof(bytes)) {
        const int part = SSL_read(ssl, bytes + got, (int)(sizeof(bytes) - got));
        if (part <= 0) return false;
        got += (size_t)part;
        if (got >= end && memcmp(bytes + got - end, path, end) == 0) return true;
    }
    return false;
}

/* Each connection has its own handshake, and some requests that hold the leader meanwhile. */
static void *run_client(void *argument) {
    intptr_t failed = 0, number = (intptr_t)argument;
    for (int i = 0; i < CONNECTIONS; i++) {
        char path[32];
        SSL *ssl = connect_securely();
        if (ssl == NULL) {
            failed++;
            continue;
        }
        for (int j = 0; j < 4; j++) {
            const char *kind = j == 1 ? "w" : i % 6 == 2 && j == 2 ? "s" : "x";
            snprintf(path, sizeof(path), "/%s-%d-%d-%d", kind, (int)number, i, j);
            if (!ask(ssl, path)) failed++;
        }
        leave(ssl);
    }
    return (void *)failed;
}

static void test_clients(const rd_transport *transport) {
    pthread_t clients[CLIENTS];
    start_on(transport);
    for (intptr_t i = 0; i < CLIENTS; i++) {
        pthread_create(&clients[i], NULL, run_client, (void *)i);
    }
    for (int i = 0; i < CLIENTS; i++) {
        void *failed;
        pthread_join(clients[i], &failed);
        CHECK_INT((intptr_t)failed, 0);
    }
    CHECK_INT(server->counts.requests, CLIENTS * CONNECTIONS * 4);
    stop();
}

/* The watch thread alone shakes hands, and refuses. */
static void test_without_a_leader(const rd_transport *transport) {
    char bytes[256];
    atomic_store(&over, true);
    start_on(transport);
    for (int i = 0; i < LEADERS; i++) pthread_join(leaders[i].thread, NULL);
    for (int i = 0; i < 10; i++) {
        SSL *ssl = connect_securely();
        if (!CHECK(ssl != NULL)) continue;
        CHECK_INT(SSL_write(ssl, "nonsense\r\n\r\n", 12), 12);
        CHECK(SSL_read(ssl, bytes, sizeof(bytes)) > 0);
        leave(ssl);
    }
    rd_server_stop(server, RD_STOP_NOW);
    rd_watch_stop(server);
    rd_server_free(server);
}

int main(void) {
    char error[RD_TLS_ERROR_MAX];
    identity own = new_identity((wish){.names = "DNS:a.test", .is_rsa = true});
    const rd_tls_pair pair = pair_of(&own);
    const rd_tls_options options = {.pairs = &pair, .pair_count = 1};
    const rd_transport *first = rd_tls_new(&options, error);
    shared = SSL_CTX_new(TLS_client_method());
    test_clients(first);
    rd_transport_unref(first);
    const rd_transport *second = rd_tls_new(&options, error);
    test_without_a_leader(second);
    rd_transport_unref(second);
    SSL_CTX_free(shared);
    free_identity(&own);
    return check_summary();
}
