/* SPDX-License-Identifier: MIT
 *
 * The reading side of HTTP/1.1: from bytes to requests, refusals, deadlines. Calls the parsers
 * beside it and tells the handler; see http1.h for the states.
 */
#include "protocol/http1.h"

#include <assert.h>

#include "base/clock.h"
#include "transport/proxy_header.h"

void rd_http1_set_input(rd_http1 *http, rd_http1_input input) {
    static const uint8_t ways[] = {
        [RD_HTTP1_PROXY] = 1 << RD_HTTP1_HEAD | 1 << RD_HTTP1_OVER,
        [RD_HTTP1_HEAD] = 1 << RD_HTTP1_BODY | 1 << RD_HTTP1_DONE | 1 << RD_HTTP1_OVER,
        [RD_HTTP1_BODY] = 1 << RD_HTTP1_DONE | 1 << RD_HTTP1_OVER,
        [RD_HTTP1_DONE] = 1 << RD_HTTP1_HEAD | 1 << RD_HTTP1_OVER,
        [RD_HTTP1_OVER] = 0,
    };
    assert(ways[http->input] & 1 << input);
    (void)ways;
    http->input = (uint8_t)input;
}

static const rd_settings *settings_of(const rd_conn *conn) {
    return conn->set->settings;
}

static void set_timeout(rd_conn *conn, int64_t timeout_ms) {
    rd_conn_set_deadline(conn, conn->set->loop->now_ms + (uint64_t)timeout_ms);
}

/* ---- refusing ---- */

/* Whoever waits for its client hears of it: another thread may have ended the answer. */
static void drop_request(rd_http1 *http) {
    rd_request *request = http->request;
    http->request = NULL;
    if (request == NULL) return;
    request->conn = NULL;
    rd_request_wake(request);
    rd_request_unref(request);
}

/* Answers a broken rule and ends the connection. Answers of earlier requests stand in the queue
 * before this one. */
static void refuse(rd_conn *conn, int code) {
    rd_http1 *http = rd_http1_of(conn);
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    handler->on_refused(handler, conn, code);
    if (rd_error_class(code) != RD_ERROR_PEER) {
        rd_http1_set_input(http, RD_HTTP1_OVER);
        drop_request(http);
        rd_conn_finish(conn, true); /* answers of earlier requests may still be queued */
        return;
    }
    bool is_head = http->input == RD_HTTP1_BODY && http->request->head.method_id == RD_METHOD_HEAD;
    rd_http1_set_input(http, RD_HTTP1_OVER);
    drop_request(http);
    rd_http1_queue_refusal(conn, code, !is_head);
    rd_conn_finish(conn, true);
}

/* The application has the request already: it hears of the failure when it reads. */
static void fail_body(rd_conn *conn, int code) {
    rd_http1 *http = rd_http1_of(conn);
    if (!http->delivered) {
        refuse(conn, code);
        return;
    }
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    handler->on_refused(handler, conn, code);
    rd_http1_set_input(http, RD_HTTP1_OVER);
    http->close_after = true;
    http->request->body_error = code;
    rd_conn_set_deadline(conn, UINT64_MAX);
    rd_conn_pause_reading(conn);
    rd_request_wake(http->request);
}

/* ---- delivering ---- */

static void deliver(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    http->delivered = true;
    rd_conn_set_deadline(conn, UINT64_MAX);
    handler->on_request(handler, http->request);
}

static void body_complete(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    rd_http1_set_input(http, RD_HTTP1_DONE);
    http->request->body_complete = true;
    http->wants_continue = false;
    conn->settled = true;
    if (http->delivered) {
        rd_conn_set_deadline(conn, UINT64_MAX);
        rd_request_wake(http->request);
    } else {
        deliver(conn);
    }
}

/* ---- head ---- */

static bool is_too_large(const rd_conn *conn, uint64_t size) {
    int64_t limit = settings_of(conn)->max_body_bytes;
    return limit > 0 && size > (uint64_t)limit;
}

