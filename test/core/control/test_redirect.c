/* SPDX-License-Identifier: MIT
 *
 * Port 80 beside a port for TLS, as it runs: on its own thread, on the loopback, over a folder;
 * this thread is its client. Tokens and what is none, hosts, clients that mean harm.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "control/redirect.h"

#define PATIENCE_MS 60000
#define TOKENS      "/.well-known/acme-challenge/"

static char webroot[] = "/tmp/rondo-redirect-XXXXXX";
static rd_redirect *redirect;
static uint16_t port;
static char got[65536];

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof(path), "%s%s", webroot, name);
    return path;
}

static void put(const char *name, const char *text) {
    FILE *file = fopen(path_of(name), "w");
    if (!CHECK(file != NULL)) return;
    fputs(text, file);
    fclose(file);
}

/* Where more clients come at once than the kernel keeps waiting, each of them tries again after a
 * second. */
static void start(uint16_t https_port) {
    char error[RD_LISTENER_ERROR_MAX];
    rd_listen_options listen = {.backlog = 1024, .mode = -1};
    redirect = rd_redirect_new(webroot, https_port);
    if (!CHECK(redirect != NULL)) return;
    rd_listener *listener = rd_alloc_zero(sizeof(*listener));
    CHECK_INT(rd_listen_tcp(listener, "127.0.0.1", 0, &listen, error), 0);
    port = listener->port;
    CHECK_INT(rd_redirect_add_listener(redirect, listener), 0);
    CHECK_INT(rd_redirect_start(redirect), 0);
}

static int dial(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Reads until the other side closes. */
static const char *hear(int fd) {
    size_t len = 0;
    while (len < sizeof(got) - 1) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (!CHECK_INT(poll(&ready, 1, PATIENCE_MS), 1)) break;
        ssize_t part = recv(fd, got + len, sizeof(got) - 1 - len, 0);
        if (part <= 0) break;
        len += (size_t)part;
    }
    got[len] = '\0';
    close(fd);
    return got;
}

