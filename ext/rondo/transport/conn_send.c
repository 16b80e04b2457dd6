/* SPDX-License-Identifier: MIT
 *
 * Sending: flushes, slices of long sends, and what happens when everything is sent; see conn.h.
 */
#include "transport/conn_parts.h"

#include <errno.h>

#include "base/apart.h"
#include "base/error.h"
#include "system/clock.h"
#include "transport/layer.h"
#include "transport/progress.h"
#include "transport/stalled.h"
#include "transport/warming.h"

#define IOV_MAX_USED 64
#define SLICE_BYTES  262144
#define LONG_BYTES   131072 /* with more to send, a connection waits for its turn */
#define LONG_NS      250000 /* of a turn of the loop, for all long sends */
#define LONG_MOST_NS 1000000

/* Whether a file follows these bytes: its beginning can share a packet with them. */
static bool file_follows(const rd_conn *conn, size_t offered) {
    const rd_chunk *chunk = rd_outq_first(&conn->out);
    for (; chunk != NULL && chunk->kind != RD_CHUNK_FILE && chunk->len <= offered;
         chunk = rd_outq_after(&conn->out, chunk)) {
        offered -= chunk->len;
    }
    return chunk != NULL && chunk->kind == RD_CHUNK_FILE && offered == 0;
}

typedef struct rd_sending {
    size_t offered;
    ssize_t sent; /* or -1, with errno */
} rd_sending;

RD_APART static rd_sending send_file(rd_conn *conn, rd_chunk *first, size_t limit) {
    const size_t offered = first->len < limit ? first->len : limit;
    if (!rd_warming_may_send(conn, first, offered)) {
        errno = EAGAIN;
        return (rd_sending){offered, -1};
    }
    ssize_t sent = conn->transport->send_file(conn, first->file->fd, first->offset, offered);
    if (sent == 0) { /* the file has shrunk, so the promised length is wrong */
        if (conn->set->on_cut != NULL) conn->set->on_cut(conn, RD_ERR_FILE_CUT);
        errno = EIO;
        return (rd_sending){offered, -1};
    }
    return (rd_sending){offered, sent};
}

/* Whether a layer adds its last message to what it is given now. */
static bool layer_ends(const rd_conn *conn) {
    return conn->layered && conn->state == RD_CONN_FINISHING;
}

RD_APART static rd_sending send_several(rd_conn *conn, size_t limit) {
    struct iovec iov[IOV_MAX_USED];
    size_t offered = 0;
    int count = rd_outq_gather(&conn->out, iov, IOV_MAX_USED, limit);
    for (int i = 0; i < count; i++) offered += iov[i].iov_len;
    const bool more =
        file_follows(conn, offered) || (layer_ends(conn) && offered == conn->out.bytes);
    ssize_t sent = conn->transport->write(conn, iov, count, more);
    return (rd_sending){offered, sent};
}

/* Offers at most `limit` bytes of one kind to the transport. Most answers are one chunk. */
static inline rd_sending send_share(rd_conn *conn, size_t limit) {
    rd_chunk *first = conn->out.last->next;
    if (first->kind == RD_CHUNK_FILE) return send_file(conn, first, limit);
    if (first != conn->out.last || first->len > limit) return send_several(conn, limit);
    struct iovec iov;
    rd_outq_gather(&conn->out, &iov, 1, limit);
    return (rd_sending){first->len, conn->transport->write(conn, &iov, 1, layer_ends(conn))};
}

/* Whether something is still to be sent. */
static bool has_unsent(rd_conn *conn) {
    return conn->out.bytes > 0 || rd_conn_unsent(conn) > 0;
}

/* An application that has ended its writing and reads nothing has no more time than a client. */
static bool is_patient(const rd_conn *conn) {
    return conn->patient && rd_conn_is_open(conn) && !conn->read_eof;
}

static bool has_write_deadline(rd_conn *conn) {
    return has_unsent(conn) && !is_patient(conn) && !rd_conn_is_forwarded(conn);
}

/* The peer took something, and gets its time for what is left. */
RD_APART static void renew_write_deadline(rd_conn *conn) {
    if (has_write_deadline(conn)) {
        rd_progress_set_deadline(conn);
    } else if (conn->stall != NULL) {
        rd_progress_end(conn);
    }
}