static void begin_body(rd_conn *conn, bool more_came) {
    rd_http1 *http = rd_http1_of(conn);
    const rd_head *head = &http->request->head;
    rd_http1_set_input(http, RD_HTTP1_BODY);
    if (head->framing == RD_FRAMING_CHUNKED) {
        rd_http1_chunked_init(&http->chunked);
    } else {
        http->length_left = head->content_length;
        if (is_too_large(conn, head->content_length)) {
            refuse(conn, RD_ERR_BODY_TOO_LARGE);
            return;
        }
    }
    http->body_since_ms = conn->set->loop->now_ms;
    set_timeout(conn, settings_of(conn)->body_timeout_ms);
    if (head->framing == RD_FRAMING_LENGTH && head->content_length == 0) {
        body_complete(conn);
    } else if (head->expect_continue && !more_came) {
        http->wants_continue = true;
        deliver(conn);
    }
}

static void begin_request(rd_conn *conn, const char *bytes, size_t len, bool more_came) {
    rd_http1 *http = rd_http1_of(conn);
    rd_request *request = http->request;
    rd_request_keep_head(request, bytes, len);
    request->conn = conn;
    request->responder = &rd_http1_responder;
    http->head_deadline = http->started = false;
    if (request->head.framing == RD_FRAMING_NONE) {
        body_complete(conn);
    } else {
        begin_body(conn, more_came);
    }
}

/* Bytes of the head used: all of it or none. */
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
    if (used < 0) {
        refuse(conn, used);
    } else if (!http->head_deadline && !rd_http1_parser_is_idle(&http->parser)) {
        http->head_deadline = true;
        set_timeout(conn, settings_of(conn)->head_timeout_ms);
    }
    return 0;
}

/* ---- body ---- */

static bool is_too_slow(const rd_conn *conn, const rd_http1 *http) {
    const rd_settings *settings = settings_of(conn);
    uint64_t elapsed = conn->set->loop->now_ms - http->body_since_ms;
    if (settings->body_min_rate == 0) return false;
    if (elapsed < (uint64_t)settings->body_min_rate_after_ms) return false;
    return http->request->body.size * 1000 < (uint64_t)settings->body_min_rate * elapsed;
}

static bool store_body(rd_conn *conn, const char *bytes, size_t len) {
    size_t in_memory = (size_t)settings_of(conn)->body_memory_bytes;
    int code = rd_body_append(&rd_http1_of(conn)->request->body, bytes, len, in_memory);
    if (code != 0) fail_body(conn, code);
    return code == 0;
}

static size_t read_length_body(rd_conn *conn, const char *bytes, size_t len) {
    rd_http1 *http = rd_http1_of(conn);
    size_t part = len < http->length_left ? len : (size_t)http->length_left;
    if (!store_body(conn, bytes, part)) return 0;
    http->length_left -= part;
    if (http->length_left == 0) body_complete(conn);
    return part;
}

/* Takes one step of the decoder; all of `bytes` or up to the end of a piece of data. */
static size_t read_chunked_body(rd_conn *conn, const char *bytes, size_t len) {
    rd_http1 *http = rd_http1_of(conn);
    size_t used = 0;
    rd_slice data;
    int result = rd_http1_chunked_next(&http->chunked, &rd_http_shared_of(conn)->limits, bytes, len,
                                       &used, &data);
    if (result < 0) {
        fail_body(conn, result);
        return 0;
    }
    if (is_too_large(conn, rd_http1_chunked_announced(&http->chunked))) {
        fail_body(conn, RD_ERR_BODY_TOO_LARGE);
        return 0;
    }
    if (result == RD_CHUNKED_DATA && !store_body(conn, data.ptr, data.len)) return 0;
    if (result == RD_CHUNKED_DONE) body_complete(conn);
    return used;
}

