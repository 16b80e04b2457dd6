/* SPDX-License-Identifier: MIT
 *
 * Connections of HTTP/2: a fixed number of requests on their way on each. It writes and reads the
 * frames itself, and of a head of an answer only the status, so that the client is no slower than
 * the servers. See http2_client.h. */
#include "client_base.h"
#include "http2_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAME_HEAD = 9,
    FRAME_MAX = 16384,
    IN_BYTES = 2 * FRAME_MAX + FRAME_HEAD,
    STREAM_WINDOW = 6291456, /* as browsers have them */
    CONN_WINDOW = 15728640,
    FIRST_WINDOW = 65535,
    OUT_MOST = 262144, /* of bodies, waiting for the socket */
    OPENING_MOST = 64  /* connections at a time */
};

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8, PRIORITIZED = 32 };
enum { REFUSED_STREAM = 7 };

/* A request on its way. */
typedef struct rd_stream {
    uint32_t id; /* 0: none */
    bool is_download, has_head, is_2xx;
    uint64_t since_ns, body;
    uint64_t to_send;
    int64_t window;    /* for its body */
    uint64_t unopened; /* bytes received that its window does not have again yet */
} rd_stream;

struct rd_streams_conn {
    rd_wire wire;
    rd_score score;
    uint32_t next_id, active, most;
    bool knows_fields; /* the server has our fields in its table */
    bool is_leaving;
    int64_t window, first_window;
    uint64_t unopened, ping_due_ns;
    unsigned pings;
    rd_stream *streams; /* as many as asked for, and one for a download */
    size_t in_len;
    char *in;
};

/* ---- frames ---- */

static void put32(char *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (char)(value >> (24 - 8 * i));
}

static uint32_t get32(const char *at) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value = value << 8 | (unsigned char)at[i];
    return value;
}

/* Returns where its payload goes. */
static char *frame(rd_streams_conn *conn, int type, int flags, uint32_t id, size_t len) {
    char *at = rd_wire_room(&conn->wire, FRAME_HEAD + len);
    put32(at, (uint32_t)len << 8 | (uint32_t)type);
    at[4] = (char)flags;
    put32(at + 5, id);
    return at + FRAME_HEAD;
}

static void open_window(rd_streams_conn *conn, uint32_t id, uint64_t bytes) {
    put32(frame(conn, WINDOW_UPDATE, 0, id, 4), (uint32_t)bytes);
}

