/* SPDX-License-Identifier: MIT
 *
 * Request bodies of HTTP/1.1: framing, storing, deadlines, and how they end; see http1_body.h.
 */
#include "protocol/http1_body.h"

#include <assert.h>

#include "protocol/http1_responder.h"

#define EARLY_SHARE 32 /* of max_parked_bodies: one call in 32 may begin before its body */

/* ---- the ends of a body ---- */

/* The application does not have the request. */
static void refuse(rd_conn *conn, int code) {
    rd_request *request = rd_http1_of(conn)->request;
    request->responder->refuse(request, code);
}

/* The application has the request. Its next read fails. */
static void cut_body(rd_conn *conn, int code) {
    rd_http1 *http = rd_http1_of(conn);
    assert(http->delivered);
    rd_http1_end_early_call(http);
    rd_http1_set_input(http, RD_HTTP1_OVER);
    http->close_after = true;
    http->request->body_error = code;
    rd_conn_set_deadline(conn, UINT64_MAX);
    rd_request_wake(http->request);
    rd_conn_pause_reading(conn); /* last, because it may close the connection */
}

void rd_http1_fail_body(rd_conn *conn, int code) {
    if (!rd_http1_of(conn)->delivered) {
        refuse(conn, code);
        return;
    }
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    handler->on_refused(handler, conn, code);
    cut_body(conn, code);
}

void rd_http1_give_up(rd_request *request) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return;
    rd_http1 *http = rd_http1_of(conn);
    if (!http->started && (http->input == RD_HTTP1_BODY || http->input == RD_HTTP1_STORING)) {
        cut_body(conn, RD_ERR_GIVEN_UP);
    } else {
        rd_conn_reset(conn);
    }
}

/* Hands the request to the application. */
static void deliver(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    http->delivered = true;
    rd_conn_set_deadline(conn, UINT64_MAX);
    handler->on_request(handler, http->request);
}

void rd_http1_body_complete(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    rd_http1_set_input(http, RD_HTTP1_DONE);
    http->request->body_complete = true;
    http->wants_continue = false;
    rd_http1_end_early_call(http);
    conn->awaits_answer = true;
    if (http->delivered) {
        rd_conn_set_deadline(conn, UINT64_MAX);
        rd_request_wake(http->request);
    } else {
        deliver(conn);
    }
}

void rd_http1_end_body(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    if (rd_body_is_stored(&http->request->body)) {
        rd_http1_body_complete(conn);
        return;
    }
    rd_http1_set_input(http, RD_HTTP1_STORING);
    http->wants_continue = false;
    rd_conn_set_deadline(conn, UINT64_MAX); /* the client is not late any more */
}

/* ---- a disk that is behind ---- */

static void pause_body(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    http->disk_behind = true;
    http->body_since_ms = conn->set->loop->now_ms - http->body_since_ms;
    rd_conn_set_deadline(conn, UINT64_MAX);
    rd_conn_pause_reading(conn);
}

static void resume_body(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    http->disk_behind = false;
    http->body_since_ms = conn->set->loop->now_ms - http->body_since_ms;
    rd_http1_set_timeout(conn, rd_http1_settings(conn)->body_timeout_ms);
    rd_conn_resume_reading(conn);
}

/* More of the body is in its file, or will never be. */
static void on_stored(rd_body *body) {
    const rd_request *request = RD_CONTAINER(body, rd_request, body);
    rd_conn *conn = request->conn;
    if (conn == NULL) return;
    const rd_http1 *http = rd_http1_of(conn);
    assert(http->request == request);
    const bool is_storing = http->input == RD_HTTP1_STORING;
    if (!is_storing && http->input != RD_HTTP1_BODY) return;
    if (rd_body_error(body) != 0) {
        rd_http1_fail_body(conn, rd_body_error(body));
    } else if (is_storing && rd_body_is_stored(body)) {
        rd_http1_body_complete(conn);
    } else if (http->disk_behind && !rd_body_is_full(body)) {
        resume_body(conn);
    }
}

/* ---- Expect: 100-continue ---- */

/* Asks for the body by queueing a 100, and starts its deadline. */
static void ask_for_body(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    http->wants_continue = false;
    http->body_since_ms = conn->set->loop->now_ms;
    rd_http1_set_timeout(conn, rd_http1_settings(conn)->body_timeout_ms);
    if (http->started) return; /* a 100 inside an answer would be part of its body */
    const rd_response_head head = {.status = 100};
    http->request->responder->inform(http->request, &head);
}

int rd_http1_want_body(rd_request *request) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    if (!rd_http1_of(conn)->wants_continue) return 0;
    ask_for_body(conn);
    return request->responder->flush(request);
}

/* A call before its body may occupy a thread that waits for the client. So there are few of them,
 * however many clients expect a 100. */
static bool may_call_early(const rd_conn *conn) {
    const int64_t most = rd_http1_settings(conn)->max_parked_bodies / EARLY_SHARE;
    return rd_http_shared_of(conn)->early_calls < (uint64_t)most;
}

