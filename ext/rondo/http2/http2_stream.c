/* SPDX-License-Identifier: MIT
 *
 * Streams of HTTP/2; see http2_stream.h.
 */
#include "http2/http2_stream.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "http2/http2_taking.h"
#include "http2/http2_time.h"
#include "transport/layer.h"

#define LEAST_WINDOW 65536 /* a smaller one is left as it is */
#define SHORT_ANSWER 16384 /* bytes */
#define FRAME_BYTES  16384 /* the library asks for less if a window has no room for more */

/* ---- the transport: what comes ---- */

/* What still waits to be read keeps its part of the window. */
static void give_back(rd_http2_stream *stream) {
    const size_t len = stream->owed - rd_buffer_len(&stream->came);
    if (len == 0 || stream->is_gone) return;
    stream->owed -= len;
    nghttp2_session_consume_stream(stream->http2->session, stream->id, len);
}

static ssize_t stream_read(rd_conn *conn, char *bytes, size_t len) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    const size_t there = rd_buffer_len(&stream->came), part = there < len ? there : len;
    if (part > 0) memcpy(bytes, rd_buffer_ptr(&stream->came), part);
    if (part > 0) rd_buffer_consume(&stream->came, part);
    if (rd_conn_is_open(rd_conn_carrier(conn))) {
        give_back(stream);
        rd_http2_send(stream->http2);
    }
    if (part > 0) return (ssize_t)part;
    if (stream->input_ended && !stream->end_told) {
        stream->end_told = true;
        return 0;
    }
    errno = EAGAIN;
    return -1;
}

/* Asked when reading goes on. */
static bool stream_has_pending(rd_conn *conn) {
    const rd_http2_stream *stream = rd_http2_stream_of(conn);
    return rd_buffer_len(&stream->came) > 0 || stream->owed > 0 ||
           (stream->input_ended && !stream->end_told);
}

static size_t stream_read_ahead(rd_conn *conn) {
    return rd_http2_stream_of(conn)->came.capacity;
}

/* ---- the transport: what leaves ---- */

/* The library asks a stream again that it has asked in vain. */
static void resume(rd_http2_stream *stream) {
    if (!stream->is_deferred) return;
    stream->is_deferred = false;
    nghttp2_session_resume_data(stream->http2->session, stream->id);
}

static ssize_t later(void) {
    errno = EAGAIN;
    return -1;
}

/* A complete answer waits for its client. Of a long one as much counts as of a short one, so that a
 * client may have some downloads, and others beside them. */
static void count_untaken(rd_http2_stream *stream) {
    const size_t own = rd_outq_own(&stream->conn->out);
    if (stream->untaken > 0 || stream->conn->state != RD_CONN_FINISHING) return;
    stream->untaken = (uint32_t)(own < SHORT_ANSWER ? own : SHORT_ANSWER);
    rd_http2_add_untaken(stream->http2, stream->untaken);
}

static ssize_t fill_sink(rd_http2_stream *stream, const struct iovec *iov, int count) {
    size_t sent = 0;
    for (int i = 0; i < count && stream->sink_room > 0; i++) {
        const size_t len = iov[i].iov_len;
        const size_t part = len < stream->sink_room ? len : stream->sink_room;
        memcpy(stream->sink, iov[i].iov_base, part);
        stream->sink += part;
        stream->sink_room -= part;
        sent += part;
    }
    return sent > 0 ? (ssize_t)sent : later();
}

/* The stream may be closed meanwhile. */
static ssize_t offer(rd_conn *conn, const struct iovec *iov, int count) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    stream->offer = iov;
    stream->offer_count = count;
    stream->offer_at = stream->offer_taken = 0;
    rd_http2_send(stream->http2);
    const size_t taken = stream->offer_taken;
    stream->offer = NULL;
    stream->offer_taken = 0; /* the queue is that much shorter next */
    if (conn->state == RD_CONN_CLOSED) {
        errno = EPIPE;
        return -1;
    }
    if (taken < conn->out.bytes) count_untaken(stream);
    return taken > 0 ? (ssize_t)taken : later();
}

