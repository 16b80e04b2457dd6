/* SPDX-License-Identifier: MIT
 *
 * The run of a load, see load.h. One turn receives from all connections that are ready, and only
 * then sends to all of them: that is kinder to the caches, and a server gets its work in batches.
 */
#include "load/load.h"

#include "base/alloc.h"
#include "load/load_answer.h"
#include "loop/poller.h"
#include "system/clock.h"
#include "system/fd.h"
#include "system/socket.h"
#include "system/thread.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    RECEIVE_BYTES = 262144,
    EVENTS = 64,
    PARTS = 16,         /* requests that leave with one call */
    MAX_FAILURES = 5000 /* so that a server that is gone is not asked without end */
};
static const uint64_t SWEEP_NS = 50000000, CLOSE_PATIENCE_NS = 250000000;

typedef struct rd_load_conn {
    rd_source source; /* fd -1: closed */
    rd_load_line *line;
    rd_load_answer answer;
    char *held; /* the beginning of a head that came in pieces; NULL when none */
    size_t held_len;
    unsigned next; /* the first request that is not sent completely */
    unsigned unsent;
    size_t sent_bytes;   /* of the first of them */
    unsigned owed;       /* answers that are still to come */
    unsigned oldest;     /* slot of the oldest of them in asked_ns */
    unsigned to_ask;     /* requests to begin when all have been received */
    bool answered;       /* has answered since it was opened */
    uint64_t close_due;  /* 0, or when the server's close is no longer waited for */
    uint64_t asked_ns[]; /* a ring of plan->depth */
} rd_load_conn;

typedef struct rd_load {
    const rd_load_plan *plan;
    rd_load_result *result;
    const rd_poller_ops *ops;
    rd_poller *poller;
    char *conns; /* of conn_size bytes each */
    size_t conn_size;
    rd_known_answer known;
    char *receive_buf;
    uint64_t due_ns;
    bool stopping;
} rd_load;

static rd_load_conn *conn_at(rd_load *load, unsigned index) {
    return (rd_load_conn *)(void *)(load->conns + load->conn_size * index);
}

static bool is_fresh(const rd_load_conn *conn) {
    return conn->line->kind == RD_LOAD_FRESH;
}

static unsigned depth_of(const rd_load *load, const rd_load_conn *conn) {
    return conn->line->kind == RD_LOAD_PIPED ? load->plan->depth : 1;
}

static bool is_hopeless(const rd_load *load) {
    return load->result->broken + load->result->refused >= MAX_FAILURES;
}

/* ---- sending ---- */

static void conn_watch(rd_load *load, rd_load_conn *conn, uint8_t interest) {
    if (conn->source.interest == interest) return;
    conn->source.interest = interest;
    (void)load->ops->modify(load->poller, &conn->source);
}

static size_t parts_lay(const rd_load *load, const rd_load_conn *conn, struct iovec *parts) {
    const rd_load_plan *plan = load->plan;
    const rd_slice *requests = is_fresh(conn) ? plan->last_requests : plan->requests;
    size_t count = conn->unsent < PARTS ? conn->unsent : PARTS;
    for (size_t i = 0; i < count; i++) {
        rd_slice request = requests[(conn->next + i) % plan->request_count];
        size_t from = i == 0 ? conn->sent_bytes : 0;
        parts[i] = (struct iovec){(char *)(uintptr_t)request.ptr + from, request.len - from};
    }
    return count;
}

static void sent_count(const rd_load *load, rd_load_conn *conn, const struct iovec *parts,
                       size_t len) {
    for (size_t i = 0; len > 0; i++) {
        if (len < parts[i].iov_len) {
            conn->sent_bytes += len;
            return;
        }
        len -= parts[i].iov_len;
        conn->next = (conn->next + 1) % load->plan->request_count;
        conn->unsent--;
        conn->sent_bytes = 0;
    }
}

static void conn_flush(rd_load *load, rd_load_conn *conn) {
    struct iovec parts[PARTS];
    while (conn->unsent > 0) {
        const size_t count = parts_lay(load, conn, parts);
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (rd_iovec_count)count};
        ssize_t sent = sendmsg(conn->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            /* Any error but a full socket is left to the next recv, which reports it. */
            bool is_full = errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN;
            conn_watch(load, conn, is_full ? RD_READABLE | RD_WRITABLE : RD_READABLE);
            return;
        }
        sent_count(load, conn, parts, (size_t)sent);
    }
    conn_watch(load, conn, RD_READABLE);
}

static void conn_ask(rd_load *load, rd_load_conn *conn, unsigned count, uint64_t began_ns) {
    if (load->stopping || count == 0) return;
    for (unsigned i = 0; i < count; i++)
        conn->asked_ns[(conn->oldest + conn->owed + i) % load->plan->depth] = began_ns;
    conn->owed += count;
    conn->unsent += count;
    conn_flush(load, conn);
}

/* ---- opening and closing ---- */

