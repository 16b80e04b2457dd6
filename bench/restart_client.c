/* SPDX-License-Identifier: MIT
 *
 * The client of restarts.rb: keeps its connections, asks again as soon as it is answered, and never
 * sends a request twice. Counts what was lost, by cause. A line on stdin prints the counts since
 * the line before as JSON; the end of stdin prints the last ones. With TLS, connections resume the
 * first session. Loopback and Unix sockets only.
 */
#include "load/load_answer.h"
#include "client_base.h"
#include "client_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 64, HELD_BYTES = 4096, RECV_BYTES = 65536 };

#define FIRST_HALF_STAYS_NS 2000000u
#define PATIENCE_NS         30000000000u /* for an answer */
#define PAUSE_NS            100000000u   /* between two turns of this program */

/* A request in two parts; between them the client waits when `pauses`. If it asks for the end of
 * its connection, the next request comes on a new one. */
typedef struct rd_kind {
    const char *first, *second;
    unsigned answers;
    bool pauses, asks_for_end;
} rd_kind;

#define HEAD(line) line "\r\nHost: a\r\n"

static const rd_kind kinds[] = {
    {HEAD("GET / HTTP/1.1") "\r\n", "", 1, false, false},
    {HEAD("POST / HTTP/1.1") "Content-Length: 5\r\n\r\n", "hello", 1, true, false},
    {HEAD("GET / HTTP/1.1") "X-A", ": b\r\n\r\n", 1, true, false},
    {HEAD("GET / HTTP/1.0") "Connection: keep-alive\r\n\r\n", "", 1, false, false},
    {HEAD("GET / HTTP/1.1") "\r\n", HEAD("GET / HTTP/1.1") "\r\n", 2, false, false},
    {HEAD("GET / HTTP/1.1") "Connection: close\r\n\r\n", "", 1, false, true},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Every way in which a request ends, the handshakes, and how often the client itself paused: a
 * server that stops may close a connection that is silent for that long. */
#define COUNTS(row)                                                                                \
    row(answers) row(eof) row(reset) row(cut) row(refused) row(status) row(nonsense) row(silent)   \
        row(closed) row(closed_idle) row(behind_close) row(handshakes) row(resumed) row(pauses)

typedef struct rd_counts {
#define ROW(name) unsigned long long name;
    COUNTS(ROW)
#undef ROW
} rd_counts;

typedef struct rd_conn {
    int fd;
    rd_tls_client *tls; /* NULL: plain */
    bool connecting;    /* until the first request could be sent */
    const rd_kind *kind;
    unsigned owed;
    uint64_t second_due_ns; /* 0: nothing more to send */
    uint64_t asked_ns, next_ns;
    rd_load_answer answer;
    char held[HELD_BYTES];
    size_t held_len;
} rd_conn;

typedef struct rd_client {
    struct sockaddr_storage address;
    socklen_t address_len;
    int poller;
    unsigned connections;
    bool mixed, stopping;
    rd_tls_mode tls;
    uint64_t resumed; /* of them, those that were reported */
    uint64_t pause_ns, swept_ns;
    rd_conn *conns;
    rd_counts counts;
    rd_known_answer known;
} rd_client;

static void conn_open(rd_client *client, rd_conn *conn);

/* ---- ends ---- */

static void conn_drop(rd_conn *conn) {
    if (conn->tls) rd_tls_client_end(conn->tls);
    conn->tls = NULL;
    if (conn->fd >= 0) close(conn->fd);
    conn->fd = -1;
    conn->connecting = false;
    conn->owed = 0;
    conn->held_len = 0;
    conn->second_due_ns = 0;
    conn->answer.stage = RD_HEAD;
}

static void conn_again(rd_client *client, rd_conn *conn) {
    conn_drop(conn);
    if (!client->stopping) conn_open(client, conn);
}

/* The server has ended the connection; `error` is 0 after an orderly end. */
static void conn_ended(rd_client *client, rd_conn *conn, int error) {
    rd_counts *counts = &client->counts;
    bool begun = conn->answer.stage != RD_HEAD || conn->held_len > 0;
    if (conn->owed == 0)
        counts->closed_idle++;
    else if (begun)
        counts->cut++;
    else if (error != 0)
        counts->reset++;
    else
        counts->eof++;
    conn_again(client, conn);
}

/* ---- requests ---- */

static bool conn_send(rd_client *client, rd_conn *conn, const char *bytes) {
    size_t len = strlen(bytes);
    if (len == 0) return true;
    ssize_t sent = conn->tls ? rd_tls_client_send(conn->tls, bytes, len)
                             : send(conn->fd, bytes, len, MSG_NOSIGNAL);
    if (sent == (ssize_t)len) return true;
    conn_ended(client, conn, errno);
    return false;
}

static void conn_ask(rd_client *client, rd_conn *conn) {
    const rd_kind *kind = conn->kind;
    conn->next_ns = 0;
    if (client->stopping) return;
    conn->owed = kind->answers;
    conn->asked_ns = rd_client_now_ns();
    if (kind->pauses) conn->second_due_ns = conn->asked_ns + FIRST_HALF_STAYS_NS;
    if (conn_send(client, conn, kind->first) && !kind->pauses)
        conn_send(client, conn, kind->second);
}

static void conn_answered(rd_client *client, rd_conn *conn) {
    client->counts.answers++;
    conn->owed--;
    if (conn->answer.head.status != 200) client->counts.status++;
    if (conn->answer.head.closes) {
        if (!conn->kind->asks_for_end) client->counts.closed++;
        client->counts.behind_close += conn->owed; /* RFC 9112, 9.3.2: to be sent again */
        conn_again(client, conn);
    } else if (conn->owed == 0 && client->pause_ns > 0) {
        conn->next_ns = rd_client_now_ns() + client->pause_ns;
    } else if (conn->owed == 0) {
        conn_ask(client, conn);
    }
}

/* ---- connections ---- */

static void conn_refused(rd_client *client, rd_conn *conn) {
    client->counts.refused++;
    conn_drop(conn);
    conn->next_ns = rd_client_now_ns() + 1000000;
}

static void conn_open(rd_client *client, rd_conn *conn) {
    int family = client->address.ss_family, on = 1;
    conn->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (conn->fd < 0) rd_client_fail("socket");
    if (family != AF_UNIX) setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int code = connect(conn->fd, (struct sockaddr *)&client->address, client->address_len);
    if (code < 0 && errno == EAGAIN) { /* the queue of a Unix socket is full */
        conn_drop(conn);
        conn->next_ns = rd_client_now_ns() + 1000000;
        return;
    }
    if (code < 0 && errno != EINPROGRESS) {
        conn_refused(client, conn);
        return;
    }
    conn->connecting = true;
    conn->asked_ns = rd_client_now_ns();
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = conn};
    if (epoll_ctl(client->poller, EPOLL_CTL_ADD, conn->fd, &event) < 0) rd_client_fail("epoll_ctl");
}

