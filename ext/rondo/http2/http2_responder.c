/* SPDX-License-Identifier: MIT
 *
 * Answers on streams of HTTP/2; see http2_responder.h. The state of the request is that of HTTP/1.1
 * (http1_state.h), because a stream is a connection with one request.
 */
#include "http2/http2_responder.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http/status.h"
#include "protocol/http1_body.h"
#include "protocol/http1_reply.h"
#include "protocol/http1_responder.h"
#include "transport/layer.h"
#include "transport/pump.h"

#define FIELDS_OWN    4 /* that the server adds: status, length, date, retry-after */
#define FIELDS_INLINE 64
#define NAMES_INLINE  1024
#define SHORT_ANSWER  16384 /* bytes */
#define TAKEN_HEAD    65536 /* what an application that takes a stream may begin with */

/* ---- heads ---- */

/* The fields of a head as the library takes them. It copies them. */
typedef struct rd_http2_fields {
    nghttp2_nv *rows;
    size_t count;
    char *names; /* room for names in lower case */
    size_t names_len;
    char status[4], length[24];
    nghttp2_nv rows_inline[FIELDS_INLINE];
    char names_inline[NAMES_INLINE];
} rd_http2_fields;

/* Fields that belong to a connection of HTTP/1.1 (RFC 9113, section 8.2.2), and those of a
 * WebSocket that do not belong to a stream (RFC 8441, section 5). */
static bool is_dropped(rd_slice name, bool is_upgrade) {
    static const rd_slice dropped[] = {
        RD_SLICE_INIT("connection"),        RD_SLICE_INIT("keep-alive"),
        RD_SLICE_INIT("proxy-connection"),  RD_SLICE_INIT("upgrade"),
        RD_SLICE_INIT("transfer-encoding"),
    };
    for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
        if (rd_slice_equal(name, dropped[i])) return true;
    }
    return is_upgrade && rd_slice_equal(name, RD_SLICE("sec-websocket-accept"));
}

/* A value that an attacker may be guessing must not be compared by compression (RFC 7541, section
 * 7.1.3), and a cookie is rarely sent twice. */
static uint8_t flags_of(rd_slice name) {
    return rd_slice_equal(name, RD_SLICE("set-cookie")) ? NGHTTP2_NV_FLAG_NO_INDEX
                                                        : NGHTTP2_NV_FLAG_NONE;
}

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

/* Blanks around a value are no part of it in HTTP/1.1, and an error in HTTP/2 (RFC 9113, section
 * 8.2.1). */
static rd_slice trimmed(rd_slice value) {
    while (value.len > 0 && is_blank(value.ptr[0])) value.ptr++, value.len--;
    while (value.len > 0 && is_blank(value.ptr[value.len - 1])) value.len--;
    return value;
}

static void put(rd_http2_fields *fields, rd_slice name, rd_slice value) {
    fields->rows[fields->count++] = (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name.ptr,
        .value = (uint8_t *)(uintptr_t)value.ptr,
        .namelen = name.len,
        .valuelen = value.len,
        .flags = flags_of(name),
    };
}

static rd_slice in_lower_case(rd_http2_fields *fields, rd_slice name) {
    char *to = fields->names + fields->names_len;
    for (size_t i = 0; i < name.len; i++) {
        const char byte = name.ptr[i];
        to[i] = (char)(byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte);
    }
    fields->names_len += name.len;
    return rd_slice_of(to, name.len);
}

static void init_fields(rd_http2_fields *fields, const rd_response_head *head) {
    size_t names = 0;
    for (size_t i = 0; i < head->count; i++) names += head->fields[i].name.len;
    const bool fits = head->count + FIELDS_OWN <= FIELDS_INLINE;
    fields->rows =
        fits ? fields->rows_inline : rd_alloc((head->count + FIELDS_OWN) * sizeof(nghttp2_nv));
    fields->names = names <= NAMES_INLINE ? fields->names_inline : rd_alloc(names);
    fields->count = fields->names_len = 0;
}

static void clear_fields(rd_http2_fields *fields) {
    if (fields->rows != fields->rows_inline) rd_free(fields->rows);
    if (fields->names != fields->names_inline) rd_free(fields->names);
}

static void put_status(rd_http2_fields *fields, int status) {
    const int len = snprintf(fields->status, sizeof(fields->status), "%03d", status);
    put(fields, RD_SLICE(":status"), rd_slice_of(fields->status, (size_t)len));
}

static void put_length(rd_http2_fields *fields, int64_t length) {
    const int len = snprintf(fields->length, sizeof(fields->length), "%lld", (long long)length);
    put(fields, RD_SLICE("content-length"), rd_slice_of(fields->length, (size_t)len));
}

