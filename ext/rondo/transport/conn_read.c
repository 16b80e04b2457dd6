/* SPDX-License-Identifier: MIT
 *
 * What a connection does when its descriptor is ready, a deadline has passed, or its transport has
 * work without readiness; see conn.h.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/apart.h"
#include "base/error.h"
#include "system/clock.h"
#include "transport/conn_parts.h"
#include "transport/deferred.h"
#include "transport/layer.h"
#include "transport/progress.h"

#define HANDSHAKES_NS      250000 /* of a turn of the loop, for all handshakes */
#define HANDSHAKES_MOST_NS 1000000
#define PENDING_NS         250000  /* of a turn, for all whose transport has input */
#define OWED_MOST_NS       8000000 /* beyond that the thread has waited for a CPU */

/* ---- reading ---- */

static void linger_data(rd_conn *conn, size_t len) {
    if (len >= conn->stall->linger_left) {
        rd_conn_close(conn);
        return;
    }
    conn->stall->linger_left -= (uint32_t)len;
}

static void read_end(rd_conn *conn) {
    conn->read_eof = true;
    if (conn->state == RD_CONN_LINGERING) {
        rd_conn_close(conn);
        return;
    }
    if (conn->state == RD_CONN_OPEN) conn->protocol->on_eof(conn);
    rd_conn_update_interest(conn);
}

static inline void read_bytes(rd_conn *conn, const rd_transport *transport) {
    rd_loop *loop = conn->set->loop;
    ssize_t got = transport->read(conn, loop->receive, sizeof(loop->receive));
    if (got > 0) {
        if (!conn->uncounted) conn->set->bytes_in += (uint64_t)got;
        if (conn->state == RD_CONN_OPEN) {
            conn->protocol->on_data(conn, loop->receive, (size_t)got);
        } else if (conn->state == RD_CONN_LINGERING) {
            linger_data(conn, (size_t)got);
        } /* FINISHING: input is dropped */
    } else if (got == 0) {
        read_end(conn);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        rd_conn_close(conn);
    }
}

/* The protocol cannot answer what its transport has not decoded. */
static void refuse_ahead(rd_conn *conn) {
    rd_layer_refuse(conn, RD_ERR_INPUT_FULL);
}

/* While it lingers its input is dropped, so it is not decoded: its transport may not have shaken
 * hands, or may have failed. */
RD_APART static void read_layer(rd_conn *conn) {
    if (conn->state == RD_CONN_LINGERING) {
        read_bytes(conn, &rd_transport_tcp);
        return;
    }
    if (!rd_layer_may_read(conn)) {
        if (conn->source.registered) rd_conn_update_interest(conn);
        return;
    }
    if (rd_layer_is_in_line(conn)) return; /* for what its transport already has */
    read_bytes(conn, conn->transport);
    if (!rd_layer_count_ahead(conn)) refuse_ahead(conn);
    rd_layer_note_pending(conn);
}

static void read_some(rd_conn *conn) {
    if (conn->layered) {
        read_layer(conn);
    } else {
        read_bytes(conn, conn->transport);
    }
}

/* Whether something comes first that registers the connection: the flush of its answer, or its turn
 * to shake hands. */
static bool is_registered_later(rd_conn *conn) {
    if (conn->awaits_answer) return true;
    return conn->layered && rd_layer_is_shaking(conn) && rd_layer_is_in_line(conn);
}

void rd_conn_read_now(rd_conn *conn) {
    rd_conn_ref(conn);
    read_some(conn);
    if (!is_registered_later(conn)) rd_conn_ensure_registered(conn);
    rd_conn_unref(conn);
}

void rd_conn_take_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_conn_ref(conn);
    conn->protocol->on_data(conn, bytes, len);
    rd_conn_ensure_registered(conn);
    rd_conn_unref(conn);
}

/* ---- the handshake ---- */

static void read_if_wanted(rd_conn *conn) {
    if (conn->state != RD_CONN_CLOSED && rd_conn_reads(conn)) read_some(conn);
}

/* What came after the handshake is read at once. One that has failed ends at once, within the time
 * of handshakes: many may fail in one turn. A connection that is already ending has no handshake.
 */
