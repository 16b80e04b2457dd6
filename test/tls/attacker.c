/* SPDX-License-Identifier: MIT
 *
 * One client of TLS that does what Ruby's OpenSSL has no words for:
 *
 *   attacker PORT KIND COUNT
 *
 * keys: COUNT requests for new keys; renegotiate: as many handshakes on the same connection, with
 * TLS 1.2; records: a request of COUNT bytes in as many records; fragments: asks for records of 512
 * bytes. Prints "closed" if the server has closed or refused, "open" if not; records and fragments
 * print the answer's body. Every wait ends after a minute.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

static int dial(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct timeval patience = {.tv_sec = 60};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) exit(1);
    return fd;
}

static int is_quiet(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 0;
}

/* Whether the connection still works: a request is answered. */
static int is_answered(SSL *ssl) {
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    char bytes[4096];
    if (SSL_write(ssl, request, sizeof(request) - 1) <= 0) return 0;
    return SSL_read(ssl, bytes, sizeof(bytes)) > 0;
}

static int update_keys(SSL *ssl, int count) {
    char byte;
    for (int i = 0; i < count; i++) {
        SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
        if (SSL_do_handshake(ssl) != 1) return 0;
        if (is_quiet(SSL_get_fd(ssl))) continue;
        if (SSL_get_error(ssl, SSL_peek(ssl, &byte, 1)) != SSL_ERROR_WANT_READ) return 0;
    }
    SSL_set_mode(ssl, SSL_MODE_AUTO_RETRY);
    return is_answered(ssl);
}

static int renegotiate(SSL *ssl, int count) {
    for (int i = 0; i < count; i++) {
        SSL_renegotiate(ssl);
        if (SSL_do_handshake(ssl) == 1) printf("renegotiated\n");
    }
    return is_answered(ssl);
}

static void print_body(SSL *ssl) {
    static char bytes[1 << 20];
    size_t len = 0;
    int part;
    while (len < sizeof(bytes) - 1 &&
           (part = SSL_read(ssl, bytes + len, (int)(sizeof(bytes) - 1 - len))) > 0) {
        len += (size_t)part;
    }
    bytes[len] = '\0';
    const char *body = strstr(bytes, "\r\n\r\n");
    printf("%s\n", body == NULL ? "no answer" : body + 4);
}

static int send_records(SSL *ssl, int count) {
    char head[128];
    const int len = snprintf(
        head, sizeof(head),
        "POST /size HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", count);
    for (int i = 0; i < len; i++) {
        if (SSL_write(ssl, head + i, 1) != 1) return 0;
    }
    for (int i = 0; i < count; i++) {
        if (SSL_write(ssl, "x", 1) != 1) return 0;
    }
    print_body(ssl);
    return 1;
}

static int ask_for_fragments(SSL *ssl) {
    static const char request[] = "GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    SSL_write(ssl, request, sizeof(request) - 1);
    print_body(ssl);
    return 1;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    signal(SIGPIPE, SIG_IGN);
    const char *kind = words[2];
    const int number = atoi(words[3]);
    SSL_CTX *shared = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(shared);
    if (strcmp(kind, "renegotiate") == 0) SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
    if (strcmp(kind, "fragments") == 0)
        SSL_set_tlsext_max_fragment_length(ssl, TLSEXT_max_fragment_length_512);
    if (strcmp(kind, "keys") == 0)
        SSL_clear_mode(ssl, SSL_MODE_AUTO_RETRY); /* a peek waits for nothing */
    SSL_set_fd(ssl, dial(atoi(words[1])));
    if (SSL_connect(ssl) != 1) return 1;
    int is_open = 1;
    if (strcmp(kind, "keys") == 0) is_open = update_keys(ssl, number);
    if (strcmp(kind, "renegotiate") == 0) is_open = renegotiate(ssl, number);
    if (strcmp(kind, "records") == 0) is_open = send_records(ssl, number);
    if (strcmp(kind, "fragments") == 0) is_open = ask_for_fragments(ssl);
    printf("%s\n", is_open ? "open" : "closed");
    SSL_free(ssl);
    SSL_CTX_free(shared);
    return 0;
}