/* Gives the library what it takes now: as much as the client's windows and the queue of the carrier
 * have room for. What it does not take it asks for later. */
static ssize_t stream_write(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    (void)more;
    if (stream->sink != NULL) return fill_sink(stream, iov, count);
    if (!rd_conn_is_open(rd_conn_carrier(conn))) return later();
    stream->head_waits = false;
    resume(stream);
    if (stream->http2->is_busy) return later();
    if (rd_http2_has_room(stream->http2)) return offer(conn, iov, count);
    count_untaken(stream);
    return later();
}

/* A thread has read the next part, if the file system does not say what is in memory. That was for
 * one call, which has to be the one in which the library asks for it. */
static void keep_warmed(rd_conn *conn) {
    const rd_chunk *first = rd_outq_first(&conn->out);
    if (first->file->memory == RD_FILE_BLIND) conn->warmed = true;
}

static ssize_t stream_send_file(rd_conn *conn, int fd, off_t offset, size_t len) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    if (stream->sink == NULL) {
        if (!rd_conn_is_open(rd_conn_carrier(conn))) return later();
        keep_warmed(conn);
        resume(stream);
        rd_http2_send(stream->http2);
        if (conn->state == RD_CONN_CLOSED) {
            errno = EPIPE;
            return -1;
        }
        return later();
    }
    if (stream->sink_room == 0) return later();
    const size_t part = len < stream->sink_room ? len : stream->sink_room;
    const ssize_t got = pread(fd, stream->sink, part, offset);
    if (got > 0) {
        stream->sink += got;
        stream->sink_room -= (size_t)got;
    }
    return got;
}

/* A head without anything behind it. */
static size_t stream_unsent(rd_conn *conn) {
    return rd_http2_stream_of(conn)->head_waits ? 1 : 0;
}

static int stream_flush(rd_conn *conn) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    stream->head_waits = false;
    if (rd_conn_is_open(rd_conn_carrier(conn))) rd_http2_send(stream->http2);
    return 0;
}

static void stream_finish(rd_conn *conn) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    stream->is_finished = true;
    if (stream->has_body && rd_conn_is_open(rd_conn_carrier(conn))) resume(stream);
}

static void stream_shutdown_write(rd_conn *conn) {
    (void)conn;
}

/* ---- the transport: the end ---- */

static void stream_reset(rd_conn *conn) {
    rd_http2_stream_of(conn)->is_finished = false;
}

/* What the library has to say of a stream that the server closes. A complete answer says its end by
 * itself. */
static void say_end(rd_http2_stream *stream) {
    nghttp2_session *session = stream->http2->session;
    nghttp2_session_set_stream_user_data(session, stream->id, NULL);
    if (stream->is_gone) return;
    if (stream->is_started && stream->is_finished) {
        resume(stream);
        return;
    }
    const uint32_t code = stream->is_started ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_CANCEL;
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, code);
}

static void leave_session(rd_http2_stream *stream) {
    rd_http2 *http2 = stream->http2;
    rd_list_unlink(&stream->in_session);
    rd_buffer_clear(&stream->came);
    http2->stream_count--;
    rd_http_shared_of(http2->carrier)->http2_counts.streams--;
    http2->window_room += stream->window;
}

static void stream_close(rd_conn *conn) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    rd_http2 *http2 = stream->http2;
    leave_session(stream);
    if (!rd_conn_is_open(http2->carrier)) return; /* none of its calls is taken */
    if (stream->untaken > 0) rd_http2_remove_untaken(http2, stream->untaken);
    say_end(stream);
    if (!http2->head.is_decoding) rd_http2_expect(http2); /* that has its deadline already */
    rd_http2_send(http2);
}

/* Falls while the client takes answers of the connection, in steps of 1 KiB, so a stream that waits
 * for its turn is not late. What waits in the carrier and in the kernel is not taken yet. It does
 * not fall for a stream whose own window is closed. */