static size_t read_body(rd_conn *conn, const char *bytes, size_t len) {
    rd_http1 *http = rd_http1_of(conn);
    size_t used = 0;
    while (used < len && http->input == RD_HTTP1_BODY) {
        if (http->request->head.framing == RD_FRAMING_CHUNKED) {
            used += read_chunked_body(conn, bytes + used, len - used);
        } else {
            used += read_length_body(conn, bytes + used, len - used);
        }
    }
    if (http->input != RD_HTTP1_BODY || !rd_conn_is_open(conn)) return used;
    if (http->wants_continue) { /* it did not wait to be asked: its time begins here */
        http->wants_continue = false;
        http->body_since_ms = conn->set->loop->now_ms;
    }
    if (is_too_slow(conn, http)) {
        fail_body(conn, RD_ERR_BODY_TOO_SLOW);
    } else {
        set_timeout(conn, settings_of(conn)->body_timeout_ms);
    }
    return used;
}

/* ---- PROXY protocol ---- */

static size_t read_proxy_header(rd_conn *conn, const char *bytes, size_t len) {
    rd_proxy_header header;
    int used = rd_proxy_header_parse(bytes, len, &header);
    if (used < 0) {
        refuse(conn, used);
        return 0;
    }
    if (used == 0) return 0;
    if (header.has_addresses) {
        rd_address_from_sockaddr(&conn->peer, (const struct sockaddr *)&header.source);
    }
    rd_http1_set_input(rd_http1_of(conn), RD_HTTP1_HEAD);
    return (size_t)used;
}

static bool must_send_proxy_header(const rd_conn *conn) {
    const rd_http_shared *shared = rd_http_shared_of(conn);
    return rd_networks_contain(shared->proxies, shared->proxy_count, &conn->peer);
}

/* ---- from bytes to the states ---- */

/* Goes as far as it can; how many bytes are used up. */
static size_t feed(rd_conn *conn, const char *bytes, size_t len) {
    rd_http1 *http = rd_http1_of(conn);
    size_t used = 0;
    while (used < len && rd_conn_is_open(conn)) {
        size_t step = 0;
        switch ((rd_http1_input)http->input) {
        case RD_HTTP1_PROXY:
            step = read_proxy_header(conn, bytes + used, len - used);
            break;
        case RD_HTTP1_HEAD:
            step = read_head(conn, bytes + used, len - used);
            break;
        case RD_HTTP1_BODY:
            step = read_body(conn, bytes + used, len - used);
            break;
        case RD_HTTP1_DONE:
            return used;
        case RD_HTTP1_OVER:
            return len; /* nobody will look at it */
        }
        if (step == 0) break;
        used += step;
    }
    return used;
}

static void limit_read_ahead(rd_conn *conn) {
    bool full = rd_buffer_len(&conn->input) >= (size_t)settings_of(conn)->max_pipeline_bytes;
    if (full && rd_http1_of(conn)->input == RD_HTTP1_DONE) rd_conn_pause_reading(conn);
}

static void http1_on_data(rd_conn *conn, const char *bytes, size_t len) {
    if (conn->input.end == 0) {
        size_t used = feed(conn, bytes, len);
        if (!rd_conn_is_open(conn)) return;
        rd_buffer_append(&conn->input, bytes + used, len - used);
    } else {
        rd_buffer_append(&conn->input, bytes, len);
        size_t used = feed(conn, rd_buffer_ptr(&conn->input), rd_buffer_len(&conn->input));
        if (!rd_conn_is_open(conn)) return;
        rd_buffer_consume(&conn->input, used);
    }
    limit_read_ahead(conn);
}

/* ---- the life of the connection ---- */

static void http1_on_open(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    if (!must_send_proxy_header(conn)) rd_http1_set_input(http, RD_HTTP1_HEAD);
    http->section = rd_http_shared_of(conn)->sections.last;
    set_timeout(conn, settings_of(conn)->head_timeout_ms);
}

void rd_http1_resume(rd_conn *conn, uint32_t served) {
    rd_http1 *http = rd_http1_of(conn);
    if (http->input == RD_HTTP1_PROXY) rd_http1_set_input(http, RD_HTTP1_HEAD); /* behind it */
    http->served = served;
}

static bool is_between_requests(const rd_http1 *http) {
    if (http->input != RD_HTTP1_HEAD) return false;
    return http->request == NULL || rd_http1_parser_is_idle(&http->parser);
}