/* The line without its name and its end. */
static void put_date(rd_http2_fields *fields, rd_conn *conn) {
    const char *line = rd_date_line(&rd_http_shared_of(conn)->date);
    put(fields, RD_SLICE("date"), rd_slice_of(line + 6, RD_DATE_LINE_BYTES - 8));
}

static void put_head(rd_http2_fields *fields, rd_conn *conn, const rd_response_head *head,
                     int status) {
    const bool is_upgrade = rd_http2_stream_of(conn)->is_upgrade;
    put_status(fields, status);
    for (size_t i = 0; i < head->count; i++) {
        const rd_slice name = in_lower_case(fields, head->fields[i].name);
        if (!is_dropped(name, is_upgrade)) put(fields, name, trimmed(head->fields[i].value));
    }
    if (status < 200) return;
    if (head->length >= 0 && !head->raw && rd_status_has_body(status)) {
        put_length(fields, head->length);
    }
    if (!head->has_date) put_date(fields, conn);
}

/* The library copies the fields. Without a body the head ends the stream. */
static int submit(rd_conn *conn, const rd_http2_fields *fields, int status, bool has_body) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    nghttp2_session *session = stream->http2->session;
    if (status < 200) {
        return nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, stream->id, NULL, fields->rows,
                                      fields->count, NULL);
    }
    const nghttp2_data_provider provider = {.read_callback = rd_http2_give};
    stream->is_started = true;
    stream->has_body = has_body;
    return nghttp2_submit_response(session, stream->id, fields->rows, fields->count,
                                   has_body ? &provider : NULL);
}

/* A status of 101 is for HTTP/1.1: on a stream the protocol has changed with 200 (RFC 8441, section
 * 5). The library refuses nothing that the caller has checked. */
static void send_head(rd_conn *conn, const rd_response_head *head, bool has_body) {
    rd_http2_fields fields;
    const int status = head->status == 101 ? 200 : head->status;
    init_fields(&fields, head);
    put_head(&fields, conn, head, status);
    const int code = submit(conn, &fields, status, has_body);
    clear_fields(&fields);
    if (code != 0) {
        rd_conn_reset(conn);
        return;
    }
    rd_http2_stream_of(conn)->head_waits = true;
    rd_conn_mark_dirty(conn);
}

/* ---- the table ---- */

static int inform(rd_request *request, const rd_response_head *head) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    assert(head->status < 200 && !rd_http1_of(conn)->started);
    send_head(conn, head, true);
    return request->conn != NULL ? 0 : RD_ERR_CLOSED;
}

static bool drops_body(const rd_request *request, const rd_response_head *head) {
    return request->head.method_id == RD_METHOD_HEAD ||
           (!rd_status_has_body(head->status) && !head->raw);
}

static int start(rd_request *request, const rd_response_head *head) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    rd_http1 *http = rd_http1_of(conn);
    assert(!http->started);
    request->status = head->status;
    request->drop_body = drops_body(request, head);
    http->close_after = http->started = true;
    http->raw_out = head->raw;
    http->length_out = head->length >= 0 && !head->raw;
    http->output_left = http->length_out ? (uint64_t)head->length : 0;
    const bool is_empty = request->drop_body || (http->length_out && head->length == 0);
    send_head(conn, head, !is_empty);
    return request->conn != NULL ? 0 : RD_ERR_CLOSED;
}

static int flush(rd_request *request) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    rd_conn_flush_through(conn);
    return request->conn != NULL ? 0 : RD_ERR_CLOSED;
}

static void let_go(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    rd_http1_drop_request(http);
    conn->awaits_answer = false;
    if (http->input != RD_HTTP1_OVER) rd_http1_set_input(http, RD_HTTP1_OVER);
    rd_conn_finish(conn, false);
}

/* What was written before still leaves. Then the stream is reset, which says that something is
 * missing. */
static void http2_abort(rd_request *request) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return;
    if (!rd_http1_of(conn)->started) {
        rd_conn_reset(conn);
        return;
    }
    rd_http2_stream_of(conn)->is_cut = true;
    rd_layer_cut(conn);
    let_go(conn);
}

/* The answer is complete. The stream ends when it was sent. One whose length is not what its head
 * says is malformed (RFC 9113, section 8.1.1): its client must not take it for whole. */
static int finish(rd_request *request) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    if (rd_http1_end_answer(request) && !rd_http1_of(conn)->too_long) {
        let_go(conn);
    } else {
        http2_abort(request);
    }
    return 0;
}

static void give_up(rd_request *request) {
    if (rd_http1_client(request) != NULL) rd_http1_give_up(request);
}

