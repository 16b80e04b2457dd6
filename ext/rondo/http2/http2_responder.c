/* SPDX-License-Identifier: MIT
 *
 * Answers on streams of HTTP/2; see http2_responder.h. The state of the request is that of HTTP/1.1
 * (http1_state.h), because a stream is a connection with one request.
 */
#include "http2/http2_responder.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http/status.h"
#include "http2/http2_answer.h"
#include "protocol/http1_body.h"
#include "protocol/http1_reply.h"
#include "protocol/http1_responder.h"
#include "transport/layer.h"
#include "transport/pump.h"

#define TAKEN_HEAD 65536 /* what an application that takes a stream may begin with */

/* ---- the table ---- */

static int inform(rd_request *request, const rd_response_head *head) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    assert(head->status < 200 && !rd_http1_of(conn)->started);
    rd_http2_send_head(conn, head, true);
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
    rd_http2_send_head(conn, head, !is_empty);
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
    rd_http2_send_head(conn, &head, true);
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
    rd_layer_note_pending(conn); /* what came before the answer */
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
    rd_http2_send_head(conn, &head, !is_head);
    if (!rd_conn_is_open(conn)) return;
    if (!is_head) {
        rd_outq_copy(&conn->out, &conn->set->chunks, text, len);
        rd_outq_copy(&conn->out, &conn->set->chunks, "\n", 1);
    }
    rd_conn_finish(conn, false);
}
