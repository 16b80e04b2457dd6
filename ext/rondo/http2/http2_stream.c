/* SPDX-License-Identifier: MIT
 *
 * Streams of HTTP/2; see http2_stream.h.
 */
#include "http2/http2_stream.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "protocol/http1_body.h"
#include "http2/http2_responder.h"
#include "http2/http2_time.h"
#include "transport/layer.h"

#define LEAST_WINDOW 65536 /* a smaller one is left as it is */

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
    if (stream->http2->is_busy || !rd_http2_has_room(stream->http2)) return later();
    return offer(conn, iov, count);
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
    if (!rd_conn_is_open(http2->carrier)) return;
    say_end(stream);
    if (!http2->head.is_decoding) rd_http2_expect(http2); /* that has its deadline already */
    rd_http2_send(http2);
}

/* Falls while the client takes anything of the connection, so a stream that waits for its turn is
 * not late. It does not fall for a stream whose own window is closed. */
static uint32_t stream_count_unread(rd_conn *conn) {
    const rd_http2_stream *stream = rd_http2_stream_of(conn);
    const rd_http2 *http2 = stream->http2;
    if (!rd_conn_is_open(rd_conn_carrier(conn))) return UINT32_MAX;
    if (nghttp2_session_get_stream_remote_window_size(http2->session, stream->id) <= 0)
        return UINT32_MAX;
    return UINT32_MAX - 1 - (uint32_t)(http2->flight.sent / 1024);
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

/* ---- the protocol ---- */

static bool is_too_large(const rd_conn *conn, size_t more) {
    const int64_t limit = rd_http1_settings(conn)->max_body_bytes;
    return limit > 0 && rd_http1_of((rd_conn *)conn)->request->body.size + more > (uint64_t)limit;
}

/* Bytes for the protocol that follows come while the application decides on it. */
static void keep_for_upgrade(rd_conn *conn, const char *bytes, size_t len) {
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    rd_buffer_append(&conn->input, bytes, len);
    if (!rd_conn_count_input(conn)) {
        handler->on_refused(handler, conn, RD_ERR_INPUT_FULL);
        rd_conn_reset(conn);
    } else {
        rd_conn_pause_reading(conn);
    }
}

static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    const rd_http1 *http = rd_http1_of(conn);
    if (http->input == RD_HTTP1_BODY) {
        if (is_too_large(conn, len)) {
            rd_http1_fail_body(conn, RD_ERR_BODY_TOO_LARGE);
        } else {
            rd_http1_read_body(conn, bytes, len);
        }
    } else if (rd_http2_stream_of(conn)->is_upgrade && http->input == RD_HTTP1_DONE) {
        keep_for_upgrade(conn, bytes, len);
    } /* what comes behind an answer is dropped */
}

/* The library has compared Content-Length with what came. */
static void on_eof(rd_conn *conn) {
    if (rd_http1_of(conn)->input != RD_HTTP1_BODY) return;
    if (rd_http2_stream_of(conn)->is_whole) {
        rd_http1_end_body(conn);
    } else {
        rd_http1_fail_body(conn, RD_ERR_BODY_CUT);
    }
}

static void on_timeout(rd_conn *conn) {
    if (rd_http1_of(conn)->input == RD_HTTP1_BODY) rd_http1_fail_body(conn, RD_ERR_BODY_TIMEOUT);
}

static void on_drained(rd_conn *conn) {
    rd_request *request = rd_http1_of(conn)->request;
    if (request != NULL) rd_request_wake(request);
}

static void on_close(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    rd_request *request = http->request;
    if (request == NULL) return;
    if (!request->detached) rd_request_set_gone(request);
    if (!request->body_complete && request->body_error == 0) request->body_error = RD_ERR_BODY_CUT;
    rd_http1_drop_request(http);
}

static void on_nothing(rd_conn *conn) {
    (void)conn;
}

static bool is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    (void)conn, (void)kept, (void)since_ms;
    return false;
}

static const rd_protocol stream_protocol = {
    .state_size = sizeof(rd_http1),
    .on_open = on_nothing,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_drained = on_drained,
    .on_timeout = on_timeout,
    .on_close = on_close,
    .is_spare = is_spare,
    .on_shutdown = on_nothing, /* its request is answered */
};

/* ---- opening ---- */

