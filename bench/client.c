/* SPDX-License-Identifier: MIT
 *
 * The load client of the benchmarks: a closed loop over N connections on one thread, cheap enough
 * (a small part of what the servers cost) that fast servers do not all look the same under it.
 * Started by run.rb, which hands it whole requests as files; by hand: client --help.
 * Loopback and Unix sockets only: it is no tool to point at anybody else's machine. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_REQUESTS = 64,
    MAX_DEPTH = 256,
    MAX_HEAD = 65536,
    RECV_BYTES = 262144,
    EVENTS = 32,
    SUB_BITS = 6, /* 64 buckets for each power of two: 1.6 % wide */
    BUCKETS = 64 << SUB_BITS,
};

/* How the body of the answer being read ends. */
typedef enum rd_framing { RD_BY_LENGTH, RD_CHUNKED, RD_UNTIL_CLOSE } rd_framing;

/* HEAD -> BODY (-> CHUNK_LINE <-> CHUNK_BODY -> TRAILER) -> HEAD; a close may end any of them. */
typedef enum rd_stage { RD_HEAD, RD_BODY, RD_CHUNK_LINE, RD_CHUNK_BODY, RD_TRAILER } rd_stage;

typedef struct rd_head {
    size_t bytes;
    int status;
    rd_framing framing;
    uint64_t length;
    bool closes;
} rd_head;

typedef struct rd_conn {
    int fd;
    rd_stage stage;
    rd_head head;
    uint64_t left;       /* bytes of the body or chunk still to come */
    unsigned line_bytes; /* of the chunk or trailer line being read */
    bool in_extension;   /* the digits of the chunk line are over */
    char *held;          /* the beginning of a head that came in pieces; NULL when none */
    size_t held_len;
    unsigned next;   /* index of the next request to send, at most one round past the first */
    unsigned owed;   /* answers to come */
    unsigned oldest; /* slot of the oldest of them in sent_ns */
    unsigned answered_now;
    size_t out_at, out_end; /* part of the request bytes not yet taken by the kernel */
    uint64_t completed;
    uint64_t body_bytes;
    uint64_t close_due_ns; /* 0, or when a server that should have closed is no longer waited for */
    bool wants_write;
    uint64_t *sent_ns;
} rd_conn;

typedef struct rd_client {
    struct sockaddr_storage address;
    socklen_t address_len;
    int poller;
    unsigned connections, depth, idle;
    bool close_each, json;
    double seconds;
    uint64_t limit;
    /* All requests one behind the other, repeated: any `depth` in a row are contiguous. */
    char *requests;
    size_t *offsets;
    unsigned request_count;
    rd_conn *conns;
    bool stopping;
    uint64_t started_ns, stopped_ns;
    uint64_t issued, completed, non_2xx, errors, connect_errors, reconnects, unclosed;
    uint64_t bytes_in, body_min, body_max;
    uint64_t longest_ns, latency_sum_ns;
    uint64_t buckets[BUCKETS];
    /* Answers repeat: the last head and what it said spare reading the same bytes again. */
    char known_head[1024];
    rd_head known;
} rd_client;

static char receive_buf[RECV_BYTES];

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what) {
    if (errno)
        fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    else
        fprintf(stderr, "client: %s\n", what);
    exit(2);
}

/* ---- latency buckets ---- */

static unsigned bucket_of(uint64_t nanoseconds) {
    if (nanoseconds < (1u << SUB_BITS)) return (unsigned)nanoseconds;
    unsigned power = 63u - (unsigned)__builtin_clzll(nanoseconds);
    unsigned shift = power - SUB_BITS;
    return ((shift + 1) << SUB_BITS) + (unsigned)((nanoseconds >> shift) - (1u << SUB_BITS));
}

static uint64_t bucket_middle(unsigned bucket) {
    if (bucket < (1u << SUB_BITS)) return bucket;
    unsigned shift = (bucket >> SUB_BITS) - 1;
    uint64_t low = ((uint64_t)(bucket & ((1u << SUB_BITS) - 1)) + (1u << SUB_BITS)) << shift;
    return low + ((1ull << shift) >> 1);
}

static double percentile_us(const rd_client *client, double share) {
    uint64_t total = 0;
    for (unsigned i = 0; i < BUCKETS; i++) total += client->buckets[i];
    uint64_t rank = (uint64_t)((double)total * share);
    uint64_t seen = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += client->buckets[i];
        if (seen > rank) return (double)bucket_middle(i) / 1000.0;
    }
    return (double)client->longest_ns / 1000.0;
}

