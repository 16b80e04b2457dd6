/* SPDX-License-Identifier: MIT
 *
 * HTTP/1.1 from request to request: bytes become a request, and the end of its answer begins the
 * next one, or ends the connection or its protocol. Both tables of callbacks are here. http1_body.c
 * has the bodies, http1_responder.c what is queued of an answer.
 */
#include "protocol/http1.h"

#include <assert.h>

#include "base/apart.h"
#include "protocol/http1_body.h"
#include "protocol/http1_idle.h"
#include "protocol/http1_reply.h"
#include "protocol/http1_responder.h"
#include "transport/layer.h"
#include "transport/pump.h"

static const rd_responder http1_responder; /* at the end of this file */

/* ---- head ---- */

/* The text of the head is that of HTTP/1.1, but what the application sees is not. A body without a
 * length ended with its stream: it is all that follows. */
RD_APART static void become_stream(rd_head *head, bool more_came) {
    head->version = RD_HTTP_2;
    if (head->framing != RD_FRAMING_NONE || !more_came) return;
    head->framing = RD_FRAMING_STREAM;
    head->section = 0; /* sections are those of requests without a body */
}

static void begin_request(rd_conn *conn, const char *bytes, size_t len, bool more_came) {
    rd_http1 *http = rd_http1_of(conn);
    rd_request *request = http->request;
    if (http->is_stream) become_stream(&request->head, more_came);
    const bool has_room = rd_request_keep_head(request, bytes, len);
    request->conn = conn;
    request->responder = &http1_responder;
    http->head_deadline = http->started = false;
    if (!has_room) {
        rd_http1_refuse(conn, RD_ERR_INPUT_FULL);
    } else if (request->head.framing == RD_FRAMING_NONE) {
        rd_http1_body_complete(conn);
    } else {
        rd_http1_begin_body(conn, more_came);
    }
}

/* What a client of HTTP/2 begins with (RFC 9113, section 3.4). HTTP/1.1 knows no such method. */
static const rd_slice preface = RD_SLICE_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/* The first bytes are no request of HTTP/1.1. Whether they begin HTTP/2, and it is served here. */
static bool begins_http2(const rd_conn *conn, const char *bytes, size_t len) {
    const rd_http1 *http = rd_http1_of((rd_conn *)conn);
    if (rd_http_shared_of(conn)->http2 == NULL || http->served > 0) return false;
    return len >= 4 && memcmp(bytes, preface.ptr, len < preface.len ? len : preface.len) == 0;
}

/* It gets the same bytes, and needs all of them at once. They may be those in the connection's
 * `input`, where HTTP/2 puts what it reads later. */
RD_APART static void switch_to_http2(rd_conn *conn, const char *bytes, size_t len) {
    const rd_protocol *http2 = rd_http_shared_of(conn)->http2;
    rd_buffer input = conn->input;
    conn->input = (rd_buffer){0};
    rd_conn_count_input(conn);
    rd_http1_drop_request(rd_http1_of(conn));
    rd_conn_switch(conn, http2);
    http2->on_open(conn);
    http2->on_data(conn, bytes, len);
    rd_buffer_clear(&input);
}

/* Returns how many bytes of the head it used: all of it or none. */
static size_t read_head(rd_conn *conn, const char *bytes, size_t len) {
    rd_http1 *http = rd_http1_of(conn);
    rd_http_shared *shared = rd_http_shared_of(conn);
    if (http->request == NULL) {
        http->request = rd_request_new(&shared->requests);
        rd_http1_parser_init(&http->parser);
        http->parser.expected = &shared->sections.entries[http->section];
    }
    int used = rd_http1_parse(&http->parser, &http->request->head, &shared->limits, bytes, len);
    if (used > 0) {
        rd_head *head = &http->request->head;
        if (head->section == 0) {
            http->section = rd_sections_learn(&shared->sections, head, bytes);
        }
        begin_request(conn, bytes, (size_t)used, len > (size_t)used);
        return (size_t)used;
    }
    if (used < 0 && begins_http2(conn, bytes, len)) {
        switch_to_http2(conn, bytes, len);
        return len;
    } else if (used < 0) {
        rd_http1_refuse(conn, used);
    } else if (!http->head_deadline && !rd_http1_parser_is_idle(&http->parser)) {
        http->head_deadline = true;
        rd_http1_set_timeout(conn, rd_http1_settings(conn)->head_timeout_ms);
    }
    return 0;
}

/* ---- from bytes to the states ---- */