static rd_conn *open_conn(rd_http2 *http2, int32_t id) {
    rd_conn *carrier = http2->carrier;
    rd_conn *conn = rd_conn_open_carried(carrier, &stream_transport, &stream_protocol);
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    *stream =
        (rd_http2_stream){.conn = conn, .http2 = http2, .id = id, .answering = &stream_protocol};
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

/* A stream whose client gave it no priority shares with the others: by itself the library sends one
 * after the other (RFC 9218, section 10). */
static void share(rd_http2 *http2, int32_t id) {
    const nghttp2_extpri priority = {.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
    if (http2->head.has_priority) return;
    nghttp2_session_change_extpri_stream_priority(http2->session, id, &priority, 0);
}

static uint8_t urgency_of(const rd_request *request) {
    const rd_header *field = rd_head_find(&request->head, RD_HEADER_PRIORITY);
    return field == NULL ? RD_URGENCY_DEFAULT
                         : rd_http2_urgency(rd_request_header_value(request, field));
}

/* Returns the code of the rule that the head breaks, or 0. */
static int parse(rd_http2 *http2, rd_request *request, rd_slice text) {
    rd_http_shared *shared = rd_http_shared_of(http2->carrier);
    rd_http1_parser parser;
    rd_http1_parser_init(&parser);
    parser.expected = &shared->sections.entries[http2->section];
    const int used = rd_http1_parse(&parser, &request->head, &shared->limits, text.ptr, text.len);
    if (used < 0) return used;
    if (used != (int)text.len) return RD_ERR_HTTP2_HEAD;
    if (request->head.section == 0) {
        http2->section = rd_sections_learn(&shared->sections, &request->head, text.ptr);
    }
    return rd_request_keep_head(request, text.ptr, text.len) ? 0 : RD_ERR_INPUT_FULL;
}

static int frame_body(rd_request *request, bool is_upgrade, bool ends) {
    rd_head *head = &request->head;
    head->version = RD_HTTP_2;
    head->keep_alive = true;
    if (head->framing == RD_FRAMING_CHUNKED) return RD_ERR_HTTP2_HEAD;
    if (is_upgrade) return head->framing == RD_FRAMING_NONE ? 0 : RD_ERR_HTTP2_HEAD;
    if (ends && head->framing == RD_FRAMING_LENGTH && head->content_length > 0)
        return RD_ERR_HTTP2_HEAD;
    if (!ends && head->framing == RD_FRAMING_NONE) {
        head->framing = RD_FRAMING_STREAM;
        head->section = 0; /* sections are those of requests without a body */
        head->expect_continue = rd_head_has(head, RD_HEADER_EXPECT);
    }
    return 0;
}

/* A client may send requests for other hosts on the connection that it has already. */
static int check_host(rd_conn *carrier, const rd_request *request) {
    const rd_transport *transport = carrier->transport;
    if (transport->stands_for == NULL || request->head.host.len == 0) return 0;
    const rd_slice host = rd_request_slice(request, request->head.host);
    return transport->stands_for(carrier, host) ? 0 : RD_ERR_HTTP2_HOST;
}

/* A quarter of what the others leave: 512 KB alone, and large windows for eight streams. A window
 * is memory while the server does not read (RFC 9113, section 5.2). The library gives it back by
 * halves, and each half is a small record to encrypt and send. */
static void open_window(rd_conn *conn) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    rd_http2 *http2 = stream->http2;
    const uint32_t window = http2->window_room / 4;
    if (window < LEAST_WINDOW) return;
    http2->window_room -= window;
    stream->window = window;
    nghttp2_session_set_local_window_size(http2->session, NGHTTP2_FLAG_NONE, stream->id,
                                          (int32_t)window);
}

/* A body ends with its stream, also if its length is known: what comes beyond it makes the request
 * malformed. */
static void begin(rd_conn *conn, bool ends) {
    rd_http1 *http = rd_http1_of(conn);
    if (ends || http->request->head.framing == RD_FRAMING_NONE) {
        if (!ends) open_window(conn);
        rd_http1_body_complete(conn);
        return;
    }
    open_window(conn);
    rd_http1_begin_body(conn, false);
    if (http->input == RD_HTTP1_BODY) http->length_left = UINT64_MAX;
}

void rd_http2_stream_open(rd_http2 *http2, int32_t id, rd_slice text, int code, bool ends) {
    rd_conn *conn = open_conn(http2, id);
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    rd_http1 *http = rd_http1_of(conn);
    stream->is_upgrade = rd_http2_head_is_connect(&http2->head);
    stream->input_ended = stream->end_told = ends;
    share(http2, id);
    rd_request *request = http->request = rd_request_new(&rd_http_shared_of(conn)->requests);
    if (code == 0) code = parse(http2, request, text);
    if (code == 0) code = frame_body(request, stream->is_upgrade, ends);
    if (code == 0) code = check_host(http2->carrier, request);
    if (code == 0) request->queued.urgency = urgency_of(request);
    request->conn = conn;
    request->responder = &rd_http2_responder;
    if (code != 0) {
        rd_http2_refuse(conn, code);
    } else {
        begin(conn, ends);
    }
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
    if (rd_conn_is_open(conn) && !conn->read_paused) rd_conn_read_now(conn);
}

void rd_http2_stream_closed(rd_conn *conn) {
    rd_http2_stream_of(conn)->is_gone = true;
    rd_conn_close(conn);
}

void rd_http2_stream_reprioritize(rd_conn *conn, rd_slice priority) {
    rd_request *request = conn->protocol == &stream_protocol ? rd_http1_of(conn)->request : NULL;
    if (request != NULL) rd_request_set_urgency(request, rd_http2_urgency(priority));
}