/* ---- reading answers ---- */

static bool header_is(const char *line, size_t len, const char *name) {
    size_t name_len = strlen(name);
    return len > name_len && line[name_len] == ':' && strncasecmp(line, name, name_len) == 0;
}

static bool value_has(const char *line, size_t len, const char *word) {
    size_t word_len = strlen(word);
    for (size_t i = 0; i + word_len <= len; i++)
        if (strncasecmp(line + i, word, word_len) == 0) return true;
    return false;
}

static void head_line_read(rd_head *head, const char *line, size_t len, bool *has_length) {
    if (header_is(line, len, "content-length")) {
        head->length = strtoull(line + 15, NULL, 10);
        *has_length = true;
    } else if (header_is(line, len, "transfer-encoding") && value_has(line, len, "chunked")) {
        head->framing = RD_CHUNKED;
    } else if (header_is(line, len, "connection") && value_has(line, len, "close")) {
        head->closes = true;
    }
}

/* Returns 1 with *head filled, 0 when the head is not whole yet, -1 when it is no HTTP/1 answer. */
static int head_read(rd_head *head, const char *at, size_t len) {
    const char *end = memmem(at, len, "\r\n\r\n", 4);
    if (!end) return len > MAX_HEAD ? -1 : 0;
    if (end - at < 12 || memcmp(at, "HTTP/1.", 7) != 0) return -1;
    bool has_length = false;
    *head = (rd_head){.bytes = (size_t)(end - at) + 4, .framing = RD_BY_LENGTH};
    head->status = (at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0');
    const char *line = memchr(at, '\n', len);
    while (line && line + 1 < end) {
        const char *start = line + 1;
        line = memchr(start, '\n', (size_t)(end + 2 - start));
        if (line) head_line_read(head, start, (size_t)(line - start), &has_length);
    }
    if (head->status < 200 || head->status == 204 || head->status == 304)
        head->framing = RD_BY_LENGTH, head->length = 0;
    else if (head->framing != RD_CHUNKED && !has_length)
        head->framing = RD_UNTIL_CLOSE;
    return 1;
}

static int head_recall(rd_client *client, rd_head *head, const char *at, size_t len) {
    rd_head *known = &client->known;
    if (known->bytes && len >= known->bytes && memcmp(at, client->known_head, known->bytes) == 0) {
        *head = *known;
        return 1;
    }
    int found = head_read(head, at, len);
    if (found == 1 && head->bytes <= sizeof client->known_head) {
        memcpy(client->known_head, at, head->bytes);
        *known = *head;
    }
    return found;
}

static void answer_done(rd_client *client, rd_conn *conn, uint64_t now) {
    conn->stage = RD_HEAD;
    if (conn->head.status < 200) return; /* an interim answer: the real one follows */
    uint64_t wait = now - conn->sent_ns[conn->oldest];
    conn->oldest = (conn->oldest + 1) % client->depth;
    conn->owed--;
    conn->answered_now++;
    client->buckets[bucket_of(wait)]++;
    client->latency_sum_ns += wait;
    if (wait > client->longest_ns) client->longest_ns = wait;
    if (conn->head.status < 200 || conn->head.status > 299) client->non_2xx++;
    if (conn->body_bytes < client->body_min) client->body_min = conn->body_bytes;
    if (conn->body_bytes > client->body_max) client->body_max = conn->body_bytes;
    conn->body_bytes = 0;
    client->completed++;
    if (!client->stopping) conn->completed++;
}

static size_t body_take(rd_conn *conn, size_t len) {
    size_t taken = conn->left < len ? (size_t)conn->left : len;
    conn->left -= taken;
    conn->body_bytes += taken;
    return taken;
}

/* Reads one line of the chunked framing, which may come in pieces. Returns the bytes used. */
static size_t chunk_line_take(rd_conn *conn, const char *at, size_t len, bool *whole) {
    size_t used = 0;
    *whole = false;
    while (used < len && !*whole) {
        char c = at[used++];
        if (c == '\n')
            *whole = true;
        else if (c != '\r')
            conn->line_bytes++;
        if (conn->stage != RD_CHUNK_LINE || conn->in_extension) continue;
        unsigned digit = 99;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            digit = (unsigned)((c | 32) - 'a') + 10;
        else if (c == ';')
            conn->in_extension = true;
        if (digit < 16) conn->left = conn->left * 16 + digit;
    }
    return used;
}

static void chunk_line_begin(rd_conn *conn) {
    conn->stage = RD_CHUNK_LINE;
    conn->left = 0;
    conn->line_bytes = 0;
    conn->in_extension = false;
}

static size_t chunked_take(rd_client *client, rd_conn *conn, const char *at, size_t len,
                           uint64_t now) {
    bool whole;
    if (conn->stage == RD_CHUNK_BODY) {
        size_t taken = conn->left ? body_take(conn, len) : 0;
        if (conn->left == 0 && taken < len) {
            taken += chunk_line_take(conn, at + taken, len - taken, &whole); /* its CR LF */
            if (whole) chunk_line_begin(conn);
        }
        return taken;
    }
    size_t taken = chunk_line_take(conn, at, len, &whole);
    if (!whole) return taken;
    unsigned line_bytes = conn->line_bytes;
    conn->line_bytes = 0;
    if (conn->stage == RD_TRAILER && line_bytes == 0)
        answer_done(client, conn, now);
    else if (conn->stage == RD_CHUNK_LINE)
        conn->stage = conn->left ? RD_CHUNK_BODY : RD_TRAILER;
    return taken;
}

static void body_begin(rd_client *client, rd_conn *conn, uint64_t now) {
    if (conn->head.framing == RD_CHUNKED) {
        chunk_line_begin(conn);
    } else if (conn->head.framing == RD_UNTIL_CLOSE) {
        conn->stage = RD_BODY;
        conn->left = UINT64_MAX;
    } else if (conn->head.length == 0) {
        answer_done(client, conn, now);
    } else {
        conn->stage = RD_BODY;
        conn->left = conn->head.length;
    }
}

/* Returns false when the bytes are no answer that was asked for. */
static bool bytes_read(rd_client *client, rd_conn *conn, const char *at, size_t len, uint64_t now) {
    while (len > 0) {
        size_t taken;
        if (conn->stage == RD_HEAD) {
            if (conn->owed == 0) return false;
            int found = head_recall(client, &conn->head, at, len);
            if (found < 0) return false;
            if (found == 0) {
                conn->held = malloc(len);
                if (!conn->held) fail("out of memory");
                memcpy(conn->held, at, len);
                conn->held_len = len;
                return true;
            }
            taken = conn->head.bytes;
            body_begin(client, conn, now);
        } else if (conn->stage == RD_BODY) {
            taken = body_take(conn, len);
            if (conn->left == 0) answer_done(client, conn, now);
        } else {
            taken = chunked_take(client, conn, at, len, now);
        }
        at += taken;
        len -= taken;
    }
    return true;
}

/* ---- connections ---- */

static void conn_watch(rd_client *client, rd_conn *conn, int operation, bool write) {
    struct epoll_event event = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = conn};
    conn->wants_write = write;
    if (epoll_ctl(client->poller, operation, conn->fd, &event) < 0) fail("epoll_ctl");
}