/* Goes as far as it can. Returns how many bytes are used up. */
static size_t feed(rd_conn *conn, const char *bytes, size_t len) {
    rd_http1 *http = rd_http1_of(conn);
    size_t used = 0;
    while (used < len && rd_conn_is_open(conn)) {
        size_t step = 0;
        switch ((rd_http1_input)http->input) {
        case RD_HTTP1_HEAD:
            step = read_head(conn, bytes + used, len - used);
            break;
        case RD_HTTP1_BODY:
            step = rd_http1_read_body(conn, bytes + used, len - used);
            break;
        case RD_HTTP1_STORING:
        case RD_HTTP1_DONE:
            return used;
        case RD_HTTP1_OVER:
            return len; /* ignored */
        }
        if (step == 0) break;
        used += step;
    }
    return used;
}

static void limit_read_ahead(rd_conn *conn) {
    bool full = rd_buffer_len(&conn->input) >= (size_t)rd_http1_settings(conn)->max_pipeline_bytes;
    if (full && rd_http1_has_read(rd_http1_of(conn))) rd_conn_pause_reading(conn);
}

/* All connections together have no room for what this client has sent ahead. A head is refused.
 * Behind a request that is being answered the rest is dropped, and that answer is the last. */
static void lack_input(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    if (!rd_http1_has_read(http)) {
        rd_http1_refuse(conn, RD_ERR_INPUT_FULL);
        return;
    }
    handler->on_refused(handler, conn, RD_ERR_INPUT_FULL);
    http->close_after = true;
    rd_conn_drop_input(conn);
    rd_conn_pause_reading(conn);
}

/* Whether the connection is open, and still one of HTTP/1.1. */
static bool goes_on(const rd_conn *conn) {
    return rd_conn_is_open(conn) && conn->protocol == &rd_protocol_http1;
}

static void http1_on_data(rd_conn *conn, const char *bytes, size_t len) {
    if (conn->input.end == 0) {
        size_t used = feed(conn, bytes, len);
        if (!goes_on(conn)) return;
        rd_buffer_append(&conn->input, bytes + used, len - used);
    } else {
        rd_buffer_append(&conn->input, bytes, len);
        size_t used = feed(conn, rd_buffer_ptr(&conn->input), rd_buffer_len(&conn->input));
        if (!goes_on(conn)) return;
        rd_buffer_consume(&conn->input, used);
    }
    if (!rd_conn_count_input(conn)) {
        lack_input(conn);
    } else {
        limit_read_ahead(conn);
    }
}

/* ---- the life of the connection ---- */

static void http1_on_open(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    http->section = rd_http_shared_of(conn)->sections.last;
    rd_http1_set_timeout(conn, rd_http1_settings(conn)->head_timeout_ms);
}

static void http1_on_eof(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    if (rd_http1_is_idle(conn)) {
        rd_conn_finish(conn, false);
    } else if (http->input == RD_HTTP1_HEAD) {
        rd_http1_refuse(conn, RD_ERR_HEAD_CUT);
    } else if (http->input == RD_HTTP1_BODY) {
        rd_http1_fail_body(conn, RD_ERR_BODY_CUT);
    } /* STORING, DONE: a half-closed client gets its answer */
}

static void http1_on_timeout(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    if (rd_http1_is_idle(conn)) {
        rd_conn_finish(conn, false);
    } else if (http->input == RD_HTTP1_HEAD) {
        rd_http1_refuse(conn, RD_ERR_HEAD_TIMEOUT);
    } else if (http->input == RD_HTTP1_BODY) {
        rd_http1_fail_body(conn, RD_ERR_BODY_TIMEOUT);
    }
}

/* Parses what was read ahead, and reads again if reading was paused. */
RD_APART static void go_on_reading(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    size_t used = feed(conn, rd_buffer_ptr(&conn->input), rd_buffer_len(&conn->input));
    if (!goes_on(conn)) return;
    rd_buffer_consume(&conn->input, used);
    rd_conn_count_input(conn);
    /* A body that was read ahead may have to wait for its disk at once. */
    if (conn->read_paused && !http->disk_behind) rd_conn_resume_reading(conn);
    limit_read_ahead(conn);
    if (conn->read_eof && !rd_http1_has_read(http)) http1_on_eof(conn);
}

RD_APART static void wait_for_room(rd_conn *conn) {
    conn->above_high = true;
    rd_conn_set_deadline(conn, UINT64_MAX); /* the deadline of writing runs */
    rd_conn_pause_reading(conn);
}

/* Reads the next request, unless the client does not take its answers: they would pile up without
 * end. */
static void begin_next(rd_conn *conn) {
    if (conn->out.bytes > (size_t)rd_http1_settings(conn)->output_high_bytes) {
        wait_for_room(conn);
        return;
    }
    rd_http1_set_timeout(conn, rd_http1_settings(conn)->keep_alive_timeout_ms);
    if (conn->input.end > 0 || conn->read_paused) go_on_reading(conn);
}

