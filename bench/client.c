/* SPDX-License-Identifier: MIT
 *
 * The load client of the benchmarks: a closed loop over N connections on one thread, cheap enough
 * (a small part of what the servers cost) that fast servers do not all look the same under it.
 * Started by measure.rb, which hands it whole requests as files; by hand: client --help. Its parts:
 * client_requests.c (what is sent), ext/rondo/load/load_answer.c (what is read), latency.c there
 * (the waits). Loopback and Unix sockets only: it is no tool to point at anybody else's machine. */
#include "client_base.h"
#include "client_requests.h"
#include "client_tls.h"
#include "load/latency.h"
#include "load/load_answer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_DEPTH = 256, RECV_BYTES = 262144, EVENTS = 32, MAX_ERRORS = 100000 };

typedef struct rd_conn {
    int fd;
    rd_tls_client *tls; /* NULL: plain */
    rd_load_answer answer;
    char *held; /* the beginning of a head that came in pieces; NULL when none */
    size_t held_len;
    unsigned next;   /* index of the next request to send, at most one round ahead of the first */
    unsigned owed;   /* answers that are still to come */
    unsigned oldest; /* slot of the oldest of them in sent_ns */
    unsigned answered_now;
    size_t out_at, out_end; /* part of the request bytes not yet taken by the kernel */
    uint64_t completed;
    uint64_t close_due_ns; /* 0, or the time after which a server that should have closed is no
                              longer waited for */
    bool wants_write;
    uint64_t *sent_ns;
} rd_conn;

typedef struct rd_client {
    struct sockaddr_storage address;
    socklen_t address_len;
    int poller;
    unsigned connections, depth, idle;
    bool close_each, json, leaves;
    rd_tls_mode tls;
    double seconds;
    uint64_t limit, every_ns; /* `every_ns`: the least time between two new connections */
    uint64_t next_open_ns;
    rd_requests requests;
    rd_conn *conns;
    bool stopping;
    uint64_t started_ns, stopped_ns;
    uint64_t skip, skipped, skipped_ns; /* the first answers, which do not count */
    uint64_t issued, completed, non_2xx, errors, connect_errors, reconnects, unclosed;
    uint64_t bytes_in, body_min, body_max;
    rd_latency latency;
    rd_known_answer known;
} rd_client;

static char receive_buf[RECV_BYTES];

/* ---- answers ---- */

/* Counting begins anew. What is on its way counts. */
static void counts_clear(rd_client *client, uint64_t now) {
    for (unsigned i = 0; i < client->connections; i++) client->conns[i].completed = 0;
    client->skipped = client->completed;
    client->skipped_ns = now - client->started_ns;
    client->started_ns = now;
    client->issued -= client->completed;
    client->completed = client->bytes_in = client->non_2xx = 0;
    client->latency = (rd_latency){0};
}

static void answer_done(rd_client *client, rd_conn *conn, uint64_t now) {
    const rd_load_answer *answer = &conn->answer;
    if (answer->head.status < 200) return; /* an interim answer: the real one follows */
    rd_latency_add(&client->latency, now - conn->sent_ns[conn->oldest]);
    conn->oldest = (conn->oldest + 1) % client->depth;
    conn->owed--;
    conn->answered_now++;
    if (answer->head.status > 299) client->non_2xx++;
    if (answer->body_bytes < client->body_min) client->body_min = answer->body_bytes;
    if (answer->body_bytes > client->body_max) client->body_max = answer->body_bytes;
    client->completed++;
    if (!client->stopping) conn->completed++;
    if (client->completed == client->skip && client->skip && !client->skipped)
        counts_clear(client, now);
}

static void held_keep(rd_conn *conn, const char *at, size_t len) {
    conn->held = malloc(len);
    if (!conn->held) rd_client_fail("out of memory");
    memcpy(conn->held, at, len);
    conn->held_len = len;
}

static void held_drop(rd_conn *conn) {
    free(conn->held);
    conn->held = NULL;
    conn->held_len = 0;
}

