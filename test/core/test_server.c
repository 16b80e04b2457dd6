/* SPDX-License-Identifier: MIT
 *
 * A whole server without Ruby: real sockets, turns by hand, and a small application that answers
 * through the responder as the binding does. HTTP/1.1 connections, queues, deadlines, stopping.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "server/server.h"

static rd_server *server;
static uint16_t port;
static unsigned answered;

static void wait_in_poll(rd_server *waiting, int64_t timeout_us) {
    (void)timeout_us;
    rd_loop_wait(&waiting->loop, &waiting->found,
                 1000); /* never for long: the test drives both sides */
}

static void answer(rd_request *request) {
    rd_slice path = rd_request_slice(request, request->head.path);
    rd_response_head head = {.status = 200, .length = -1};
    answered++;
    if (path.len == 2 && path.ptr[1] == 'k') { /* chunked */
        request->responder->start(request, &head);
        request->responder->write(request, "one", 3);
        request->responder->write(request, "two", 3);
    } else if (path.len == 2 && path.ptr[1] == 's') { /* fewer bytes than promised */
        head.length = 10;
        request->responder->start(request, &head);
        request->responder->write(request, "short", 5);
    } else if (path.len == 2 && path.ptr[1] == 'l') { /* more than promised */
        head.length = 2;
        request->responder->start(request, &head);
        request->responder->write(request, "long", 4);
    } else {
        head.length = (int64_t)path.len;
        request->responder->start(request, &head);
        request->responder->write(request, path.ptr, path.len);
    }
    request->responder->finish(request);
}

static void turn(void) {
    rd_loop_lock(&server->loop);
    rd_server_turn(server, wait_in_poll, true);
    rd_request *request = NULL;
    while ((request = rd_server_next_request(server, request)) != NULL) {
        if (request->conn != NULL) answer(request);
    }
    rd_loop_unlock(&server->loop);
}

static void start(int64_t head_timeout_ms) {
    rd_settings settings;
    char error[RD_LISTENER_ERROR_MAX];
    rd_settings_init(&settings);
    settings.head_timeout_ms = head_timeout_ms;
    settings.linger_timeout_ms = 50;
    settings.fresh_grace_ms = 0;
    server = rd_server_new(&settings);
    rd_listener *listener = rd_alloc_zero(sizeof(*listener));
    rd_listen_options options = {.backlog = 16, .mode = -1};
    CHECK_INT(rd_listen_tcp(listener, "127.0.0.1", 0, &options, error), 0);
    port = listener->port;
    rd_loop_lock(&server->loop);
    CHECK_INT(rd_server_add_listener(server, listener), 0);
    rd_loop_unlock(&server->loop);
}

static int dial(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Turns until the server closes, or until `enough` stands in what came. */
static size_t talk(int fd, char *got, size_t room, const char *enough) {
    size_t len = 0;
    got[0] = '\0';
    for (int i = 0; i < 3000; i++) {
        turn();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, 0) <= 0) continue;
        ssize_t part = recv(fd, got + len, room - len - 1, 0);
        if (part <= 0) break;
        len += (size_t)part;
        got[len] = '\0';
        if (enough != NULL && strstr(got, enough) != NULL) break;
    }
    return len;
}

typedef struct exchange {
    const char *sent, *first, *last; /* what the answer begins and ends with */
    bool half_close;
} exchange;

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static const exchange exchanges[] = {
    {LAST("/a"), "HTTP/1.1 200 OK\r\n", "\r\n\r\n/a", false},
    {GET("/a") GET("/b") LAST("/c"), "HTTP/1.1 200 OK\r\n", "\r\n\r\n/c", false},
    {LAST("/k"), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n",
     "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n", false},
    {"GET /k HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\nconnection: close\r\n", "\r\n\r\nonetwo",
     false},
    {"HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
     "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", "\r\n\r\n", false},
    {GET("/s"), "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n", "short", false},
    {GET("/l"), "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", "\r\n\r\nlo", false},
    {GET("/a") "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\n", false},
    {GET("/a"), "HTTP/1.1 200 OK\r\n", "\r\n\r\n/a", true},
    {"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
     "2\r\nab\r\n0\r\n\r\n",
     "HTTP/1.1 200 OK\r\n", "\r\n\r\n/p", false},
    {"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
     "HTTP/1.1 200 OK\r\n", "\r\n\r\n/p", false},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", "HTTP/1.1 413 ", "\n",
     false},
};

static void run_exchange(const exchange *row, size_t cut) {
    char got[8192];
    int fd = dial();
    size_t len = strlen(row->sent);
    CHECK_INT(send(fd, row->sent, cut, MSG_NOSIGNAL), cut);
    turn();
    turn();
    if (cut < len) CHECK_INT(send(fd, row->sent + cut, len - cut, MSG_NOSIGNAL), len - cut);
    if (row->half_close) shutdown(fd, SHUT_WR);
    talk(fd, got, sizeof(got), NULL);
    CHECK_SAYS(strncmp(got, row->first, strlen(row->first)) == 0 && ends_with(got, row->last),
               "cut at %zu: %s answered by %s", cut, row->sent, got);
    close(fd);
}

static void test_exchanges(void) {
    start(30000);
    for (size_t i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++) {
        size_t len = strlen(exchanges[i].sent);
        run_exchange(&exchanges[i], len);
        for (size_t cut = 1; cut < len; cut += 7) run_exchange(&exchanges[i], cut);
    }
    for (int i = 0; i < 200 && server->conns.count > 0; i++) turn();
    CHECK_INT(server->conns.count, 0);
    CHECK_INT(server->http.requests.live, 0);
    rd_server_free(server);
}

static void test_a_slow_head_is_refused(void) {
    char got[1024];
    start(30);
    int fd = dial();
    CHECK_INT(send(fd, "GET / HT", 8, MSG_NOSIGNAL), 8);
    talk(fd, got, sizeof(got), NULL);
    CHECK_SAYS(strncmp(got, "HTTP/1.1 408 ", 13) == 0, "%s", got);
    close(fd);
    rd_server_free(server);
}

static void test_stopping(void) {
    char got[1024];
    start(30000);
    int idle = dial(), fresh = dial();
    CHECK_INT(send(idle, GET("/i"), strlen(GET("/i")), MSG_NOSIGNAL), strlen(GET("/i")));
    talk(idle, got, sizeof(got), "/i");
    CHECK(!rd_server_is_done(server));
    rd_server_stop(server, RD_STOP_DRAIN);
    for (int i = 0; i < 2000 && !rd_server_is_done(server); i++) turn();
    CHECK(rd_server_is_done(server));
    CHECK_INT(talk(idle, got, sizeof(got), NULL), 0); /* an idle client sees a clean end */
    close(idle);
    close(fresh);
    rd_server_free(server);
}

static void test_requests_of_clients_that_left(void) {
    start(30000);
    int fd = dial();
    struct linger reset = {1, 0};
    answered = 0;
    CHECK_INT(send(fd, GET("/a"), strlen(GET("/a")), MSG_NOSIGNAL), strlen(GET("/a")));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    for (int i = 0; i < 20; i++) turn();
    CHECK(answered <= 1);
    CHECK_INT(server->http.requests.live, 0);
    rd_server_free(server);
}

int main(void) {
    test_exchanges();
    test_a_slow_head_is_refused();
    test_stopping();
    test_requests_of_clients_that_left();
    return check_summary();
}