static uint32_t stream_count_unread(rd_conn *conn) {
    const rd_http2_stream *stream = rd_http2_stream_of(conn);
    const rd_http2 *http2 = stream->http2;
    rd_conn *carrier = http2->carrier;
    if (!rd_conn_is_open(carrier)) return UINT32_MAX;
    if (nghttp2_session_get_stream_remote_window_size(http2->session, stream->id) <= 0)
        return UINT32_MAX;
    const uint64_t waits = carrier->out.bytes + carrier->transport->count_unread(carrier);
    const uint64_t taken = http2->taking.taken;
    return UINT32_MAX - 1 - (uint32_t)((taken > waits ? taken - waits : 0) / 1024);
}

static void stream_identify(rd_conn *conn, rd_identity *identity) {
    rd_conn *carrier = rd_conn_carrier(conn);
    carrier->transport->identify(carrier, identity);
}

static const rd_transport stream_transport = {
    .scheme = "http",
    .state_size = sizeof(rd_http2_stream),
    .read = stream_read,
    .write = stream_write,
    .send_file = stream_send_file,
    .shutdown_write = stream_shutdown_write,
    .close = stream_close,
    .reset = stream_reset,
    .count_unread = stream_count_unread,
    .identify = stream_identify,
    .unsent = stream_unsent,
    .flush = stream_flush,
    .has_pending = stream_has_pending,
    .read_ahead = stream_read_ahead,
    .finish = stream_finish,
};

/* ---- opening ---- */

rd_conn *rd_http2_stream_new(rd_http2 *http2, int32_t id, const rd_protocol *protocol) {
    rd_conn *carrier = http2->carrier;
    rd_conn *conn = rd_conn_open_carried(carrier, &stream_transport, protocol);
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    *stream = (rd_http2_stream){.conn = conn, .http2 = http2, .id = id, .answering = protocol};
    rd_list_append(&http2->streams, &stream->in_session);
    if (http2->stream_count++ > 0)
        rd_http2_flight_share(&http2->flight, carrier->set->loop->now_ms);
    rd_http_shared_of(carrier)->http2_counts.streams++;
    http2->served++;
    rd_conn_layer(conn)->lines = http2->lines;
    if (carrier->layered) rd_conn_layer(conn)->identity = rd_conn_layer(carrier)->identity;
    nghttp2_session_set_stream_user_data(http2->session, id, conn);
    return conn;
}

/* A quarter of what the others leave: 512 KB alone, and large windows for eight streams. A window
 * is memory while the server does not read (RFC 9113, section 5.2). The library gives it back by
 * halves, and each half is a small record to encrypt and send. */
void rd_http2_stream_open_window(rd_conn *conn) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    rd_http2 *http2 = stream->http2;
    const uint32_t window = http2->window_room / 4;
    if (window < LEAST_WINDOW) return;
    http2->window_room -= window;
    stream->window = window;
    nghttp2_session_set_local_window_size(http2->session, NGHTTP2_FLAG_NONE, stream->id,
                                          (int32_t)window);
}

/* ---- what the library tells ---- */

static void keep(rd_conn *conn, const char *bytes, size_t len) {
    rd_buffer_append(&rd_http2_stream_of(conn)->came, bytes, len);
    if (rd_layer_count_ahead(conn)) return;
    rd_layer_refuse(conn, RD_ERR_INPUT_FULL);
}

void rd_http2_stream_take(rd_conn *conn, const char *bytes, size_t len) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    rd_conn_ref(conn);
    stream->owed += len;
    if (!rd_conn_is_open(conn)) {
        rd_buffer_clear(&stream->came); /* the answer is on its way, nothing is read any more */
        rd_layer_count_ahead(conn);
        give_back(stream);
    } else if (conn->read_paused || rd_buffer_len(&stream->came) > 0) {
        keep(conn, bytes, len);
    } else {
        rd_conn_take_data(conn, bytes, len);
        if (conn->state != RD_CONN_CLOSED && !conn->read_paused) give_back(stream);
    }
    rd_conn_unref(conn);
}