static void shake_hands(rd_conn *conn) {
    if (!rd_conn_is_open(conn)) return;
    const int result = rd_layer_handshake(conn);
    if (result != 0) {
        conn->protocol->on_handshake(conn, result > 0 ? 0 : result);
        if (result > 0) read_if_wanted(conn);
    }
    rd_conn_mark_dirty(conn); /* the flush sees what is to be sent, and what is waited for */
    if (result < 0) rd_conn_flush(conn);
    rd_conn_ensure_registered(conn);
}

/* ---- deadlines ---- */

static bool has_come(const rd_conn *conn) {
    char byte;
    return recv(conn->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The thread may have been delayed since it asked the poller: what has come by now is in time. A
 * handshake only stands in line, because many may be due at the same moment. */
static void look_again(rd_conn *conn) {
    if (!rd_conn_is_open(conn) || !rd_conn_reads(conn)) return;
    rd_conn_ref(conn);
    if (!conn->layered || !rd_layer_is_shaking(conn)) {
        if (conn->layered) rd_list_unlink(&rd_conn_layer(conn)->in_line);
        read_some(conn);
    } else if (!rd_layer_is_in_line(conn) && has_come(conn)) {
        rd_layer_may_read(conn);
    }
    rd_conn_unref(conn);
}

/* The peer must not time out because a long send waits in its line. */
static void send_what_waits(rd_conn *conn) {
    if (!rd_list_is_linked(&conn->in_dirty)) return;
    rd_conn_ref(conn);
    rd_conn_flush(conn);
    rd_conn_unref(conn);
}

/* When lingering ends, even if the peer still reads. */
static uint64_t linger_end(const rd_conn *conn) {
    const rd_settings *settings = conn->set->settings;
    const int64_t longest = settings->write_timeout_ms > settings->linger_timeout_ms
                                ? settings->write_timeout_ms
                                : settings->linger_timeout_ms;
    return conn->stall->lingers_since_ms + (uint64_t)longest;
}

/* Closes at the end of the linger time, unless the peer still reads: a close could cost a slow
 * reader the rest of its answer, if more of its input comes. */
static void end_linger(rd_conn *conn) {
    const uint64_t now = conn->set->loop->now_ms, end = linger_end(conn);
    if (now >= end || !rd_progress_while_lingering(conn)) {
        rd_conn_close(conn);
        return;
    }
    const uint64_t again = now + (uint64_t)conn->set->settings->linger_timeout_ms;
    conn->deadlines.protocol = again < end ? again : end;
}

static void on_timer(rd_timer *timer) {
    rd_conn *conn = RD_CONTAINER(timer, rd_conn, deadlines.timer);
    uint64_t now = conn->set->loop->now_ms;
    if (rd_conn_write_deadline(conn) <= now) send_what_waits(conn);
    if (conn->state == RD_CONN_CLOSED) return;
    rd_progress_look(conn);
    if (rd_conn_write_deadline(conn) <= now) {
        conn->set->write_timeouts++;
        rd_conn_reset(conn); /* the kernel also drops what it has not sent */
        return;
    }
    if (conn->deadlines.protocol <= now) look_again(conn);
    if (conn->deadlines.protocol <= now) {
        conn->deadlines.protocol = UINT64_MAX;
        if (conn->state == RD_CONN_LINGERING) {
            end_linger(conn);
        } else if (conn->state == RD_CONN_OPEN) {
            conn->protocol->on_timeout(conn);
        }
    }
    if (conn->state != RD_CONN_CLOSED) rd_conn_arm(conn);
}

/* ---- readiness ---- */

/* Whether the application has closed its end of a pump: then what it wrote before is read even if
 * reading is paused. That is at most what a socket holds. */
static bool has_last_words(const rd_conn *conn) {
    return conn->patient && rd_conn_is_open(conn) && !conn->read_eof;
}

static void on_ready(rd_source *source, unsigned ready) {
    rd_conn *conn = RD_CONTAINER(source, rd_conn, source);
    rd_conn_ref(conn);
    if (((ready & RD_READABLE) && rd_conn_reads(conn)) ||
        ((ready & RD_HANGUP) && has_last_words(conn))) {
        read_some(conn);
    } else if (ready & RD_HANGUP) {
        rd_conn_close(conn); /* both directions have ended and nothing is left to read */
    }
    if ((ready & RD_WRITABLE) && conn->state != RD_CONN_CLOSED &&
        (conn->out.bytes > 0 || conn->layered)) {
        rd_conn_send_or_wait(conn);
    }
    rd_conn_unref(conn);
}

/* ---- layers ---- */

void rd_conn_resume_reading(rd_conn *conn) {
    conn->read_paused = false;
    if (conn->layered) rd_layer_note_pending(conn);
    if (conn->source.registered) rd_conn_update_interest(conn);
}

static void serve(rd_list *node, void (*step)(rd_conn *conn)) {
    rd_layer *layer = RD_CONTAINER(node, rd_layer, in_line);
    rd_conn *conn = layer->conn;
    rd_conn_ref(conn);
    step(conn);
    rd_conn_unref(conn);
}

static rd_list *next_handshake(rd_layers *layers) {
    rd_list *first = layers->begins_next ? &layers->handshakes : &layers->continuing;
    rd_list *second = layers->begins_next ? &layers->continuing : &layers->handshakes;
    rd_list *node = rd_list_shift(first);
    layers->begins_next = !layers->begins_next;
    return node != NULL ? node : rd_list_shift(second);
}

/* As much time as everything else took since the last handshakes, within bounds: a server that is
 * busy for long in each turn still gets its new clients. */
static uint64_t time_for_handshakes(const rd_conn_set *set, bool was_idle) {
    const uint64_t without = set->loop->now_ns - set->layers.served_ns;
    if (was_idle || without < HANDSHAKES_NS) return HANDSHAKES_NS;
    return without < HANDSHAKES_MOST_NS ? without : HANDSHAKES_MOST_NS;
}

/* A key of RSA with 4096 bits takes four milliseconds for one handshake. */
static void serve_handshakes(rd_layers *layers, uint64_t share_ns) {
    if (layers->owed_ns >= share_ns) {
        layers->owed_ns -= share_ns;
        return;
    }
    uint64_t now = rd_clock_ns();
    const uint64_t until = now + share_ns - layers->owed_ns;
    for (rd_list *node; now < until && (node = next_handshake(layers)) != NULL;) {
        serve(node, shake_hands);
        now = rd_clock_ns();
    }
    const uint64_t owed = now > until ? now - until : 0;
    layers->owed_ns = owed < OWED_MOST_NS ? owed : OWED_MOST_NS;
    layers->served_ns = now;
}

/* Those that join the line meanwhile wait for the next turn. */
static void serve_pending(rd_layers *layers) {
    if (rd_list_is_empty(&layers->pending)) return;
    const rd_list *last = layers->pending.prev;
    const uint64_t until = rd_clock_ns() + PENDING_NS;
    rd_list *node;
    layers->records = 0;
    do {
        node = rd_list_shift(&layers->pending);
        if (node != NULL) serve(node, read_if_wanted);
    } while (node != NULL && node != last && rd_clock_ns() < until);
}

void rd_conn_set_serve_layers(rd_conn_set *set, bool was_idle) {
    serve_handshakes(&set->layers, time_for_handshakes(set, was_idle));
    serve_pending(&set->layers);
    rd_deferred_serve(set);
}

/* ---- the set ---- */

void rd_conn_set_init(rd_conn_set *set, rd_loop *loop, const rd_settings *settings) {
    *set = (rd_conn_set){
        .loop = loop, .settings = settings, .on_ready = on_ready, .on_timer = on_timer};
    rd_ledger_init(&set->ledger);
    rd_list_init(&set->conns);
    rd_list_init(&set->carried);
    rd_list_init(&set->dirty);
    rd_list_init(&set->stalled);
    rd_list_init(&set->long_sends);
    rd_list_init(&set->layers.handshakes);
    rd_list_init(&set->layers.continuing);
    rd_list_init(&set->layers.shaking);
    rd_list_init(&set->layers.pending);
    rd_list_init(&set->layers.deferred);
}