/* Receives once; bytes that were held come first. Returns the result of recv. */
static ssize_t conn_receive(rd_conn *conn, size_t *len, int flags) {
    size_t held = conn->held_len;
    char *at = receive_buf + held;
    size_t room = sizeof receive_buf - held;
    ssize_t got = conn->tls ? rd_tls_client_receive(conn->tls, at, room, flags)
                            : recv(conn->fd, at, room, flags);
    if (got <= 0) return got;
    if (held) memcpy(receive_buf, conn->held, held);
    held_drop(conn);
    *len = held + (size_t)got;
    return got;
}

/* Returns false if the bytes are not an answer to a request. */
static bool bytes_read(rd_client *client, rd_conn *conn, size_t len, uint64_t now) {
    const char *at = receive_buf;
    while (len > 0) {
        size_t used;
        if (conn->owed == 0) return false;
        rd_load_answer_progress progress =
            rd_load_answer_take(&conn->answer, &client->known, at, len, &used);
        at += used;
        len -= used;
        if (progress == RD_NO_ANSWER) return false;
        if (progress == RD_DONE) answer_done(client, conn, now);
        if (progress != RD_HEAD_CUT) continue;
        held_keep(conn, at, len);
        return true;
    }
    return true;
}

/* ---- connections ---- */

static void conn_watch(rd_client *client, rd_conn *conn, int operation, bool write) {
    struct epoll_event event = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = conn};
    conn->wants_write = write;
    if (epoll_ctl(client->poller, operation, conn->fd, &event) < 0) rd_client_fail("epoll_ctl");
}