void rd_http2_stream_end_input(rd_conn *conn, bool is_whole) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    if (stream->input_ended) return;
    stream->input_ended = true;
    stream->is_whole = is_whole;
    if (!rd_conn_is_open(conn) || conn->read_paused) return;
    if (rd_buffer_len(&stream->came) > 0) {
        rd_layer_note_pending(conn); /* the library still reads where that would be read to */
    } else {
        rd_conn_read_now(conn);
    }
}

void rd_http2_stream_closed(rd_conn *conn) {
    rd_http2_stream_of(conn)->is_gone = true;
    rd_conn_close(conn);
}

/* ---- what the library asks for ---- */

/* From what the connection sends at this moment. */
static size_t take_offer(rd_http2_stream *stream, char *bytes, size_t len) {
    size_t taken = 0;
    while (stream->offer_count > 0 && taken < len) {
        const struct iovec *piece = stream->offer;
        const size_t left = piece->iov_len - stream->offer_at;
        const size_t part = left < len - taken ? left : len - taken;
        memcpy(bytes + taken, (const char *)piece->iov_base + stream->offer_at, part);
        taken += part;
        stream->offer_at += part;
        if (stream->offer_at < piece->iov_len) break;
        stream->offer++;
        stream->offer_count--;
        stream->offer_at = 0;
    }
    stream->offer_taken += taken;
    return taken;
}

/* Lets the connection send into the library's buffer. */
static size_t pull(rd_http2_stream *stream, char *bytes, size_t len) {
    rd_conn *conn = stream->conn;
    stream->sink = bytes;
    stream->sink_room = len;
    rd_conn_flush(conn);
    stream->sink = NULL;
    return len - stream->sink_room;
}

/* Whether what was taken now is the rest of the answer. */
static bool is_last(rd_conn *conn, const rd_http2_stream *stream) {
    if (stream->is_finished) return true;
    return !stream->is_cut && conn->state == RD_CONN_FINISHING &&
           conn->out.bytes == stream->offer_taken;
}

/* Whether the stream has to wait until more has arrived. A short answer never has. Nor have
 * messages: how many may wait for a client is counted, and those that are held here would count. */
static bool must_wait(rd_http2_stream *stream) {
    const rd_http2_flight *flight = &stream->http2->flight;
    if (stream->round != flight->first) {
        stream->round = flight->first;
        stream->in_round = 0;
    }
    return stream->in_round >= SHORT_ANSWER && stream->conn->protocol == stream->answering &&
           rd_http2_flight_is_full(flight, stream->conn->set->loop->now_ms);
}

ssize_t rd_http2_give(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t len,
                      uint32_t *flags, nghttp2_data_source *source, void *data) {
    (void)source, (void)data;
    rd_conn *conn = nghttp2_session_get_stream_user_data(session, id);
    if (conn == NULL) { /* it was finished, and is closed */
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return 0;
    }
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    if (must_wait(stream)) {
        stream->is_held = stream->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    rd_conn_ref(conn);
    const size_t taken = stream->offer != NULL ? take_offer(stream, (char *)bytes, len)
                                               : pull(stream, (char *)bytes, len);
    stream->in_round += (uint32_t)taken;
    stream->http2->taking.taken += taken;
    const bool has_gone = conn->state == RD_CONN_CLOSED && !stream->is_finished;
    if (is_last(conn, stream)) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        stream->is_finished = true;
    }
    const bool is_over = (*flags & NGHTTP2_DATA_FLAG_EOF) != 0;
    if (!is_over && taken == 0) stream->is_deferred = true;
    if (!is_over && taken == len && len < FRAME_BYTES) count_untaken(stream); /* by its window */
    rd_conn_unref(conn);
    if (has_gone && taken == 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return taken > 0 || is_over ? (ssize_t)taken : NGHTTP2_ERR_DEFERRED;
}