static int socket_open(rd_client *client, bool blocking) {
    int family = client->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0);
    if (fd < 0) fail("socket");
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

static void conn_flush(rd_client *client, rd_conn *conn) {
    while (conn->out_at < conn->out_end) {
        ssize_t sent = send(conn->fd, client->requests + conn->out_at, conn->out_end - conn->out_at,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            /* Anything but a full socket is left to the next recv, which says what happened. */
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
    uint64_t now = now_ns();
    for (unsigned i = 0; i < count; i++)
        conn->sent_ns[(conn->oldest + conn->owed + i) % client->depth] = now;
    conn->owed += count;
    client->issued += count;
    bool busy = conn->out_at < conn->out_end;
    size_t round = client->offsets[client->request_count];
    if (!busy) {
        conn->next %= client->request_count;
        conn->out_at = client->offsets[conn->next];
    } else if (conn->out_at >= round) {
        /* The same bytes one round earlier, so that the run never grows out of the ring. */
        size_t rounds = conn->out_at / round;
        conn->out_at -= rounds * round;
        conn->next -= (unsigned)rounds * client->request_count;
    }
    conn->next += count;
    conn->out_end = client->offsets[conn->next];
    if (!busy) conn_flush(client, conn);
}

static void conn_open(rd_client *client, rd_conn *conn) {
    uint64_t begun = now_ns();
    conn->fd = socket_open(client, false);
    if (conn->fd < 0) {
        client->connect_errors++;
        return;
    }
    conn->stage = RD_HEAD;
    conn->owed = conn->oldest = conn->answered_now = 0;
    conn->out_at = conn->out_end = 0;
    conn->body_bytes = 0;
    conn->close_due_ns = 0;
    conn_watch(client, conn, EPOLL_CTL_ADD, false);
    conn_ask(client, conn, client->depth);
    if (client->close_each) conn->sent_ns[0] = begun; /* there the wait includes the handshake */
}

static void conn_close(rd_client *client, rd_conn *conn) {
    /* What was asked and never answered is no longer on its way. */
    client->issued -= conn->owed;
    conn->owed = 0;
    free(conn->held);
    conn->held = NULL;
    close(conn->fd);
    conn->fd = -1;
}

static void conn_ended(rd_client *client, rd_conn *conn, bool broken, uint64_t now) {
    if (!broken && conn->stage == RD_BODY && conn->head.framing == RD_UNTIL_CLOSE)
        answer_done(client, conn, now);
    bool lost = broken || conn->owed > 0 || conn->stage != RD_HEAD;
    if (lost && !client->stopping) client->errors++;
    conn_close(client, conn);
    if (client->stopping || (client->limit && client->issued >= client->limit)) return;
    if (!client->close_each) client->reconnects++;
    /* A server that is gone would otherwise be asked again without end. */
    if (client->errors + client->connect_errors < 100000) conn_open(client, conn);
}

static void conn_turn(rd_client *client, rd_conn *conn, uint32_t events) {
    if (events & EPOLLOUT) conn_flush(client, conn);
    if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP))) return;
    size_t held = conn->held_len;
    if (conn->held) {
        memcpy(receive_buf, conn->held, held);
        free(conn->held);
        conn->held = NULL;
        conn->held_len = 0;
    }
    ssize_t got = recv(conn->fd, receive_buf + held, sizeof receive_buf - held, MSG_DONTWAIT);
    uint64_t now = now_ns();
    if (got < 0 && errno == EAGAIN && held == 0) return;
    if (got <= 0) {
        conn_ended(client, conn, got < 0, now);
        return;
    }
    client->bytes_in += (uint64_t)got;
    conn->answered_now = 0;
    if (!bytes_read(client, conn, receive_buf, (size_t)got + held, now))
        conn_ended(client, conn, true, now);
    else if (client->close_each && conn->answered_now)
        conn->close_due_ns = now + 250000000u;
    if (client->close_each || conn->head.closes)
        conn->answered_now = 0; /* there is nothing more to ask here */
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