static bool is_connected(rd_client *client, rd_conn *conn) {
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) return false;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    if (epoll_ctl(client->poller, EPOLL_CTL_MOD, conn->fd, &event) < 0) rd_client_fail("epoll_ctl");
    return true;
}

/* Goes on with connecting and with the handshake; the first request follows. */
static void conn_begin(rd_client *client, rd_conn *conn) {
    if (!conn->tls && !is_connected(client, conn)) {
        conn_refused(client, conn);
        return;
    }
    if (client->tls) {
        if (!conn->tls) conn->tls = rd_tls_client_begin(conn->fd, client->tls);
        int done = rd_tls_client_shake_hands(conn->tls);
        if (done < 0) conn_refused(client, conn);
        if (done <= 0) return;
        client->counts.handshakes++;
    }
    conn->connecting = false;
    conn_ask(client, conn);
}

/* Takes the bytes that came; stops if the connection was replaced meanwhile. */
static void bytes_take(rd_client *client, rd_conn *conn, const char *at, size_t len) {
    int fd = conn->fd;
    while (len > 0 && conn->fd == fd) {
        size_t used;
        if (conn->owed == 0) {
            client->counts.nonsense++;
            conn_again(client, conn);
            return;
        }
        rd_load_answer_progress progress =
            rd_load_answer_take(&conn->answer, &client->known, at, len, &used);
        at += used;
        len -= used;
        if (progress == RD_HEAD_CUT && len <= HELD_BYTES) {
            memcpy(conn->held, at, len);
            conn->held_len = len;
            return;
        }
        if (progress == RD_HEAD_CUT || progress == RD_NO_ANSWER) {
            client->counts.nonsense++;
            conn_again(client, conn);
            return;
        }
        bool closes = conn->answer.head.closes;
        if (progress == RD_DONE) conn_answered(client, conn);
        if (progress == RD_DONE && closes) return;
    }
}

static void conn_read(rd_client *client, rd_conn *conn) {
    static char bytes[HELD_BYTES + RECV_BYTES];
    size_t held = conn->held_len;
    ssize_t got = conn->tls
                      ? rd_tls_client_receive(conn->tls, bytes + held, RECV_BYTES, MSG_DONTWAIT)
                      : recv(conn->fd, bytes + held, RECV_BYTES, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        conn_ended(client, conn, got < 0 ? errno : 0);
        return;
    }
    memcpy(bytes, conn->held, held);
    conn->held_len = 0;
    bytes_take(client, conn, bytes, held + (size_t)got);
}

