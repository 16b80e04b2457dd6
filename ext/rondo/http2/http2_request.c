/* SPDX-License-Identifier: MIT
 *
 * Requests on streams of HTTP/2; see http2_request.h.
 */
#include "http2/http2_request.h"

#include "base/error.h"
#include "http2/http2_responder.h"
#include "http2/http2_stream.h"
#include "protocol/http1_body.h"
#include "transport/layer.h"

/* ---- the protocol ---- */

static bool is_too_large(const rd_conn *conn, size_t more) {
    const rd_request *request = rd_http1_of((rd_conn *)conn)->request;
    const int64_t limit = rd_body_limit_of(conn, request);
    return limit > 0 && request->body.size + more > (uint64_t)limit;
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

static const rd_protocol request_protocol = {
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

/* A body ends with its stream, also if its length is known: what comes beyond it makes the request
 * malformed. */
static void begin(rd_conn *conn, bool ends) {
    rd_http1 *http = rd_http1_of(conn);
    if (ends || http->request->head.framing == RD_FRAMING_NONE) {
        if (!ends) rd_http2_stream_open_window(conn);
        rd_http1_body_complete(conn);
        return;
    }
    rd_http2_stream_open_window(conn);
    rd_http1_begin_body(conn, false);
    if (http->input == RD_HTTP1_BODY) http->length_left = UINT64_MAX;
}

void rd_http2_request_open(rd_http2 *http2, int32_t id, rd_slice text, int code, bool ends) {
    rd_conn *conn = rd_http2_stream_new(http2, id, &request_protocol);
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

void rd_http2_request_reprioritize(rd_conn *conn, rd_slice priority) {
    rd_request *request = conn->protocol == &request_protocol ? rd_http1_of(conn)->request : NULL;
    if (request != NULL) rd_request_set_urgency(request, rd_http2_urgency(priority));
}