static void send_taken_head(rd_conn *conn, const rd_http1_reply *reply, const char *bytes) {
    rd_field *fields = rd_alloc((reply->count + 1) * sizeof(rd_field));
    const rd_response_head head = {
        .status = reply->status,
        .fields = fields,
        .count = rd_http1_reply_fields(reply, bytes, fields),
        .length = reply->length,
        .has_date = reply->has_date,
        .raw = reply->body == RD_REPLY_RAW,
    };
    send_head(conn, &head, true);
    rd_free(fields);
}

/* The application believes that its connection is one of HTTP/1.1. What follows the head goes
 * through as it is, so it must not be chunked. */
static int take_head(rd_conn *conn, const char *bytes, size_t len) {
    rd_http1_reply reply;
    rd_http1_reply_init(&reply, false);
    const int used = rd_http1_reply_head(&reply, bytes, len);
    if (used == 0 && len < TAKEN_HEAD) return 0;
    if (used <= 0 || used > TAKEN_HEAD || reply.is_chunked) return RD_ERR_TAKEN_HEAD;
    if (reply.status < 200 && reply.status != 101) return RD_ERR_TAKEN_HEAD;
    send_taken_head(conn, &reply, bytes);
    return used;
}

/* The application gets one end of a socket pair: for what follows the head of its answer, or for
 * all of it. */
static int detach(rd_request *request, rd_buffer *rest) {
    rd_conn *conn = rd_http1_client(request);
    *rest = (rd_buffer){0};
    if (conn == NULL) return RD_ERR_CLOSED;
    const bool has_head = rd_http1_of(conn)->started;
    assert(has_head || rd_http2_stream_of(conn)->is_upgrade);
    request->detached = true;
    conn->read_paused = false; /* bytes that came before the answer have paused it */
    const int fd = rd_pump_begin(conn, has_head ? NULL : take_head);
    if (fd < 0) rd_conn_reset(conn);
    return fd < 0 ? RD_ERR_CLOSED : fd;
}

static void switch_to(rd_request *request, const rd_protocol *protocol) {
    rd_conn *conn = request->conn;
    rd_http1 *http = rd_http1_of(conn);
    assert(http->input == RD_HTTP1_DONE);
    request->detached = true;
    rd_http1_drop_request(http);
    rd_conn_switch(conn, protocol);
}

static void refuse(rd_request *request, int code) {
    if (request->conn != NULL) rd_http2_refuse(request->conn, code);
}

const rd_responder rd_http2_responder = {
    .inform = inform,
    .start = start,
    .write = rd_http1_write,
    .borrow = rd_http1_borrow,
    .send_file = rd_http1_send_file,
    .flush = flush,
    .finish = finish,
    .abort = http2_abort,
    .want_body = rd_http1_want_body,
    .give_up = give_up,
    .detach = detach,
    .switch_to = switch_to,
    .refuse = refuse,
};

/* ---- refusing ---- */

/* There is no request, or it ends here. */
void rd_http2_refuse(rd_conn *conn, int code) {
    static const rd_field fields[] = {
        {RD_SLICE_INIT("content-type"), RD_SLICE_INIT("text/plain; charset=utf-8")},
        {RD_SLICE_INIT("retry-after"), RD_SLICE_INIT("1")},
    };
    rd_http1 *http = rd_http1_of(conn);
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    handler->on_refused(handler, conn, code);
    const bool is_head = http->request != NULL && http->input != RD_HTTP1_HEAD &&
                         http->request->head.method_id == RD_METHOD_HEAD;
    rd_http1_set_input(http, RD_HTTP1_OVER);
    rd_http1_drop_request(http);
    if (rd_error_class(code) != RD_ERROR_PEER) {
        rd_conn_reset(conn);
        return;
    }
    const char *text = rd_error_text(code);
    const size_t len = strlen(text);
    const int status = rd_error_status(code);
    const rd_response_head head = {.status = status,
                                   .fields = fields,
                                   .count = status == 503 ? 2 : 1,
                                   .length = (int64_t)len + 1};
    send_head(conn, &head, !is_head);
    if (!rd_conn_is_open(conn)) return;
    if (!is_head) {
        rd_outq_copy(&conn->out, &conn->set->chunks, text, len);
        rd_outq_copy(&conn->out, &conn->set->chunks, "\n", 1);
    }
    rd_conn_finish(conn, false);
}

/* ---- bytes of the answer ---- */

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
    const bool has_gone = conn->state == RD_CONN_CLOSED && !stream->is_finished;
    if (is_last(conn, stream)) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        stream->is_finished = true;
    }
    const bool is_over = (*flags & NGHTTP2_DATA_FLAG_EOF) != 0;
    if (!is_over && taken == 0) stream->is_deferred = true;
    rd_conn_unref(conn);
    if (has_gone && taken == 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return taken > 0 || is_over ? (ssize_t)taken : NGHTTP2_ERR_DEFERRED;
}