static void http1_on_drained(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    if (http->request != NULL) {
        rd_request_wake(http->request);
    } else if (http->input == RD_HTTP1_HEAD && conn->read_paused) {
        begin_next(conn);
    }
}

static void http1_on_close(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    rd_request *request = http->request;
    if (request == NULL) return;
    if (!request->detached) rd_request_set_gone(request);
    if (!request->body_complete && request->body_error == 0) request->body_error = RD_ERR_BODY_CUT;
    rd_http1_drop_request(http);
}

/* ---- the end of a request ---- */

static bool is_last(const rd_conn *conn, const rd_http1 *http) {
    return http->close_after || !rd_http1_has_read(http) || rd_conn_ends(conn);
}

/* The answer is complete: keeps the connection for the next request or ends it. */
static void request_done(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    bool last = is_last(conn, http);
    /* A client that did not ask for the end may be sending its next request already. Without a
     * linger that request would reset the connection and could destroy the answer in flight. */
    bool unread = !rd_http1_has_read(http) || conn->input.end > 0 || http->request->head.keep_alive;
    rd_http1_drop_request(http);
    http->served++;
    http->delivered = http->started = false;
    conn->awaits_answer = false;
    if (last || (conn->read_eof && conn->input.end == 0)) {
        if (http->input != RD_HTTP1_OVER) rd_http1_set_input(http, RD_HTTP1_OVER);
        rd_conn_finish(conn, unread);
        return;
    }
    rd_http1_set_input(http, RD_HTTP1_HEAD);
    http->chunked_out = http->length_out = http->raw_out = false;
    begin_next(conn);
}

static void http1_abort(rd_request *request) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return;
    rd_http1 *http = rd_http1_of(conn);
    bool looks_whole = rd_http1_ends_with_connection(request);
    http->close_after = true;
    if (conn->layered) rd_layer_cut(conn);
    if (http->input != RD_HTTP1_OVER) rd_http1_set_input(http, RD_HTTP1_OVER);
    request_done(conn);
    if (looks_whole) rd_conn_reset(conn);
}

static int http1_finish(rd_request *request) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    if (rd_http1_end_answer(request)) {
        request_done(conn);
    } else {
        http1_abort(request);
    }
    return 0;
}

/* To the worker that has the client. The application comes next, and nothing was sent before. */
static void tell_taken(rd_conn *conn) {
    const rd_slice taken = RD_SLICE(RD_REPLY_TAKEN);
    const struct iovec iov = {(void *)(uintptr_t)taken.ptr, taken.len};
    conn->transport->write(conn, &iov, 1, false);
}

static int http1_detach(rd_request *request, rd_buffer *rest) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    *rest = conn->input;
    conn->input = (rd_buffer){0};
    rd_conn_count_input(conn);
    request->detached = true;
    if (rd_conn_is_forwarded(conn) && !rd_http1_of(conn)->started) tell_taken(conn);
    if (!conn->layered) return rd_conn_detach(conn);
    const int fd = rd_pump_begin(conn, NULL);
    if (fd < 0) rd_conn_reset(conn);
    return fd < 0 ? RD_ERR_CLOSED : fd;
}

static void http1_switch_to(rd_request *request, const rd_protocol *protocol) {
    rd_conn *conn = request->conn;
    rd_http1 *http = rd_http1_of(conn);
    assert(http->input == RD_HTTP1_DONE);
    request->detached = true;
    rd_http1_drop_request(http);
    rd_conn_switch(conn, protocol);
}

/* ---- the tables ---- */

static void http1_refuse(rd_request *request, int code) {
    if (request->conn != NULL) rd_http1_refuse(request->conn, code);
}

static const rd_responder http1_responder = {
    .inform = rd_http1_inform,
    .start = rd_http1_start,
    .write = rd_http1_write,
    .borrow = rd_http1_borrow,
    .send_file = rd_http1_send_file,
    .flush = rd_http1_flush,
    .finish = http1_finish,
    .abort = http1_abort,
    .want_body = rd_http1_want_body,
    .refuse = http1_refuse,
    .give_up = rd_http1_give_up,
    .detach = http1_detach,
    .switch_to = http1_switch_to,
};

const rd_protocol rd_protocol_http1 = {
    .state_size = sizeof(rd_http1),
    .on_open = http1_on_open,
    .on_data = http1_on_data,
    .on_eof = http1_on_eof,
    .on_drained = http1_on_drained,
    .on_timeout = http1_on_timeout,
    .on_close = http1_on_close,
    .is_spare = rd_http1_is_spare,
    .on_shutdown = rd_http1_on_shutdown,
    .pack = rd_http1_pack,
    .unpack = rd_http1_unpack,
};