/* Does what is due by the clock. */
static void sweep(rd_client *client) {
    uint64_t now = rd_client_now_ns();
    if (client->swept_ns != 0 && client->swept_ns + PAUSE_NS < now) client->counts.pauses++;
    client->swept_ns = now;
    for (unsigned i = 0; i < client->connections; i++) {
        rd_conn *conn = &client->conns[i];
        if (conn->fd < 0 && !client->stopping && conn->next_ns <= now) conn_open(client, conn);
        if (conn->fd < 0) continue;
        if (!conn->connecting && conn->next_ns != 0 && conn->next_ns <= now) conn_ask(client, conn);
        if (conn->second_due_ns != 0 && conn->second_due_ns <= now) {
            conn->second_due_ns = 0;
            conn_send(client, conn, conn->kind->second);
        }
        if ((conn->owed > 0 || conn->connecting) && conn->asked_ns + PATIENCE_NS < now) {
            client->counts.silent++;
            conn_again(client, conn);
        }
    }
}

/* ---- the main loop ---- */

static void report(rd_client *client) {
    const char *comma = "{";
    client->counts.resumed = rd_tls_client_resumed() - client->resumed;
    client->resumed += client->counts.resumed;
#define ROW(name)                                                                                  \
    printf("%s\"" #name "\": %llu", comma, client->counts.name);                                   \
    comma = ", ";
    COUNTS(ROW)
#undef ROW
    puts("}");
    fflush(stdout);
    client->counts = (rd_counts){0};
}

static void command_read(rd_client *client) {
    char bytes[256];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    for (ssize_t i = 0; i < got; i++)
        if (bytes[i] == '\n') report(client);
    if (got <= 0) client->stopping = true;
}

static bool all_answered(const rd_client *client) {
    for (unsigned i = 0; i < client->connections; i++)
        if (client->conns[i].owed > 0) return false;
    return true;
}

static void run(rd_client *client) {
    struct epoll_event events[EVENTS], from_stdin = {.events = EPOLLIN};
    if (epoll_ctl(client->poller, EPOLL_CTL_ADD, STDIN_FILENO, &from_stdin) < 0)
        rd_client_fail("stdin must be a pipe");
    for (unsigned i = 0; i < client->connections; i++) conn_open(client, &client->conns[i]);
    while (!client->stopping || !all_answered(client)) {
        int ready = epoll_wait(client->poller, events, EVENTS, 1);
        for (int i = 0; i < ready; i++) {
            rd_conn *conn = events[i].data.ptr;
            if (conn == NULL && !client->stopping) command_read(client);
            if (conn == NULL || conn->fd < 0) continue;
            if (conn->connecting)
                conn_begin(client, conn);
            else
                conn_read(client, conn);
        }
        sweep(client);
        if (client->stopping) epoll_ctl(client->poller, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
    }
    report(client);
}

static void address_read(rd_client *client, const char *target) {
    if (strncmp(target, "unix:", 5) == 0) {
        client->address_len = rd_client_unix_address(&client->address, target + 5);
        return;
    }
    struct sockaddr_in *address = (struct sockaddr_in *)&client->address;
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)strtoul(target, NULL, 10));
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client->address_len = sizeof *address;
}

static const char *const USAGE =
    "usage: restart_client [-c CONNECTIONS] [--pause MS] [--mixed] [--tls] PORT | unix:SOCKET\n"
    "  --pause MS  between an answer and the next request (0)\n"
    "  --mixed     also bodies and heads that come in halves, HTTP/1.0, pipelined requests, and a\n"
    "              new connection for each request\n"
    "  --tls       TLS 1.3; the connections resume the first session\n";

int main(int argc, char **argv) {
    static rd_client client = {.connections = 16};
    const char *target = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--mixed") == 0)
            client.mixed = true;
        else if (strcmp(argv[i], "--tls") == 0)
            client.tls = RD_TLS_RESUMED;
        else if (strcmp(argv[i], "-c") == 0 && i + 1 < argc)
            client.connections = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--pause") == 0 && i + 1 < argc)
            client.pause_ns = strtoull(argv[++i], NULL, 10) * 1000000;
        else
            target = argv[i];
    }
    errno = 0;
    if (!target || target[0] == '-' || client.connections == 0) rd_client_fail(USAGE);
    signal(SIGPIPE, SIG_IGN);
    address_read(&client, target);
    client.conns = calloc(client.connections, sizeof *client.conns);
    client.poller = epoll_create1(EPOLL_CLOEXEC);
    if (!client.conns || client.poller < 0) rd_client_fail("out of memory or descriptors");
    for (unsigned i = 0; i < client.connections; i++)
        client.conns[i].kind = &kinds[client.mixed ? i % KINDS : 0];
    run(&client);
    return 0;
}