static void greet(rd_streams_conn *conn) {
    memcpy(rd_wire_room(&conn->wire, 24), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    char *at = frame(conn, SETTINGS, 0, 0, 12);
    memcpy(at, "\0\2\0\0\0\0\0\4", 8); /* no push; the window of a stream */
    put32(at + 8, STREAM_WINDOW);
    open_window(conn, 0, CONN_WINDOW - FIRST_WINDOW);
}

static size_t put_field(char *at, int name, const char *value) {
    const size_t len = strlen(value);
    if (len > 126) rd_client_fail("the path is too long");
    at[0] = (char)name;
    at[1] = (char)len;
    memcpy(at + 2, value, len);
    return len + 2;
}

/* The fields of a request (RFC 7541). From the second request on, each is one byte. */
static size_t put_fields(rd_streams_conn *conn, const char *path, char *at) {
    const rd_plan *plan = &conn->wire.client->plan;
    const bool is_usual = path == plan->path, is_root = strcmp(path, "/") == 0;
    char authority[32], *start = at;
    snprintf(authority, sizeof authority, "127.0.0.1:%u", plan->port);
    *at++ = (char)(plan->body_bytes ? 0x83 : 0x82);
    *at++ = (char)(plan->tls ? 0x87 : 0x86);
    if (is_root) *at++ = (char)0x84;
    if (!conn->knows_fields) {
        if (!is_root) at += put_field(at, is_usual ? 0x44 : 0x04, path);
        at += put_field(at, is_usual ? 0x41 : 0x01, authority);
        conn->knows_fields = is_usual;
        return (size_t)(at - start);
    }
    if (!is_root && is_usual) *at++ = (char)(0x80 | 63);
    if (!is_root && !is_usual) at += put_field(at, 0x04, path);
    *at++ = (char)(0x80 | 62);
    return (size_t)(at - start);
}

/* ---- requests ---- */

static void send_body(rd_streams_conn *conn, rd_stream *stream) {
    while (stream->to_send > 0 && stream->window > 0 && conn->window > 0 &&
           conn->wire.out_len < OUT_MOST) {
        int64_t len = stream->window < conn->window ? stream->window : conn->window;
        if (len > FRAME_MAX) len = FRAME_MAX;
        if ((uint64_t)len > stream->to_send) len = (int64_t)stream->to_send;
        stream->to_send -= (uint64_t)len;
        stream->window -= len;
        conn->window -= len;
        const int flags = stream->to_send == 0 ? END_STREAM : 0;
        memset(frame(conn, DATA, flags, stream->id, (size_t)len), 'x', (size_t)len);
    }
}

static void begin(rd_streams_conn *conn, rd_stream *stream, const char *path) {
    const bool is_download = path != conn->wire.client->plan.path;
    char fields[512];
    const uint64_t body = is_download ? 0 : conn->wire.client->plan.body_bytes;
    const size_t len = put_fields(conn, path, fields);
    *stream = (rd_stream){.id = conn->next_id,
                          .is_download = is_download,
                          .since_ns = rd_client_now_ns(),
                          .to_send = body,
                          .window = conn->first_window};
    memcpy(frame(conn, HEADERS, END_HEADERS | (body ? 0 : END_STREAM), stream->id, len), fields,
           len);
    conn->next_id += 2;
    if (!is_download) conn->active++;
    send_body(conn, stream);
}

/* Fills all streams that are free. */
static void ask(rd_streams_conn *conn) {
    rd_client *client = conn->wire.client;
    rd_stream *download = &conn->streams[client->plan.streams];
    if (conn->is_leaving) return;
    for (unsigned i = 0; i < client->plan.streams && conn->active < conn->most; i++) {
        if (conn->streams[i].id != 0) continue;
        if (client->plan.idle && conn->next_id > 1) break;
        if (!rd_client_may_ask(client)) break;
        begin(conn, &conn->streams[i], client->plan.path);
    }
    if (client->plan.download && download->id == 0 && !client->stopping) {
        begin(conn, download, client->plan.download);
    }
}

static rd_stream *find(rd_streams_conn *conn, uint32_t id) {
    for (unsigned i = 0; i <= conn->wire.client->plan.streams; i++) {
        if (conn->streams[i].id == id && id != 0) return &conn->streams[i];
    }
    return NULL;
}

static void end(rd_streams_conn *conn, rd_stream *stream) {
    rd_client *client = conn->wire.client;
    if (stream->is_download) {
        client->downloads++;
    } else {
        conn->active--;
        rd_tally_answer(&client->streams, &conn->score, stream->is_2xx, stream->body,
                        rd_client_now_ns() - stream->since_ns);
    }
    stream->id = 0;
}

/* ---- what the server sends ---- */

typedef struct rd_frame {
    int type, flags;
    uint32_t id, len;
    const char *payload;
} rd_frame;

static void on_data(rd_streams_conn *conn, rd_stream *stream, const rd_frame *got) {
    conn->unopened += got->len;
    if (conn->unopened > CONN_WINDOW / 2) {
        open_window(conn, 0, conn->unopened);
        conn->unopened = 0;
    }
    if (stream == NULL) return;
    const bool is_padded = got->flags & PADDED;
    const uint32_t padding = is_padded ? 1u + (unsigned char)got->payload[0] : 0;
    stream->body += got->len - padding;
    stream->unopened += got->len;
    if (stream->is_download) conn->wire.client->download_bytes += got->len - padding;
    if (stream->unopened > STREAM_WINDOW / 2 && !(got->flags & END_STREAM)) {
        open_window(conn, stream->id, stream->unopened);
        stream->unopened = 0;
    }
}

/* Servers write 200, 204 and 206 as one byte, behind changes of the table's size. */
static void on_head(rd_stream *stream, const rd_frame *got) {
    uint32_t at = (got->flags & PADDED ? 1u : 0u) + (got->flags & PRIORITIZED ? 5u : 0u);
    if (stream->has_head) return;
    while (at < got->len && (got->payload[at] & 0xe0) == 0x20) at++;
    const unsigned char first = at < got->len ? (unsigned char)got->payload[at] : 0;
    stream->is_2xx = first >= 0x88 && first <= 0x8a;
    stream->has_head = true;
}

static void on_reset(rd_streams_conn *conn, rd_stream *stream, const rd_frame *got) {
    rd_tally *tally = &conn->wire.client->streams;
    if (get32(got->payload) == REFUSED_STREAM)
        tally->refused++;
    else
        tally->errors++;
    if (!stream->is_download) conn->active--;
    stream->id = 0;
}

static void on_settings(rd_streams_conn *conn, const rd_frame *got) {
    const unsigned streams = conn->wire.client->plan.streams;
    if (got->flags & ACK) return;
    for (uint32_t at = 0; at + 6 <= got->len; at += 6) {
        const uint32_t value = get32(got->payload + at + 2);
        if (got->payload[at + 1] == 3) conn->most = value < streams ? value : streams;
        if (got->payload[at + 1] != 4) continue;
        for (unsigned i = 0; i <= streams; i++) {
            conn->streams[i].window += (int64_t)value - conn->first_window;
        }
        conn->first_window = value;
    }
    frame(conn, SETTINGS, ACK, 0, 0);
}

static void on_ping(rd_streams_conn *conn, const rd_frame *got) {
    uint64_t sent;
    memcpy(&sent, got->payload, sizeof sent);
    if (got->flags & ACK) {
        rd_latency_add(&conn->wire.client->pings, rd_client_now_ns() - sent);
        conn->pings--;
    } else {
        memcpy(frame(conn, PING, ACK, 0, 8), got->payload, 8);
    }
}

static void on_stream(rd_streams_conn *conn, const rd_frame *got) {
    rd_stream *stream = find(conn, got->id);
    if (got->type == DATA) on_data(conn, stream, got);
    if (stream == NULL) return;
    if (got->type == HEADERS) on_head(stream, got);
    if (got->type == WINDOW_UPDATE) stream->window += get32(got->payload);
    if (got->type == RST_STREAM) on_reset(conn, stream, got);
    if (got->type <= HEADERS && got->flags & END_STREAM) end(conn, stream);
}

static void on_frame(rd_streams_conn *conn, const rd_frame *got) {
    if (got->id != 0)
        on_stream(conn, got);
    else if (got->type == SETTINGS)
        on_settings(conn, got);
    else if (got->type == PING)
        on_ping(conn, got);
    else if (got->type == WINDOW_UPDATE)
        conn->window += get32(got->payload);
    else if (got->type == GOAWAY)
        conn->is_leaving = true;
}

/* Takes the frames that are whole. Returns false for what is no HTTP/2. */
static bool take(rd_streams_conn *conn) {
    size_t at = 0;
    while (conn->in_len - at >= FRAME_HEAD) {
        const char *head = conn->in + at;
        const rd_frame got = {.len = get32(head) >> 8,
                              .type = head[3],
                              .flags = head[4],
                              .id = get32(head + 5) & 0x7fffffff,
                              .payload = head + FRAME_HEAD};
        if (got.len > FRAME_MAX) return false;
        if (conn->in_len - at - FRAME_HEAD < got.len) break;
        on_frame(conn, &got);
        at += FRAME_HEAD + got.len;
    }
    conn->in_len -= at;
    memmove(conn->in, conn->in + at, conn->in_len);
    return true;
}

/* ---- connections ---- */

static void fail(rd_streams_conn *conn) {
    if (!conn->wire.client->stopping) conn->wire.client->streams.errors += conn->active;
    conn->active = 0;
    for (unsigned i = 0; i <= conn->wire.client->plan.streams; i++) conn->streams[i].id = 0;
    rd_wire_close(&conn->wire);
}

static void send_bodies(rd_streams_conn *conn) {
    if (conn->wire.client->plan.body_bytes == 0) return;
    do {
        rd_wire_flush(&conn->wire);
        if (conn->wire.out_len > 0) return;
        for (unsigned i = 0; i < conn->wire.client->plan.streams; i++) {
            if (conn->streams[i].id != 0) send_body(conn, &conn->streams[i]);
        }
    } while (conn->wire.out_len > 0);
}

static void go_on(rd_streams_conn *conn) {
    ask(conn);
    send_bodies(conn);
    if (conn->wire.out_len > 0) rd_wire_flush(&conn->wire);
    if (conn->is_leaving && conn->active == 0) fail(conn);
}

static void on_ready(rd_wire *wire) {
    rd_streams_conn *conn = (rd_streams_conn *)wire;
    const bool was_open = wire->is_open;
    const int ready = rd_wire_ready(wire);
    if (ready < 0) wire->client->connect_errors++, fail(conn);
    if (ready <= 0) return;
    if (!was_open) greet(conn);
    ssize_t got;
    do {
        got = rd_wire_receive(wire, conn->in + conn->in_len, IN_BYTES - conn->in_len);
        const bool is_empty = got < 0 && (errno == EAGAIN || errno == EINPROGRESS);
        if (got > 0) wire->client->streams.bytes_in += (uint64_t)got, conn->in_len += (size_t)got;
        if (!is_empty && (got <= 0 || !take(conn))) {
            fail(conn);
            return;
        }
    } while (got > 0 && wire->tls != NULL);
    go_on(conn);
}

rd_streams_conn *rd_streams_new(rd_client *client, unsigned count) {
    rd_streams_conn *conns = calloc(count + 1, sizeof *conns);
    if (conns == NULL) rd_client_fail("memory");
    for (unsigned i = 0; i < count; i++) {
        conns[i].wire = (rd_wire){.client = client, .on_ready = on_ready, .fd = -1, .http2 = true};
        conns[i].streams = calloc(client->plan.streams + 1, sizeof *conns[i].streams);
        conns[i].in = malloc(IN_BYTES);
        if (conns[i].streams == NULL || conns[i].in == NULL) rd_client_fail("memory");
    }
    return conns;
}

static void open_again(rd_streams_conn *conn) {
    conn->next_id = 1;
    conn->most = conn->wire.client->plan.streams;
    conn->knows_fields = conn->is_leaving = false;
    conn->window = conn->first_window = FIRST_WINDOW;
    conn->unopened = conn->in_len = conn->pings = 0;
    conn->ping_due_ns = 0;
    rd_wire_open(&conn->wire);
}

static void send_ping(rd_streams_conn *conn, uint64_t now) {
    conn->ping_due_ns = now + conn->wire.client->plan.ping_ns;
    conn->pings++;
    memcpy(frame(conn, PING, 0, 0, 8), &now, 8);
    rd_wire_flush(&conn->wire);
}

void rd_streams_sweep(rd_streams_conn *conns, unsigned count, uint64_t now) {
    unsigned opening = 0;
    for (unsigned i = 0; i < count; i++) {
        rd_streams_conn *conn = &conns[i];
        opening += conn->wire.fd >= 0 && conn->score.completed == 0;
        if (conn->wire.fd < 0 && opening < OPENING_MOST) open_again(conn), opening++;
        if (!conn->wire.is_open || conn->wire.client->plan.ping_ns == 0) continue;
        if (now >= conn->ping_due_ns && !conn->wire.client->stopping) send_ping(conn, now);
    }
}

unsigned rd_streams_waiting(const rd_streams_conn *conns, unsigned count) {
    unsigned waiting = 0;
    for (unsigned i = 0; i < count; i++) waiting += conns[i].active + conns[i].pings;
    return waiting;
}

void rd_streams_count_waits(rd_streams_conn *conns, unsigned count, bool lost) {
    const uint64_t now = rd_client_now_ns();
    for (unsigned i = 0; i < count; i++) {
        rd_tally *tally = &conns[i].wire.client->streams;
        for (unsigned j = 0; j < conns[i].wire.client->plan.streams; j++) {
            const rd_stream *stream = &conns[i].streams[j];
            if (stream->id == 0) continue;
            const uint64_t waited = now - stream->since_ns;
            if (waited > tally->latency.longest_ns) tally->latency.longest_ns = waited;
            if (lost) tally->errors++;
        }
    }
}

rd_score *rd_streams_score(rd_streams_conn *conns, unsigned index) {
    return &conns[index].score;
}