static int socket_open(rd_client *client, bool blocking) {
    int family = client->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0);
    if (fd < 0) rd_client_fail("socket");
    int on = 1;
    if (family != AF_UNIX) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct sockaddr *address = (struct sockaddr *)&client->address;
    if (connect(fd, address, client->address_len) < 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static ssize_t bytes_send(rd_conn *conn, const char *bytes, size_t len) {
    if (conn->tls) return rd_tls_client_send(conn->tls, bytes, len);
    return send(conn->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void conn_flush(rd_client *client, rd_conn *conn) {
    while (conn->out_at < conn->out_end) {
        ssize_t sent =
            bytes_send(conn, client->requests.bytes + conn->out_at, conn->out_end - conn->out_at);
        if (sent < 0 && errno == EINPROGRESS) break;
        if (sent < 0) {
            /* Any error but a full socket is left to the next recv, which reports it. */
            if ((errno == EAGAIN || errno == ENOTCONN) && !conn->wants_write)
                conn_watch(client, conn, EPOLL_CTL_MOD, true);
            return;
        }
        conn->out_at += (size_t)sent;
    }
    if (conn->wants_write) conn_watch(client, conn, EPOLL_CTL_MOD, false);
}

static void conn_ask(rd_client *client, rd_conn *conn, unsigned count) {
    if (client->limit && client->issued + count > client->limit)
        count = (unsigned)(client->limit - client->issued);
    if (client->stopping || count == 0) return;
    uint64_t now = rd_client_now_ns();
    for (unsigned i = 0; i < count; i++)
        conn->sent_ns[(conn->oldest + conn->owed + i) % client->depth] = now;
    conn->owed += count;
    client->issued += count;
    bool busy = conn->out_at < conn->out_end;
    size_t round = client->requests.offsets[client->requests.count];
    if (!busy) {
        conn->next %= client->requests.count;
        conn->out_at = client->requests.offsets[conn->next];
    } else if (conn->out_at >= round) {
        /* The same bytes one round earlier, so that the run never leaves the ring. */
        size_t rounds = conn->out_at / round;
        conn->out_at -= rounds * round;
        conn->next -= (unsigned)rounds * client->requests.count;
    }
    conn->next += count;
    conn->out_end = client->requests.offsets[conn->next];
    if (!busy) conn_flush(client, conn);
}

static void conn_open(rd_client *client, rd_conn *conn) {
    uint64_t begun = rd_client_now_ns();
    if (begun < client->next_open_ns) return;
    client->next_open_ns = begun + client->every_ns;
    conn->fd = socket_open(client, false);
    if (conn->fd < 0) {
        client->connect_errors++;
        return;
    }
    if (client->tls) conn->tls = rd_tls_client_begin(conn->fd, client->tls);
    conn->answer.stage = RD_HEAD;
    conn->owed = conn->oldest = conn->answered_now = 0;
    conn->out_at = conn->out_end = 0;
    conn->close_due_ns = 0;
    conn_watch(client, conn, EPOLL_CTL_ADD, false);
    conn_ask(client, conn, client->depth);
    if (client->close_each) conn->sent_ns[0] = begun; /* there the wait includes the handshake */
}

static void conn_close(rd_client *client, rd_conn *conn) {
    /* Requests that were never answered are no longer on their way. */
    client->issued -= conn->owed;
    conn->owed = conn->answered_now = 0;
    held_drop(conn);
    if (conn->tls) rd_tls_client_end(conn->tls);
    conn->tls = NULL;
    close(conn->fd);
    conn->fd = -1;
}

static void conn_ended(rd_client *client, rd_conn *conn, bool broken, uint64_t now) {
    if (!broken && conn->owed && rd_load_answer_ends_with_close(&conn->answer))
        answer_done(client, conn, now);
    bool lost = broken || conn->owed > 0;
    if (lost && !client->stopping) client->errors++;
    conn_close(client, conn);
    if (client->stopping || (client->limit && client->issued >= client->limit)) return;
    if (!client->close_each) client->reconnects++;
    /* Otherwise a server that is gone would be asked again and again without end. */
    if (client->errors + client->connect_errors < MAX_ERRORS) conn_open(client, conn);
}

static void conn_turn(rd_client *client, rd_conn *conn, uint32_t events) {
    if (events & EPOLLOUT) conn_flush(client, conn);
    if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP))) return;
    if (conn->tls && !(events & EPOLLOUT)) conn_flush(client, conn); /* after the handshake */
    size_t len = 0;
    ssize_t got = conn_receive(conn, &len, MSG_DONTWAIT);
    uint64_t now = rd_client_now_ns();
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        conn_ended(client, conn, got < 0, now);
        return;
    }
    client->bytes_in += (uint64_t)got;
    conn->answered_now = 0;
    if (!bytes_read(client, conn, len, now))
        conn_ended(client, conn, true, now);
    else if (client->close_each && conn->answered_now)
        conn->close_due_ns = now + 250000000u;
    if (client->close_each || conn->answer.head.closes)
        conn->answered_now = 0; /* there is nothing more to send here */
}

/* A server that ignores "Connection: close" must not stall the run: after 250 ms we close. A
 * connection that could not be opened is tried again. */
static void sweep(rd_client *client, uint64_t now) {
    for (unsigned i = 0; i < client->connections; i++) {
        rd_conn *conn = &client->conns[i];
        if (conn->fd < 0 && !client->stopping) conn_open(client, conn);
        if (conn->fd < 0 || conn->close_due_ns == 0 || conn->close_due_ns > now) continue;
        struct linger abort_it = {.l_onoff = 1};
        setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it);
        client->unclosed++;
        conn_ended(client, conn, false, now);
    }
}

static bool all_answered(const rd_client *client) {
    for (unsigned i = 0; i < client->connections; i++)
        if (client->conns[i].fd >= 0 && client->conns[i].owed) return false;
    return true;
}

/* A connection that still waits at the end of the time has waited at least this long. */
static void open_waits_count(rd_client *client) {
    for (unsigned i = 0; i < client->connections; i++) {
        rd_conn *conn = &client->conns[i];
        if (conn->fd < 0 || conn->owed == 0) continue;
        uint64_t wait = rd_client_now_ns() - conn->sent_ns[conn->oldest];
        if (wait > client->latency.longest_ns) client->latency.longest_ns = wait;
        if (!client->leaves) client->errors++;
    }
}