static int socket_connect(const rd_load_plan *plan) {
    int fd = rd_socket_open(plan->address.ss_family, false);
    if (fd < 0) return -1;
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const struct sockaddr *address = (const struct sockaddr *)&plan->address;
    if (connect(fd, address, plan->address_len) == 0 || errno == EINPROGRESS) return fd;
    rd_close_keeping_errno(fd);
    return -1;
}

static void conn_open(rd_load *load, rd_load_conn *conn) {
    uint64_t began = rd_clock_ns();
    conn->answer.stage = RD_HEAD;
    conn->owed = conn->oldest = conn->to_ask = conn->unsent = 0;
    conn->sent_bytes = 0;
    conn->close_due = 0;
    conn->answered = false;
    conn->source.fd = socket_connect(load->plan);
    conn->source.interest = RD_READABLE;
    if (conn->source.fd >= 0 && load->ops->add(load->poller, &conn->source) < 0) {
        close(conn->source.fd);
        conn->source.fd = -1;
    }
    if (conn->source.fd < 0)
        load->result->refused++;
    else
        conn_ask(load, conn, depth_of(load, conn), began);
}

static void held_drop(rd_load_conn *conn) {
    rd_free(conn->held);
    conn->held = NULL;
    conn->held_len = 0;
}

static void conn_close(rd_load *load, rd_load_conn *conn) {
    held_drop(conn);
    (void)load->ops->remove(load->poller, &conn->source);
    close(conn->source.fd);
    conn->source.fd = -1;
    conn->owed = conn->to_ask = 0;
}

/* ---- answers ---- */

static void answer_done(rd_load *load, rd_load_conn *conn, uint64_t now) {
    rd_load_result *result = load->result;
    int status = conn->answer.head.status;
    if (status < 200) return; /* an interim answer: the real one follows */
    uint64_t wait = now - conn->asked_ns[conn->oldest];
    rd_latency_add(&result->waits, wait);
    rd_latency_add(&conn->line->waits, wait);
    conn->oldest = (conn->oldest + 1) % load->plan->depth;
    conn->owed--;
    conn->to_ask++;
    conn->answered = true;
    conn->line->answers++;
    result->answers++;
    result->statuses[status < 600 ? status / 100 : 0]++;
    if (!load->stopping) result->in_time++;
}

static void conn_ended(rd_load *load, rd_load_conn *conn, bool broken, uint64_t now) {
    if (!broken && conn->owed && rd_load_answer_ends_with_close(&conn->answer))
        answer_done(load, conn, now);
    /* A server may close a kept connection behind an answer; what was asked since then is lost. */
    bool lost = broken || (conn->owed > 0 && !conn->answer.head.closes);
    if (lost && !load->stopping) load->result->broken++;
    if (load->stopping) load->result->unanswered += conn->owed;
    bool closed = !is_fresh(conn) && !lost;
    conn_close(load, conn);
    if (load->stopping) return;
    if (closed) load->result->reconnects++;
    if (!is_hopeless(load)) conn_open(load, conn);
}

/* Returns false if the bytes are not an answer to a request. */
static bool bytes_read(rd_load *load, rd_load_conn *conn, const char *at, size_t len,
                       uint64_t now) {
    while (len > 0) {
        size_t used;
        if (conn->owed == 0) return false;
        rd_load_answer_progress progress =
            rd_load_answer_take(&conn->answer, &load->known, at, len, &used);
        at += used;
        len -= used;
        if (progress == RD_NO_ANSWER) return false;
        if (progress == RD_DONE) answer_done(load, conn, now);
        if (progress != RD_HEAD_CUT) continue;
        conn->held = rd_alloc(len);
        memcpy(conn->held, at, len);
        conn->held_len = len;
        return true;
    }
    return true;
}

static void conn_receive(rd_load *load, rd_load_conn *conn) {
    /* A head has at most 64 KiB, so there is room behind what is held. */
    size_t held = conn->held_len;
    ssize_t got =
        recv(conn->source.fd, load->receive_buf + held, RECEIVE_BYTES - held, MSG_DONTWAIT);
    uint64_t now = rd_clock_ns();
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        conn_ended(load, conn, got < 0, now);
        return;
    }
    load->result->bytes += (uint64_t)got;
    if (held) memcpy(load->receive_buf, conn->held, held);
    held_drop(conn);
    if (!bytes_read(load, conn, load->receive_buf, held + (size_t)got, now)) {
        conn_ended(load, conn, true, now);
    } else if (conn->to_ask && (is_fresh(conn) || conn->answer.head.closes)) {
        conn->to_ask = 0; /* nothing more is sent here; the server closes */
        conn->close_due = now + CLOSE_PATIENCE_NS;
    }
}

/* ---- the run ---- */