static const char *ask(const char *bytes) {
    int fd = dial();
    CHECK_INT(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
    return hear(fd);
}

static const char *fetch(const char *method, const char *target, const char *host) {
    char head[1024];
    snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", method, target, host);
    return ask(head);
}

static int status_of(const char *answer) {
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

static bool has(const char *text) {
    return CHECK_SAYS(strstr(got, text) != NULL, "%s in %s", text, got);
}

/* ---- tokens ---- */

static void test_tokens(void) {
    start(443);
    put(TOKENS "a_token-1", "a_token-1.hash");
    CHECK_INT(status_of(fetch("GET", TOKENS "a_token-1", "a")), 200);
    has("\r\n\r\na_token-1.hash");
    CHECK_INT(status_of(fetch("GET", TOKENS "a_token-1?x=y", "a")), 200);
    CHECK_INT(status_of(fetch("HEAD", TOKENS "a_token-1", "a")), 200);
    CHECK(strstr(got, "hash") == NULL);
    CHECK_INT(status_of(fetch("GET", TOKENS "another", "a")), 404);
    unlink(path_of(TOKENS "a_token-1"));
    CHECK_INT(status_of(fetch("GET", TOKENS "a_token-1", "a")), 404);
    rd_redirect_free(redirect);
}

static void test_what_is_no_token(void) {
    start(443);
    char large[2048], target[512];
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    put(TOKENS "large", large);
    put("/secret", "secret");
    CHECK_INT(mkdir(path_of(TOKENS "folder"), 0700), 0);
    CHECK_INT(symlink("/etc/hostname", path_of(TOKENS "link")), 0);
    CHECK_INT(mkfifo(path_of(TOKENS "pipe"), 0600), 0);
    static const char *const names[] = {"large", "folder", "link", "pipe"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(target, sizeof(target), TOKENS "%s", names[i]);
        CHECK_SAYS(status_of(fetch("GET", target, "a")) == 404, "%s", names[i]);
    }
    static const char *const others[] = {"../../secret", "..%2f..%2fsecret", "a/b", ".", "",
                                         "a%00b"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        snprintf(target, sizeof(target), TOKENS "%s", others[i]);
        fetch("GET", target, "a");
        CHECK_SAYS(status_of(got) == 308 && strstr(got, "\r\n\r\nsecret") == NULL, "%s: %s",
                   others[i], got);
    }
    snprintf(target, sizeof(target), TOKENS "%.200s", large);
    CHECK_INT(status_of(fetch("GET", target, "a")), 308);
    CHECK_INT(status_of(fetch("POST", TOKENS "large", "a")), 308);
    rd_redirect_free(redirect);
}

/* ---- redirects ---- */

static void test_places(void) {
    start(8443);
    CHECK_INT(status_of(fetch("GET", "/a/b?c=d&e", "www.example.com")), 308);
    has("\r\nlocation: https://www.example.com/a/b?c=d&e\r\n");
    has("\r\nconnection: close\r\n");
    fetch("POST", "/", "www.example.com:8080");
    has("\r\nlocation: https://www.example.com:8443/\r\n");
    fetch("GET", "http://Other.example?q", "www.example.com");
    has("\r\nlocation: https://Other.example/?q\r\n");
    fetch("GET", "//evil.example/", "[::1]:80");
    has("\r\nlocation: https://[::1]:8443//evil.example/\r\n");
    rd_redirect_free(redirect);
    start(443);
    fetch("GET", "/", "a.example:80");
    has("\r\nlocation: https://a.example/\r\n");
    rd_redirect_free(redirect);
}

static void test_hosts_that_are_none(void) {
    start(443);
    static const char *const hosts[] = {"",
                                        "a b",
                                        "a@b",
                                        "a/b",
                                        "a,b",
                                        "a\"b",
                                        "a<b>",
                                        "a%0d%0ab",
                                        "a;b",
                                        "a\tb",
                                        "[::1",
                                        "a:99999",
                                        "\xc3\xa4.example"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        CHECK_SAYS(status_of(fetch("GET", "/", hosts[i])) == 400, "%s: %s", hosts[i], got);
        CHECK(strstr(got, "location:") == NULL);
    }
    char name[300];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK_INT(status_of(fetch("GET", "/", name)), 400);
    CHECK_INT(status_of(ask("GET / HTTP/1.0\r\n\r\n")), 400);
    CHECK_INT(status_of(fetch("OPTIONS", "*", "a")), 400);
    CHECK_INT(status_of(fetch("CONNECT", "a:443", "a:443")), 501);
    rd_redirect_free(redirect);
}

/* ---- clients that mean harm ---- */

static void test_limits(void) {
    start(443);
    static char head[40000];
    memset(head, 'a', sizeof(head) - 1);
    memcpy(head, "GET /", 5);
    CHECK_INT(status_of(ask(head)), 414);
    CHECK_INT(status_of(ask("\x16\x03\x01\x02\x00\x01")), 400);
    CHECK_INT(status_of(ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n")), 413);
    rd_redirect_free(redirect);
}

/* Each stream would have a body. */
static void test_no_streams(void) {
    start(443);
    CHECK_INT(status_of(ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")), 505);
    rd_redirect_free(redirect);
}

/* Silent ones make room: the last one is answered while the others say nothing. */
static void test_many_that_are_silent(void) {
    enum { SILENT = 530 };
    static int fds[SILENT];
    start(443);
    for (size_t i = 0; i < SILENT; i++) fds[i] = dial();
    CHECK_INT(status_of(fetch("GET", "/", "a")), 308);
    for (size_t i = 0; i < SILENT; i++) close(fds[i]);
    rd_redirect_free(redirect);
}

static void test_a_folder_that_is_none(void) {
    CHECK(rd_redirect_new("/no/such/folder", 443) == NULL);
}

int main(void) {
    CHECK(mkdtemp(webroot) != NULL);
    CHECK_INT(mkdir(path_of("/.well-known"), 0700), 0);
    CHECK_INT(mkdir(path_of("/.well-known/acme-challenge"), 0700), 0);
    test_tokens();
    test_what_is_no_token();
    test_places();
    test_hosts_that_are_none();
    test_limits();
    test_no_streams();
    test_many_that_are_silent();
    test_a_folder_that_is_none();
    char command[300];
    snprintf(command, sizeof(command), "rm -rf %s", webroot);
    CHECK_INT(system(command), 0);
    return check_summary();
}