static void run(rd_client *client) {
    struct epoll_event events[EVENTS];
    client->started_ns = rd_client_now_ns();
    uint64_t due = client->started_ns + (uint64_t)(client->seconds * 1e9);
    uint64_t swept = client->started_ns;
    for (unsigned i = 0; i < client->connections; i++) {
        client->conns[i].next = i % client->requests.count;
        conn_open(client, &client->conns[i]);
    }
    for (;;) {
        int ready = epoll_wait(client->poller, events, EVENTS, client->every_ns ? 1 : 50);
        for (int i = 0; i < ready; i++) conn_turn(client, events[i].data.ptr, events[i].events);
        /* Staged like the floor: receive from all, then send to all is kinder to the caches. */
        for (int i = 0; i < ready; i++) {
            rd_conn *conn = events[i].data.ptr;
            if (conn->answered_now) conn_ask(client, conn, conn->answered_now);
            conn->answered_now = 0;
        }
        uint64_t now = rd_client_now_ns();
        if (now - swept > (client->every_ns ? 1000000u : 50000000u)) sweep(client, swept = now);
        bool spent = client->limit && client->completed >= client->limit;
        if (!client->stopping && (now >= due || spent)) {
            client->stopping = true;
            client->stopped_ns = now;
            /* answers to earlier requests are awaited, but not for ever */
            due = client->leaves ? now : now + 5000000000u;
        }
        bool hopeless = client->errors + client->connect_errors >= MAX_ERRORS;
        if (client->stopping && (now >= due || all_answered(client))) break;
        if (hopeless && !client->stopping) due = now;
    }
    open_waits_count(client);
}

/* ---- idle connections ---- */

static bool idle_ask(rd_client *client, rd_conn *conn) {
    struct timeval patience = {.tv_sec = RD_CLIENT_PATIENCE_S};
    conn->fd = socket_open(client, true);
    if (conn->fd < 0) return false;
    setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (client->tls) conn->tls = rd_tls_client_begin(conn->fd, client->tls);
    size_t len = client->requests.offsets[1];
    if (bytes_send(conn, client->requests.bytes, len) != (ssize_t)len) return false;
    conn->owed = 1;
    conn->sent_ns[0] = rd_client_now_ns();
    while (conn->owed) {
        size_t got_len;
        if (conn_receive(conn, &got_len, 0) <= 0) return false;
        if (!bytes_read(client, conn, got_len, rd_client_now_ns())) return false;
    }
    return !conn->answer.head.closes;
}