/* Most answers leave with one write. */
static inline void after_progress(rd_conn *conn, size_t sent) {
    if (!conn->uncounted) conn->set->bytes_out += sent;
    if (conn->out.bytes > 0 || conn->layered) {
        renew_write_deadline(conn);
        return;
    }
    if (conn->stall != NULL) rd_progress_end(conn);
}

/* A carried connection needs no linger: its end does not affect what the carrier still sends. */
static bool must_linger(rd_conn *conn) {
    return conn->wants_linger && !conn->read_eof && conn->source.fd >= 0 &&
           conn->set->settings->linger_timeout_ms != 0;
}

RD_APART static void end_after_flush(rd_conn *conn) {
    if (!must_linger(conn)) {
        rd_conn_close(conn);
        return;
    }
    rd_conn_set_state(conn, RD_CONN_LINGERING);
    rd_progress_begin(conn);
    conn->transport->shutdown_write(conn);
    const uint64_t now_ms = conn->set->loop->now_ms;
    conn->stall->lingers_since_ms = now_ms;
    conn->stall->linger_left = (uint32_t)conn->set->settings->linger_bytes;
    conn->read_paused = false;
    rd_conn_drop_input(conn);
    rd_conn_set_deadline(conn, now_ms + (uint64_t)conn->set->settings->linger_timeout_ms);
    rd_conn_ensure_registered(conn);
    rd_conn_update_interest(conn);
    if (conn->state == RD_CONN_LINGERING && conn->protocol->on_sent != NULL) {
        conn->protocol->on_sent(conn);
    }
}

/* The transport held `before` bytes. Whether it has sent some of them. A transport may also send
 * outside a flush, so the deadline ends whenever nothing is left. */
static bool note_layer_sent(rd_conn *conn, size_t before) {
    const bool progress = rd_conn_unsent(conn) < before;
    const bool is_over = rd_conn_write_deadline(conn) != UINT64_MAX && !has_unsent(conn);
    if (progress || is_over) renew_write_deadline(conn);
    return progress;
}

/* Sends all that the transport holds, with its last message. */
RD_APART static bool has_finished_layer(rd_conn *conn) {
    rd_layer_finish(conn);
    const size_t before = rd_conn_unsent(conn);
    rd_layer_flush(conn); /* an error comes again with the next flush, which closes */
    const bool progress = note_layer_sent(conn, before);
    if (conn->stall != NULL) rd_stalled_note(conn, progress);
    return rd_conn_unsent(conn) == 0;
}

/* Whether everything was sent, including the last message of its transport. */
static bool has_said_all(rd_conn *conn) {
    if (!conn->layered || conn->out.bytes > 0) return conn->out.bytes == 0;
    return has_finished_layer(conn);
}

bool rd_conn_end_output(rd_conn *conn) {
    if (!has_said_all(conn)) {
        conn->notify_drained = true;
        rd_conn_mark_dirty(conn);
        return false;
    }
    conn->transport->shutdown_write(conn);
    return true;
}

/* Everything is sent and the connection waits as before: so most flushes end. */
static bool is_settled(const rd_conn *conn) {
    if (conn->out.bytes > 0 || conn->state != RD_CONN_OPEN || !conn->source.registered)
        return false;
    if (conn->read_eof || conn->read_paused || conn->layered) return false;
    if (conn->above_high || conn->notify_drained) return false;
    return conn->source.interest == RD_READABLE;
}

RD_APART static void after_flush(rd_conn *conn, bool is_full) {
    bool drained =
        conn->above_high && conn->out.bytes <= (size_t)conn->set->settings->output_low_bytes;
    bool emptied = conn->notify_drained && !has_unsent(conn);
    if (drained || emptied) {
        conn->above_high = false;
        if (emptied) conn->notify_drained = false;
        if (conn->state == RD_CONN_OPEN) conn->protocol->on_drained(conn);
    }
    if (conn->state == RD_CONN_FINISHING && has_said_all(conn)) {
        end_after_flush(conn);
        return;
    }
    if (conn->state == RD_CONN_CLOSED) return;
    if (has_write_deadline(conn) && !conn->warming) {
        if (rd_conn_write_deadline(conn) == UINT64_MAX) renew_write_deadline(conn);
        if (is_full && conn->stall->full_unread == 0) rd_progress_begin(conn);
        rd_conn_arm(conn);
    }
    if (conn->source.registered) {
        rd_conn_update_interest(conn);
    } else {
        rd_conn_ensure_registered(conn);
    }
}