/* A connection that is still waiting when the time is up has waited at least so long. */
static void open_waits_count(rd_client *client) {
    for (unsigned i = 0; i < client->connections; i++) {
        rd_conn *conn = &client->conns[i];
        if (conn->fd < 0 || conn->owed == 0) continue;
        uint64_t wait = now_ns() - conn->sent_ns[conn->oldest];
        client->longest_ns = wait > client->longest_ns ? wait : client->longest_ns;
        client->errors++;
    }
}

static void run(rd_client *client) {
    struct epoll_event events[EVENTS];
    client->started_ns = now_ns();
    uint64_t due = client->started_ns + (uint64_t)(client->seconds * 1e9);
    uint64_t swept = client->started_ns;
    for (unsigned i = 0; i < client->connections; i++) {
        client->conns[i].next = i % client->request_count;
        conn_open(client, &client->conns[i]);
    }
    for (;;) {
        int ready = epoll_wait(client->poller, events, EVENTS, 50);
        for (int i = 0; i < ready; i++) conn_turn(client, events[i].data.ptr, events[i].events);
        /* Staged like the floor: receive from all, then send to all is kinder to the caches. */
        for (int i = 0; i < ready; i++) {
            rd_conn *conn = events[i].data.ptr;
            if (conn->answered_now) conn_ask(client, conn, conn->answered_now);
            conn->answered_now = 0;
        }
        uint64_t now = now_ns();
        if (now - swept > 50000000u) sweep(client, swept = now);
        bool spent = client->limit && client->completed >= client->limit;
        if (!client->stopping && (now >= due || spent)) {
            client->stopping = true;
            client->stopped_ns = now;
            due = now + 5000000000u; /* what was asked is still waited for, but not for ever */
        }
        bool hopeless = client->errors + client->connect_errors >= 100000;
        if (client->stopping && (now >= due || all_answered(client))) break;
        if (hopeless && !client->stopping) due = now;
    }
    open_waits_count(client);
}