/* Opens them, sends one request on each, prints a line and holds them until stdin ends. */
static void idle_hold(rd_client *client) {
    unsigned held = 0;
    for (unsigned i = 0; i < client->idle && client->errors < 5; i++) {
        if (idle_ask(client, &client->conns[i]))
            held++;
        else
            client->errors++;
    }
    printf("{\"idle\": %u, \"errors\": %llu}\n", held, (unsigned long long)client->errors);
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

/* ---- the report ---- */

static double cpu_us(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* The number of answers of each connection, and the size of its last one: the size may show which
 * process answered. */
static void report_connections(const rd_client *client) {
    printf(", \"conns\": [");
    for (unsigned i = 0; i < client->connections; i++) {
        const rd_conn *conn = &client->conns[i];
        printf("%s[%llu, %llu]", i > 0 ? ", " : "", (unsigned long long)conn->completed,
               (unsigned long long)conn->answer.body_bytes);
    }
    printf("]}\n");
}

static void report(const rd_client *client) {
    uint64_t low = UINT64_MAX, high = 0, done = 0;
    for (unsigned i = 0; i < client->connections; i++) {
        uint64_t completed = client->conns[i].completed;
        low = completed < low ? completed : low;
        high = completed > high ? completed : high;
        done += completed;
    }
    double seconds = (double)(client->stopped_ns - client->started_ns) / 1e9;
    double per = client->completed ? (double)client->completed : 1.0;
    const char *form =
        client->json
            ? "{\"requests\": %llu, \"seconds\": %.4f, \"rps\": %.1f, \"bytes_in\": %llu, "
              "\"body_min\": %llu, \"body_max\": %llu, \"non_2xx\": %llu, \"errors\": %llu, "
              "\"connect_errors\": %llu, \"reconnects\": %llu, \"unclosed\": %llu, "
              "\"conn_min\": %llu, \"conn_max\": %llu, \"mean_us\": %.2f, \"p50_us\": %.2f, "
              "\"p90_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, \"longest_us\": %.2f, "
              "\"client_cpu_us\": %.3f, \"resumed\": %llu, \"skipped\": %llu, "
              "\"skipped_seconds\": %.4f"
            : "requests           %llu\nseconds            %.4f\nrequests/s         %.1f\n"
              "bytes received     %llu\nbody min           %llu\nbody max           %llu\n"
              "not 2xx            %llu\nerrors             %llu\nconnect errors     %llu\n"
              "reconnects         %llu\nnot closed         %llu\nper connection min %llu\n"
              "per connection max %llu\nmean us            %.2f\np50 us             %.2f\n"
              "p90 us             %.2f\np99 us             %.2f\np99.9 us           %.2f\n"
              "longest us         %.2f\nclient CPU us/req  %.3f\n"
              "resumed            %llu\nskipped            %llu\n"
              "skipped seconds    %.4f\n";
    typedef unsigned long long ull;
    printf(form, (ull)client->completed, seconds, (double)done / (seconds > 0 ? seconds : 1),
           (ull)client->bytes_in, (ull)(client->completed ? client->body_min : 0),
           (ull)client->body_max, (ull)client->non_2xx, (ull)client->errors,
           (ull)client->connect_errors, (ull)client->reconnects, (ull)client->unclosed, (ull)low,
           (ull)high, (double)client->latency.sum_ns / per / 1000.0,
           rd_latency_percentile_us(&client->latency, 0.50),
           rd_latency_percentile_us(&client->latency, 0.90),
           rd_latency_percentile_us(&client->latency, 0.99),
           rd_latency_percentile_us(&client->latency, 0.999),
           (double)client->latency.longest_ns / 1000.0, cpu_us() / per,
           (ull)rd_tls_client_resumed(), (ull)client->skipped, (double)client->skipped_ns / 1e9);
    if (client->json) report_connections(client);
}

/* ---- the command line ---- */

static const char *const USAGE =
    "usage: client [options] 127.0.0.1:PORT[/PATH] | unix:SOCKET\n"
    "  -c N            connections (64)          -p N         requests in flight on each (1)\n"
    "  -d SECONDS      at most so long (1)       -n COUNT     at most so many requests\n"
    "  --request FILE  a whole request to send; several are sent in turn\n"
    "  -X METHOD, -H 'name: value', --body TEXT  or a request made of these\n"
    "  --paths N       or N of them in turn, to PATH0, PATH1 and so on\n"
    "  --close         a new connection for each request\n"
    "  --skip COUNT    so many answers come first and do not count, nor in -n\n"
    "  --leave         go when time is over, also while answers are still to come\n"
    "  --every US      with --close: at most one new connection in so many microseconds\n"
    "  --tls MODE      TLS 1.3 with full or resumed handshakes\n"
    "  --idle N        open N connections, ask once on each, hold them until stdin ends\n"
    "  --pin CPU       stay on this CPU          --json       one line of JSON\n";

static const char *address_read(rd_client *client, char *target) {
    static char path[4096];
    snprintf(path, sizeof path, "/");
    if (strncmp(target, "unix:", 5) == 0) {
        client->address_len = rd_client_unix_address(&client->address, target + 5);
        return path;
    }
    char *host = strncmp(target, "http://", 7) == 0 ? target + 7 : target;
    char *colon = strchr(host, ':');
    char *slash = strchr(host, '/');
    if (slash) {
        snprintf(path, sizeof path, "%s", slash);
        *slash = 0;
    }
    struct sockaddr_in *address = (struct sockaddr_in *)&client->address;
    if (!colon) rd_client_fail("PORT is missing");
    *colon = 0;
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    if (inet_pton(AF_INET, host, &address->sin_addr) != 1 ||
        ntohl(address->sin_addr.s_addr) >> 24 != 127)
        rd_client_fail("only 127.x.x.x and unix: are allowed");
    client->address_len = sizeof *address;
    return path;
}

static void conns_make(rd_client *client) {
    unsigned count = client->idle > client->connections ? client->idle : client->connections;
    client->conns = calloc(count, sizeof *client->conns);
    uint64_t *times = calloc((size_t)count * client->depth, sizeof *times);
    if (!client->conns || !times) rd_client_fail("out of memory");
    for (unsigned i = 0; i < count; i++) {
        client->conns[i].fd = -1;
        client->conns[i].sent_ns = times + (size_t)i * client->depth;
    }
    client->poller = epoll_create1(EPOLL_CLOEXEC);
    if (client->poller < 0) rd_client_fail("epoll_create1");
}

static bool flag_read(rd_client *client, const char *name) {
    if (strcmp(name, "--close") == 0)
        client->close_each = true;
    else if (strcmp(name, "--json") == 0)
        client->json = true;
    else if (strcmp(name, "--leave") == 0)
        client->leaves = true;
    else
        return false;
    return true;
}

static void option_read(rd_client *client, const char *name, const char *value) {
    if (strcmp(name, "-c") == 0)
        client->connections = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "-p") == 0)
        client->depth = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "-d") == 0)
        client->seconds = strtod(value, NULL);
    else if (strcmp(name, "-n") == 0)
        client->limit = strtoull(value, NULL, 10);
    else if (strcmp(name, "--skip") == 0)
        client->skip = strtoull(value, NULL, 10);
    else if (strcmp(name, "-X") == 0)
        rd_requests_set_method(value);
    else if (strcmp(name, "-H") == 0)
        rd_requests_add_header(value);
    else if (strcmp(name, "--body") == 0)
        rd_requests_set_body(value);
    else if (strcmp(name, "--paths") == 0)
        rd_requests_set_paths((unsigned)strtoul(value, NULL, 10));
    else if (strcmp(name, "--request") == 0)
        rd_requests_add_file(&client->requests, value);
    else if (strcmp(name, "--idle") == 0)
        client->idle = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "--every") == 0)
        client->every_ns = strtoull(value, NULL, 10) * 1000;
    else if (strcmp(name, "--tls") == 0)
        client->tls = rd_tls_client_mode(value);
    else if (strcmp(name, "--pin") == 0)
        rd_client_pin(value);
    else
        rd_client_fail(USAGE);
}

int main(int argc, char **argv) {
    static rd_client client = {.connections = 64, .depth = 1, .seconds = 1, .body_min = UINT64_MAX};
    char *target = NULL;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-')
            target = argv[i];
        else if (!flag_read(&client, argv[i]) && i + 1 < argc)
            option_read(&client, argv[i], argv[i + 1]), i++;
        else if (!flag_read(&client, argv[i]))
            rd_client_fail(USAGE);
    }
    errno = 0;
    if (!target || !client.connections || !client.depth || client.depth > MAX_DEPTH)
        rd_client_fail(USAGE);
    if (client.close_each) client.depth = 1;
    signal(SIGPIPE, SIG_IGN);
    const char *path = address_read(&client, target);
    rd_requests_lay(&client.requests, path, client.close_each, client.depth);
    conns_make(&client);
    if (client.idle) {
        idle_hold(&client);
        return 0;
    }
    run(&client);
    report(&client);
    return client.completed ? 0 : 1;
}