/* Closes what the server should have closed, and tries again what could not be opened. */
static void sweep(rd_load *load, uint64_t now) {
    for (unsigned i = 0; i < load->result->line_count; i++) {
        rd_load_conn *conn = conn_at(load, i);
        if (conn->source.fd < 0 && !load->stopping && !is_hopeless(load)) conn_open(load, conn);
        if (conn->source.fd < 0 || conn->close_due == 0 || conn->close_due > now) continue;
        load->result->unclosed++;
        conn_ended(load, conn, false, now);
    }
}

static void turn(rd_load *load) {
    rd_ready ready[EVENTS];
    int count = load->ops->wait(load->poller, ready, EVENTS, (int64_t)(SWEEP_NS / 1000));
    for (int i = 0; i < count; i++) {
        rd_load_conn *conn = RD_CONTAINER(ready[i].source, rd_load_conn, source);
        if (conn->source.fd < 0) continue;
        if (ready[i].ready & RD_WRITABLE) conn_flush(load, conn);
        if (ready[i].ready & RD_READABLE) conn_receive(load, conn);
    }
    uint64_t now = rd_clock_ns();
    for (int i = 0; i < count; i++) {
        rd_load_conn *conn = RD_CONTAINER(ready[i].source, rd_load_conn, source);
        unsigned asks = conn->to_ask;
        conn->to_ask = 0;
        if (conn->source.fd >= 0) conn_ask(load, conn, asks, now);
    }
}

static bool all_answered(rd_load *load) {
    for (unsigned i = 0; i < load->result->line_count; i++) {
        rd_load_conn *conn = conn_at(load, i);
        if (conn->source.fd >= 0 && conn->owed > 0) return false;
    }
    return true;
}

static void run(rd_load *load, const atomic_bool *stop) {
    const rd_load_plan *plan = load->plan;
    uint64_t began = rd_clock_ns(), swept = began, now = began;
    load->due_ns = began + plan->measure_ns;
    for (unsigned i = 0; i < load->result->line_count; i++) {
        conn_at(load, i)->next = i % plan->request_count;
        conn_open(load, conn_at(load, i));
    }
    while (!atomic_load_explicit(stop, memory_order_relaxed)) {
        turn(load);
        now = rd_clock_ns();
        if (now - swept > SWEEP_NS) sweep(load, swept = now);
        if (!load->stopping && (now >= load->due_ns || is_hopeless(load))) {
            load->stopping = true;
            load->result->elapsed_ns = now - began;
            load->due_ns = now + plan->patience_ns;
        }
        if (load->stopping && (now >= load->due_ns || all_answered(load))) break;
    }
    if (!load->stopping) load->result->elapsed_ns = now - began;
}

/* A request that has no answer yet has waited at least this long. */
static void waits_end(rd_load *load) {
    uint64_t now = rd_clock_ns();
    load->stopping = true;
    for (unsigned i = 0; i < load->result->line_count; i++) {
        rd_load_conn *conn = conn_at(load, i);
        if (conn->source.fd < 0) continue;
        uint64_t wait = conn->owed ? now - conn->asked_ns[conn->oldest] : 0;
        if (wait > conn->line->waits.longest_ns) conn->line->waits.longest_ns = wait;
        if (wait > load->result->waits.longest_ns) load->result->waits.longest_ns = wait;
        load->result->unanswered += conn->owed;
        conn_close(load, conn);
    }
}

static void lines_make(rd_load *load) {
    const rd_load_plan *plan = load->plan;
    rd_load_result *result = load->result;
    for (int kind = 0; kind < RD_LOAD_KINDS; kind++) result->line_count += plan->connections[kind];
    result->lines = rd_alloc_zero(sizeof(rd_load_line) * result->line_count);
    load->conn_size = sizeof(rd_load_conn) + sizeof(uint64_t) * plan->depth;
    load->conns = rd_alloc_zero(load->conn_size * result->line_count);
    unsigned index = 0;
    for (int kind = 0; kind < RD_LOAD_KINDS; kind++) {
        for (unsigned i = 0; i < plan->connections[kind]; i++, index++) {
            result->lines[index].kind = (rd_load_kind)kind;
            conn_at(load, index)->line = &result->lines[index];
            conn_at(load, index)->source.fd = -1;
        }
    }
}

int rd_load_run(const rd_load_plan *plan, const atomic_bool *stop, rd_load_result *result) {
    *result = (rd_load_result){0};
    rd_load load = {.plan = plan, .result = result, .ops = rd_poller_choose(false)};
    load.poller = load.ops->open();
    if (load.poller == NULL) return -1;
    lines_make(&load);
    load.receive_buf = rd_alloc(RECEIVE_BYTES);
    const rd_thread self = rd_thread_self();
    const uint64_t before = rd_thread_cpu_ns(&self);
    run(&load, stop);
    waits_end(&load);
    result->cpu_ns = rd_thread_cpu_ns(&self) - before;
    rd_free(load.receive_buf);
    rd_free(load.conns);
    load.ops->close(load.poller);
    return 0;
}

void rd_load_result_clear(rd_load_result *result) {
    rd_free(result->lines);
    result->lines = NULL;
}