/* ---- idle connections ---- */

static bool idle_ask(rd_client *client, rd_conn *conn) {
    struct timeval patience = {.tv_sec = 5};
    conn->fd = socket_open(client, true);
    if (conn->fd < 0) return false;
    setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    size_t len = client->offsets[1];
    if (send(conn->fd, client->requests, len, MSG_NOSIGNAL) != (ssize_t)len) return false;
    conn->owed = 1;
    conn->sent_ns[0] = now_ns();
    size_t held = 0;
    while (conn->owed) {
        ssize_t got = recv(conn->fd, receive_buf + held, sizeof receive_buf - held, 0);
        if (got <= 0) return false;
        if (!bytes_read(client, conn, receive_buf, held + (size_t)got, now_ns())) return false;
        held = conn->held_len;
        if (conn->held) memcpy(receive_buf, conn->held, held);
        free(conn->held);
        conn->held = NULL;
        conn->held_len = 0;
    }
    return !conn->head.closes;
}

/* Opens them, asks one thing on each, says so in a line and holds them until stdin ends. */
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

/* ---- what it says at the end ---- */

static double cpu_us(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
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
              "\"client_cpu_us\": %.3f}\n"
            : "requests           %llu\nseconds            %.4f\nrequests/s         %.1f\n"
              "bytes received     %llu\nbody min           %llu\nbody max           %llu\n"
              "not 2xx            %llu\nerrors             %llu\nconnect errors     %llu\n"
              "reconnects         %llu\nnot closed         %llu\nper connection min %llu\n"
              "per connection max %llu\nmean us            %.2f\np50 us             %.2f\n"
              "p90 us             %.2f\np99 us             %.2f\np99.9 us           %.2f\n"
              "longest us         %.2f\nclient CPU us/req  %.3f\n";
    typedef unsigned long long ull;
    printf(form, (ull)client->completed, seconds, (double)done / (seconds > 0 ? seconds : 1),
           (ull)client->bytes_in, (ull)(client->completed ? client->body_min : 0),
           (ull)client->body_max, (ull)client->non_2xx, (ull)client->errors,
           (ull)client->connect_errors, (ull)client->reconnects, (ull)client->unclosed, (ull)low,
           (ull)high, (double)client->latency_sum_ns / per / 1000.0, percentile_us(client, 0.50),
           percentile_us(client, 0.90), percentile_us(client, 0.99), percentile_us(client, 0.999),
           (double)client->longest_ns / 1000.0, cpu_us() / per);
}

/* ---- the command line ---- */

static const char *const USAGE =
    "usage: client [options] 127.0.0.1:PORT[/PATH] | unix:SOCKET\n"
    "  -c N            connections (64)          -p N         requests in flight on each (1)\n"
    "  -d SECONDS      at most so long (1)       -n COUNT     at most so many requests\n"
    "  --request FILE  a whole request to send; several are sent in turn\n"
    "  -X METHOD, -H 'name: value', --body TEXT  or a request made of these\n"
    "  --close         a new connection for each request\n"
    "  --idle N        open N connections, ask once on each, hold them until stdin ends\n"
    "  --pin CPU       stay on this CPU          --json       one line of JSON\n";

typedef struct rd_text {
    char bytes[131072];
    size_t len;
} rd_text;

static void text_add(rd_text *text, const char *bytes, size_t len) {
    if (text->len + len > sizeof text->bytes) fail("requests too long");
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

static void text_say(rd_text *text, const char *string) {
    text_add(text, string, strlen(string));
}

static void request_load(rd_text *text, const char *path) {
    FILE *file = fopen(path, "rb");
    char piece[4096];
    size_t got;
    if (!file) fail(path);
    while ((got = fread(piece, 1, sizeof piece, file)) > 0) text_add(text, piece, got);
    fclose(file);
}

static void cpu_pin(const char *cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)strtoul(cpu, NULL, 10), &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0) fail("--pin");
}

