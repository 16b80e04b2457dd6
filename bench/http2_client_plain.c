/* SPDX-License-Identifier: MIT
 *
 * Connections of HTTP/1.1 beside those of HTTP/2: on each one request after the other. See
 * http2_client.h. */
#include "load/load_answer.h"
#include "client_base.h"
#include "http2_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_BYTES = 32768, PORTION = 65536 };

struct rd_plain_conn {
    rd_wire wire;
    rd_score score;
    uint64_t since_ns; /* 0: no request is on its way */
    uint64_t to_send;  /* bytes of its body */
    rd_load_answer answer;
    rd_known_answer known;
    size_t in_len;
    char in[IN_BYTES];
};

static char head[1024];
static size_t head_len;

static void send_more(rd_plain_conn *conn) {
    rd_wire *wire = &conn->wire;
    rd_wire_flush(wire);
    while (conn->to_send > 0 && wire->out_len == 0) {
        const size_t len = conn->to_send < PORTION ? (size_t)conn->to_send : PORTION;
        memset(rd_wire_room(wire, len), 'x', len);
        conn->to_send -= len;
        rd_wire_flush(wire);
    }
}

static void ask(rd_plain_conn *conn) {
    if (conn->since_ns != 0 || !rd_client_may_ask(conn->wire.client)) return;
    conn->since_ns = rd_client_now_ns();
    memcpy(rd_wire_room(&conn->wire, head_len), head, head_len);
    conn->to_send = conn->wire.client->plan.body_bytes;
    send_more(conn);
}

static void fail(rd_plain_conn *conn) {
    if (conn->since_ns != 0) conn->wire.client->beside.errors++;
    conn->since_ns = 0;
    rd_wire_close(&conn->wire);
}

static void answered(rd_plain_conn *conn) {
    const uint64_t waited = rd_client_now_ns() - conn->since_ns;
    conn->since_ns = 0;
    rd_tally_answer(&conn->wire.client->beside, &conn->score, conn->answer.head.status / 100 == 2,
                    conn->answer.body_bytes, waited);
}

static bool take(rd_plain_conn *conn) {
    size_t at = 0;
    bool done = false;
    while (at < conn->in_len) {
        size_t used = 0;
        const rd_load_answer_progress progress = rd_load_answer_take(
            &conn->answer, &conn->known, conn->in + at, conn->in_len - at, &used);
        at += used;
        if (progress == RD_NO_ANSWER) return false;
        if (progress == RD_DONE && conn->since_ns != 0) answered(conn), done = true;
        if (progress == RD_HEAD_CUT) break;
    }
    conn->in_len -= at;
    memmove(conn->in, conn->in + at, conn->in_len);
    if (done && conn->answer.head.closes) return false;
    if (done) ask(conn);
    return true;
}

static void on_ready(rd_wire *wire) {
    rd_plain_conn *conn = (rd_plain_conn *)wire;
    const bool was_open = wire->is_open;
    const int ready = rd_wire_ready(wire);
    if (ready < 0) wire->client->connect_errors++, fail(conn);
    if (ready <= 0) return;
    if (!was_open) ask(conn);
    if (wire->wants_write) send_more(conn);
    for (;;) {
        const ssize_t got =
            rd_wire_receive(wire, conn->in + conn->in_len, sizeof conn->in - conn->in_len);
        if (got < 0 && (errno == EAGAIN || errno == EINPROGRESS)) return;
        if (got > 0) wire->client->beside.bytes_in += (uint64_t)got, conn->in_len += (size_t)got;
        if (got <= 0 || !take(conn)) {
            fail(conn);
            return;
        }
        if (wire->tls == NULL) return; /* the poller tells of more */
    }
}

rd_plain_conn *rd_plain_new(rd_client *client, unsigned count) {
    const rd_plan *plan = &client->plan;
    const char *method = plan->body_bytes ? "POST" : "GET";
    int len = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n", method,
                       plan->path, plan->port);
    char *end = head + len;
    const size_t left = sizeof head - (size_t)len;
    if (plan->body_bytes) {
        len += snprintf(end, left, "Content-Length: %llu\r\n\r\n",
                        (unsigned long long)plan->body_bytes);
    } else {
        len += snprintf(end, left, "\r\n");
    }
    head_len = (size_t)len;
    rd_plain_conn *conns = calloc(count + 1, sizeof *conns);
    if (conns == NULL) rd_client_fail("memory");
    for (unsigned i = 0; i < count; i++) {
        conns[i].wire = (rd_wire){.client = client, .on_ready = on_ready, .fd = -1};
    }
    return conns;
}

void rd_plain_sweep(rd_plain_conn *conns, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (conns[i].wire.fd >= 0) continue;
        conns[i].answer = (rd_load_answer){0};
        conns[i].in_len = 0;
        rd_wire_open(&conns[i].wire);
    }
}

unsigned rd_plain_waiting(const rd_plain_conn *conns, unsigned count) {
    unsigned waiting = 0;
    for (unsigned i = 0; i < count; i++) waiting += conns[i].since_ns != 0;
    return waiting;
}

void rd_plain_count_waits(rd_plain_conn *conns, unsigned count, bool lost) {
    const uint64_t now = rd_client_now_ns();
    for (unsigned i = 0; i < count; i++) {
        rd_tally *tally = &conns[i].wire.client->beside;
        if (conns[i].since_ns == 0) continue;
        const uint64_t waited = now - conns[i].since_ns;
        if (waited > tally->latency.longest_ns) tally->latency.longest_ns = waited;
        if (lost) tally->errors++;
    }
}

rd_score *rd_plain_score(rd_plain_conn *conns, unsigned index) {
    return &conns[index].score;
}