static void http1_on_eof(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    if (is_between_requests(http) || http->input == RD_HTTP1_PROXY) {
        rd_conn_finish(conn, false);
    } else if (http->input == RD_HTTP1_HEAD) {
        refuse(conn, RD_ERR_HEAD_CUT);
    } else if (http->input == RD_HTTP1_BODY) {
        fail_body(conn, RD_ERR_BODY_CUT);
    } /* DONE: a half-closed client gets its answer */
}

static void http1_on_timeout(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    if (is_between_requests(http) || http->input == RD_HTTP1_PROXY) {
        rd_conn_finish(conn, false);
    } else if (http->input == RD_HTTP1_HEAD) {
        refuse(conn, RD_ERR_HEAD_TIMEOUT);
    } else if (http->input == RD_HTTP1_BODY) {
        fail_body(conn, RD_ERR_BODY_TIMEOUT);
    }
}

/* The next request, unless the client does not take its answers: they would pile up without end. */
static void begin_next(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    if (conn->out.bytes > (size_t)settings_of(conn)->output_high_bytes) {
        conn->above_high = true;
        rd_conn_set_deadline(conn, UINT64_MAX); /* that of writing runs */
        rd_conn_pause_reading(conn);
        return;
    }
    set_timeout(conn, settings_of(conn)->keep_alive_timeout_ms);
    if (conn->input.end == 0 && !conn->read_paused) return;
    size_t used = feed(conn, rd_buffer_ptr(&conn->input), rd_buffer_len(&conn->input));
    if (!rd_conn_is_open(conn)) return;
    rd_buffer_consume(&conn->input, used);
    if (conn->read_paused) rd_conn_resume_reading(conn);
    limit_read_ahead(conn);
    if (conn->read_eof && http->input != RD_HTTP1_DONE) http1_on_eof(conn);
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
    request->gone = !request->detached;
    if (!request->body_complete && request->body_error == 0) request->body_error = RD_ERR_BODY_CUT;
    drop_request(http);
}

static bool http1_is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    const rd_http1 *http = rd_http1_of(conn);
    const rd_settings *settings = settings_of(conn);
    if ((http->served > 0) != kept || !is_between_requests(http) || conn->input.end > 0)
        return false;
    int64_t timeout_ms = kept ? settings->keep_alive_timeout_ms : settings->head_timeout_ms;
    return conn->deadline != UINT64_MAX && conn->deadline <= since_ms + (uint64_t)timeout_ms;
}

static void http1_on_shutdown(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    if (!is_between_requests(http)) return; /* its answer will say that it is the last */
    if (http->served > 0 || settings_of(conn)->fresh_grace_ms == 0) {
        rd_conn_finish(conn, false);
    } else {
        set_timeout(conn, settings_of(conn)->fresh_grace_ms);
    }
}

void rd_http1_leave(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    assert(http->input == RD_HTTP1_DONE);
    http->request->detached = true;
    drop_request(http);
}

static bool is_last(const rd_conn *conn, const rd_http1 *http) {
    return http->close_after || http->input != RD_HTTP1_DONE || conn->set->stopping;
}

void rd_http1_request_done(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    bool last = is_last(conn, http);
    /* A client that did not ask for the end may be sending the next request already: without a
     * linger that would reset the connection and could destroy the answer on its way. */
    bool unread =
        http->input != RD_HTTP1_DONE || conn->input.end > 0 || http->request->head.keep_alive;
    drop_request(http);
    http->served++;
    http->delivered = http->started = false;
    conn->settled = false;
    if (last || (conn->read_eof && conn->input.end == 0)) {
        if (http->input != RD_HTTP1_OVER) rd_http1_set_input(http, RD_HTTP1_OVER);
        rd_conn_finish(conn, unread);
        return;
    }
    rd_http1_set_input(http, RD_HTTP1_HEAD);
    http->chunked_out = http->length_out = http->raw_out = false;
    begin_next(conn);
}

const rd_protocol rd_protocol_http1 = {
    sizeof(rd_http1), http1_on_open,  http1_on_data,  http1_on_eof,      http1_on_drained,
    http1_on_timeout, http1_on_close, http1_is_spare, http1_on_shutdown,
};