static const char *address_read(rd_client *client, char *target) {
    static char path[4096];
    snprintf(path, sizeof path, "/");
    if (strncmp(target, "unix:", 5) == 0) {
        struct sockaddr_un *address = (struct sockaddr_un *)&client->address;
        if (strlen(target + 5) >= sizeof address->sun_path) fail("socket path too long");
        address->sun_family = AF_UNIX;
        memcpy(address->sun_path, target + 5, strlen(target + 5) + 1);
        client->address_len = sizeof *address;
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
    if (!colon) fail("PORT is missing");
    *colon = 0;
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    if (inet_pton(AF_INET, host, &address->sin_addr) != 1 ||
        ntohl(address->sin_addr.s_addr) >> 24 != 127)
        fail("only 127.x.x.x and unix: are allowed");
    client->address_len = sizeof *address;
    return path;
}

/* Lays the requests one behind the other, then again until any `depth` of them are in a row. */
static void requests_lay(rd_client *client, const rd_text *text, const size_t *ends) {
    /* Twice the depth: a run may still grow while its beginning waits in the socket. */
    unsigned total = client->request_count + 2 * client->depth;
    unsigned rounds = total / client->request_count + 1;
    client->requests = malloc(text->len * rounds);
    client->offsets = calloc((size_t)client->request_count * rounds + 1, sizeof(size_t));
    if (!client->requests || !client->offsets) fail("out of memory");
    for (unsigned i = 0; i < rounds; i++) {
        memcpy(client->requests + text->len * i, text->bytes, text->len);
        for (unsigned j = 0; j < client->request_count; j++)
            client->offsets[i * client->request_count + j + 1] = text->len * i + ends[j];
    }
}

static void conns_make(rd_client *client) {
    unsigned count = client->idle > client->connections ? client->idle : client->connections;
    client->conns = calloc(count, sizeof *client->conns);
    uint64_t *times = calloc((size_t)count * client->depth, sizeof *times);
    if (!client->conns || !times) fail("out of memory");
    for (unsigned i = 0; i < count; i++) {
        client->conns[i].fd = -1;
        client->conns[i].sent_ns = times + (size_t)i * client->depth;
    }
    client->poller = epoll_create1(EPOLL_CLOEXEC);
    if (client->poller < 0) fail("epoll_create1");
}

typedef struct rd_request_parts {
    const char *method, *body;
    rd_text headers;
} rd_request_parts;

static void request_compose(rd_text *text, const rd_request_parts *parts, const char *path,
                            bool close_each) {
    char length[64];
    text_say(text, parts->method);
    text_say(text, " ");
    text_say(text, path);
    text_say(text, " HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    text_add(text, parts->headers.bytes, parts->headers.len);
    if (close_each) text_say(text, "Connection: close\r\n");
    if (parts->body) {
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(parts->body));
        text_say(text, length);
    }
    text_say(text, "\r\n");
    text_say(text, parts->body ? parts->body : "");
}

static rd_text text;
static size_t ends[MAX_REQUESTS];
static rd_request_parts parts = {.method = "GET"};

static void request_file_add(rd_client *client, const char *path) {
    if (client->request_count == MAX_REQUESTS) fail("too many requests");
    request_load(&text, path);
    ends[client->request_count++] = text.len;
}

static void header_add(const char *line) {
    text_say(&parts.headers, line);
    text_say(&parts.headers, "\r\n");
}

static bool flag_read(rd_client *client, const char *name) {
    if (strcmp(name, "--close") == 0)
        client->close_each = true;
    else if (strcmp(name, "--json") == 0)
        client->json = true;
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
    else if (strcmp(name, "-X") == 0)
        parts.method = value;
    else if (strcmp(name, "-H") == 0)
        header_add(value);
    else if (strcmp(name, "--body") == 0)
        parts.body = value;
    else if (strcmp(name, "--request") == 0)
        request_file_add(client, value);
    else if (strcmp(name, "--idle") == 0)
        client->idle = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "--pin") == 0)
        cpu_pin(value);
    else
        fail(USAGE);
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
            fail(USAGE);
    }
    errno = 0;
    if (!target || !client.connections || !client.depth || client.depth > MAX_DEPTH) fail(USAGE);
    if (client.close_each) client.depth = 1;
    signal(SIGPIPE, SIG_IGN);
    const char *path = address_read(&client, target);
    if (!client.request_count) {
        request_compose(&text, &parts, path, client.close_each);
        ends[client.request_count++] = text.len;
    }
    requests_lay(&client, &text, ends);
    conns_make(&client);
    if (client.idle) {
        idle_hold(&client);
        return 0;
    }
    run(&client);
    report(&client);
    return client.completed ? 0 : 1;
}