/* Sends what the transport has taken and not sent. If its last message comes next, that leaves
 * together with it. False: the connection is closed. */
RD_APART static bool flush_layer(rd_conn *conn, bool *progress) {
    const size_t before = rd_conn_unsent(conn);
    if (layer_ends(conn) && conn->out.bytes == 0 && !rd_layer_has_finished(conn)) return true;
    if (before > 0 && rd_layer_flush(conn) != 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        rd_conn_close(conn);
        return false;
    }
    if (note_layer_sent(conn, before)) *progress = true;
    if (conn->out.bytes == 0 && rd_conn_unsent(conn) > 0) rd_stalled_note(conn, *progress);
    return true;
}

/* The application has closed its end of a pump, or reads no more. Drops what was to be sent to it,
 * and still reads what it wrote before. False: the connection is not such an end. */
RD_APART static bool drop_unwanted(rd_conn *conn) {
    if (!is_patient(conn)) return false;
    rd_outq_clear(&conn->out, &conn->set->chunks);
    return true;
}

/* Sends one slice. True: the socket took all of it and there is more. */
static bool send_now(rd_conn *conn) {
    if (conn->state == RD_CONN_CLOSED) return false;
    if (rd_list_is_linked(&conn->in_dirty)) rd_list_unlink(&conn->in_dirty);
    size_t limit = SLICE_BYTES;
    bool progress = false;
    while (conn->out.bytes > 0 && limit > 0) {
        const rd_sending slice = send_share(conn, limit);
        if (slice.sent < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK || drop_unwanted(conn)) break;
            rd_conn_close(conn);
            return false;
        }
        const size_t sent = (size_t)slice.sent;
        rd_outq_advance(&conn->out, &conn->set->chunks, sent);
        after_progress(conn, sent);
        limit -= sent;
        progress = progress || sent > 0;
        if (sent < slice.offered) break;
    }
    if (conn->layered) {
        bool taken = progress; /* `progress` itself stays in a register */
        if (!flush_layer(conn, &taken)) return false;
        progress = taken;
    }
    if (conn->out.bytes > 0 || conn->stall != NULL) rd_stalled_note(conn, progress);
    if (is_settled(conn)) return false;
    after_flush(conn, limit > 0);
    return limit == 0 && conn->state != RD_CONN_CLOSED && conn->out.bytes > 0;
}

void rd_conn_flush(rd_conn *conn) {
    send_now(conn);
}

void rd_conn_flush_through(rd_conn *conn) {
    rd_conn *carrier = rd_conn_carrier(conn);
    if (carrier != NULL) rd_conn_ref(carrier);
    rd_conn_flush(conn);
    if (carrier == NULL) return;
    if (carrier->state != RD_CONN_CLOSED) rd_conn_flush(carrier);
    rd_conn_unref(carrier);
}

/* Joins the end of the line, unless the connection is already in one. */
static void wait_for_share(rd_conn *conn) {
    if (rd_list_is_linked(&conn->in_dirty)) return;
    rd_list_append(&conn->set->long_sends, &conn->in_dirty);
}

void rd_conn_send_or_wait(rd_conn *conn) {
    if (conn->set->shares_sending && conn->out.bytes > LONG_BYTES) {
        wait_for_share(conn);
    } else {
        rd_conn_flush(conn);
    }
}

void rd_conn_set_flush(rd_conn_set *set) {
    for (rd_list *node; (node = rd_list_shift(&set->dirty)) != NULL;) {
        rd_conn_send_or_wait(RD_CONTAINER(node, rd_conn, in_dirty));
    }
}

void rd_conn_set_send_long(rd_conn_set *set) {
    if (!rd_conn_set_has_long(set)) return;
    uint64_t now = rd_clock_ns();
    const uint64_t without = now - set->long_sent_ns;
    const uint64_t until = now + (without < LONG_NS        ? LONG_NS
                                  : without > LONG_MOST_NS ? LONG_MOST_NS
                                                           : without);
    do {
        rd_conn *conn = RD_CONTAINER(set->long_sends.next, rd_conn, in_dirty);
        if (send_now(conn)) wait_for_share(conn);
        now = rd_clock_ns();
    } while (rd_conn_set_has_long(set) && now < until);
    set->long_sent_ns = now;
    rd_conn_set_flush(set); /* carriers of those */
}