static void call_early(rd_conn *conn) {
    rd_http1 *http = rd_http1_of(conn);
    http->wants_continue = http->early = true;
    rd_http_shared_of(conn)->early_calls++;
    deliver(conn);
}

/* ---- the beginning ---- */

static bool is_too_large(const rd_conn *conn, uint64_t size) {
    int64_t limit = rd_body_limit_of(conn, rd_http1_of((rd_conn *)conn)->request);
    return limit > 0 && size > (uint64_t)limit;
}

/* Refuses a body that will not fit into the files of all bodies before it is sent. Reserves
 * nothing: a mere number in a head would hold it. */
static bool lacks_disk(const rd_conn *conn, uint64_t size) {
    rd_ledger *ledger = &conn->set->ledger;
    if (size <= (uint64_t)rd_http1_settings(conn)->body_memory_bytes) return false;
    if (rd_ledger_has_room(ledger, RD_LEDGER_BODY_DISK, size)) return false;
    rd_ledger_refuse(ledger, RD_LEDGER_BODY_DISK);
    return true;
}

void rd_http1_begin_body(rd_conn *conn, bool more_came) {
    rd_http1 *http = rd_http1_of(conn);
    const rd_head *head = &http->request->head;
    rd_http1_set_input(http, RD_HTTP1_BODY);
    if (head->framing == RD_FRAMING_CHUNKED) {
        rd_http1_chunked_init(&http->chunked);
    } else if (head->framing == RD_FRAMING_STREAM) {
        http->length_left = UINT64_MAX;
    } else {
        http->length_left = head->content_length;
        if (is_too_large(conn, head->content_length)) {
            refuse(conn, RD_ERR_BODY_TOO_LARGE);
            return;
        }
        if (lacks_disk(conn, head->content_length)) {
            refuse(conn, RD_ERR_BODY_DISK);
            return;
        }
    }
    http->request->body.on_stored = on_stored;
    http->disk_behind = false;
    http->body_since_ms = conn->set->loop->now_ms;
    rd_http1_set_timeout(conn, rd_http1_settings(conn)->body_timeout_ms);
    if (head->framing == RD_FRAMING_LENGTH && head->content_length == 0) {
        rd_http1_body_complete(conn);
    } else if (head->expect_continue && !more_came) {
        if (may_call_early(conn)) {
            call_early(conn);
        } else {
            ask_for_body(conn);
        }
    }
}

/* ---- what comes ---- */

static bool is_too_slow(const rd_conn *conn, const rd_http1 *http) {
    const rd_settings *settings = rd_http1_settings(conn);
    uint64_t elapsed = conn->set->loop->now_ms - http->body_since_ms;
    if (settings->body_min_rate == 0) return false;
    if (elapsed < (uint64_t)settings->body_min_rate_after_ms) return false;
    return http->request->body.size * 1000 < (uint64_t)settings->body_min_rate * elapsed;
}

static bool store_body(rd_conn *conn, const char *bytes, size_t len) {
    size_t in_memory = (size_t)rd_http1_settings(conn)->body_memory_bytes;
    int code =
        rd_body_append(&rd_http1_of(conn)->request->body, conn->set->loop, bytes, len, in_memory);
    if (code != 0) rd_http1_fail_body(conn, code);
    return code == 0;
}

static size_t read_length_body(rd_conn *conn, const char *bytes, size_t len) {
    rd_http1 *http = rd_http1_of(conn);
    size_t part = len < http->length_left ? len : (size_t)http->length_left;
    if (!store_body(conn, bytes, part)) return 0;
    http->length_left -= part;
    if (http->length_left == 0) rd_http1_end_body(conn);
    return part;
}

/* Takes one step of the decoder: all of `bytes`, or up to the end of a piece of data. */
static size_t read_chunked_body(rd_conn *conn, const char *bytes, size_t len) {
    rd_http1 *http = rd_http1_of(conn);
    size_t used = 0;
    rd_slice data;
    int result = rd_http1_chunked_next(&http->chunked, &rd_http_shared_of(conn)->limits, bytes, len,
                                       &used, &data);
    if (result < 0) {
        rd_http1_fail_body(conn, result);
        return 0;
    }
    if (is_too_large(conn, rd_http1_chunked_announced(&http->chunked))) {
        rd_http1_fail_body(conn, RD_ERR_BODY_TOO_LARGE);
        return 0;
    }
    if (result == RD_CHUNKED_DATA && !store_body(conn, data.ptr, data.len)) return 0;
    if (result == RD_CHUNKED_DONE) rd_http1_end_body(conn);
    return used;
}

size_t rd_http1_read_body(rd_conn *conn, const char *bytes, size_t len) {
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
    if (http->wants_continue) { /* the client did not wait for the 100: its time begins here */
        http->wants_continue = false;
        http->body_since_ms = conn->set->loop->now_ms;
    }
    if (is_too_slow(conn, http)) {
        rd_http1_fail_body(conn, RD_ERR_BODY_TOO_SLOW);
    } else if (rd_body_is_full(&http->request->body)) {
        pause_body(conn);
    } else {
        rd_http1_set_timeout(conn, rd_http1_settings(conn)->body_timeout_ms);
    }
    return used;
}
