/* SPDX-License-Identifier: MIT
 *
 * What HTTP/1.1 queues of an answer: head, body in its framing, refusals; see http1_responder.h.
 */
#include "protocol/http1_responder.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/apart.h"
#include "base/decimal.h"
#include "base/error.h"
#include "http/status.h"

/* The lines that the server adds to a head. HEAD_RESERVE has room for one of each. */
#define LENGTH_NAME  "content-length: "
#define CHUNKED_LINE "transfer-encoding: chunked\r\n"
#define CLOSE_LINE   "connection: close\r\n"
#define KEEP_LINE    "connection: keep-alive\r\n"
#define HEAD_RESERVE                                                                               \
    (RD_STATUS_LINE_MAX + RD_DATE_LINE_BYTES + RD_DECIMAL_MAX +                                    \
     sizeof(LENGTH_NAME CHUNKED_LINE CLOSE_LINE KEEP_LINE "\r\n\r\n"))

/* Writes all heads. It checks every byte against `end`, so a wrong count cannot become an
 * overflow. */
typedef struct rd_writer {
    char *at;
    const char *end;
} rd_writer;

static void put(rd_writer *writer, const char *bytes, size_t len) {
    if (len > (size_t)(writer->end - writer->at)) {
        fprintf(stderr, "rondo: a response head is longer than was counted\n");
        abort();
    }
    memcpy(writer->at, bytes, len);
    writer->at += len;
}

#define PUT(writer, literal) put((writer), (literal), sizeof(literal) - 1)

static void put_number(rd_writer *writer, uint64_t number) {
    char room[RD_DECIMAL_MAX];
    const rd_slice digits = rd_decimal(number, room);
    put(writer, digits.ptr, digits.len);
}

static void put_fields(rd_writer *writer, const rd_response_head *head) {
    for (size_t i = 0; i < head->count; i++) {
        put(writer, head->fields[i].name.ptr, head->fields[i].name.len);
        PUT(writer, ": ");
        put(writer, head->fields[i].value.ptr, head->fields[i].value.len);
        PUT(writer, "\r\n");
    }
}

static size_t fields_size(const rd_response_head *head) {
    size_t size = 0;
    for (size_t i = 0; i < head->count; i++) {
        size += head->fields[i].name.len + head->fields[i].value.len + 4;
    }
    return size;
}

/* Decides how the body is framed and whether the connection stays open. RFC 9112 section 6.3. */
static void decide(rd_conn *conn, rd_request *request, const rd_response_head *head) {
    rd_http1 *http = rd_http1_of(conn);
    const rd_settings *settings = conn->set->settings;
    uint64_t most = (uint64_t)settings->max_keep_alive;
    if (!request->head.keep_alive || !settings->keep_alive || rd_conn_ends(conn) || head->close ||
        !rd_http1_has_read(http) || (most > 0 && http->served + 1 >= most)) {
        http->close_after = true;
    }
    request->drop_body = request->head.method_id == RD_METHOD_HEAD ||
                         (!rd_status_has_body(head->status) && !head->raw);
    http->raw_out = head->raw;
    http->length_out = head->length >= 0 && !head->raw;
    http->output_left = http->length_out ? (uint64_t)head->length : 0;
    http->chunked_out = !http->length_out && !request->drop_body && !head->raw;
    /* On the way to the other worker the end of a body is always marked. */
    if (http->chunked_out && !rd_http_versions[request->head.version].has_chunked &&
        !rd_conn_is_forwarded(conn)) {
        http->chunked_out = false;
        http->close_after = true;
    }
    if (head->raw) http->close_after = true;
}

static void put_framing(rd_writer *writer, const rd_http1 *http, unsigned version,
                        const rd_response_head *head) {
    if (head->raw) return;
    if (http->chunked_out) {
        PUT(writer, CHUNKED_LINE);
    } else if (http->length_out && rd_status_has_body(head->status)) {
        PUT(writer, LENGTH_NAME);
        put_number(writer, (uint64_t)head->length);
        PUT(writer, "\r\n");
    }
    if (http->close_after) {
        PUT(writer, CLOSE_LINE);
    } else if (!rd_http_versions[version].keeps_alive) {
        PUT(writer, KEEP_LINE);
    }
}

static void put_head(rd_writer *writer, rd_conn *conn, unsigned version,
                     const rd_response_head *head) {
    char room[RD_STATUS_LINE_MAX];
    rd_slice line = rd_status_line(head->status, room);
    put(writer, line.ptr, line.len);
    put_fields(writer, head);
    if (head->status >= 200) {
        put_framing(writer, rd_http1_of(conn), version, head);
        if (!head->has_date) {
            put(writer, rd_date_line(&rd_http_shared_of(conn)->date), RD_DATE_LINE_BYTES);
        }
    }
    PUT(writer, "\r\n");
}

/* Writes directly into the queue's block if the head fits, which it nearly always does. */
static void queue_head(rd_conn *conn, unsigned version, const rd_response_head *head) {
    size_t most = fields_size(head) + HEAD_RESERVE;
    if (most <= RD_CHUNK_COPY_MAX) {
        char *begin = rd_outq_reserve(&conn->out, &conn->set->chunks, most);
        rd_writer writer = {begin, begin + most};
        put_head(&writer, conn, version, head);
        rd_outq_commit(&conn->out, (size_t)(writer.at - begin));
    } else {
        char *room = rd_alloc(most);
        rd_writer writer = {room, room + most};
        put_head(&writer, conn, version, head);
        rd_outq_copy(&conn->out, &conn->set->chunks, room, (size_t)(writer.at - room));
        rd_free(room);
    }
    rd_conn_mark_dirty(conn);
}

int rd_http1_inform(rd_request *request, const rd_response_head *head) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    if (!rd_http_versions[request->head.version].has_interim) return 0;
    assert(head->status < 200 && !rd_http1_of(conn)->started);
    queue_head(conn, request->head.version, head);
    return 0;
}

int rd_http1_start(rd_request *request, const rd_response_head *head) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    rd_http1 *http = rd_http1_of(conn);
    assert(!http->started);
    request->status = head->status;
    decide(conn, request, head);
    http->started = true;
    queue_head(conn, request->head.version, head);
    return 0;
}

/* ---- refusing ---- */

const rd_slice rd_http1_busy = RD_SLICE_INIT("HTTP/1.1 503 Service Unavailable\r\n" CLOSE_LINE
                                             "retry-after: 1\r\n" LENGTH_NAME "0\r\n\r\n");

/* The complete answer to a broken rule, whose code must have a status. */
static void queue_refusal(rd_conn *conn, int code, bool with_body) {
    static const rd_field fields[] = {
        {RD_SLICE_INIT("content-type"), RD_SLICE_INIT("text/plain; charset=utf-8")},
        {RD_SLICE_INIT("retry-after"),
         RD_SLICE_INIT("1")}, /* only when the client is not at fault */
    };
    rd_http1 *http = rd_http1_of(conn);
    const char *text = rd_error_text(code);
    size_t len = strlen(text);
    const int status = rd_error_status(code);
    const rd_response_head head = {.status = status,
                                   .fields = fields,
                                   .count = status == 503 ? 2 : 1,
                                   .length = (int64_t)len + 1};
    http->close_after = http->length_out = true;
    http->chunked_out = false;
    queue_head(conn, 1, &head);
    if (!with_body) return;
    rd_outq_copy(&conn->out, &conn->set->chunks, text, len);
    rd_outq_copy(&conn->out, &conn->set->chunks, "\n", 1);
}

/* Answers a broken rule and ends the connection. The answer comes after those of earlier requests
 * in the queue. */
void rd_http1_refuse(rd_conn *conn, int code) {
    rd_http1 *http = rd_http1_of(conn);
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    handler->on_refused(handler, conn, code);
    if (rd_error_class(code) != RD_ERROR_PEER) {
        rd_http1_set_input(http, RD_HTTP1_OVER);
        rd_http1_drop_request(http);
        rd_conn_finish(conn, true); /* answers of earlier requests may still be queued */
        return;
    }
    const bool has_head = http->input == RD_HTTP1_BODY || http->input == RD_HTTP1_STORING;
    const bool is_head = has_head && http->request->head.method_id == RD_METHOD_HEAD;
    rd_http1_set_input(http, RD_HTTP1_OVER);
    rd_http1_drop_request(http);
    queue_refusal(conn, code, !is_head);
    rd_conn_finish(conn, true);
}

/* ---- body ---- */

static void report_cut(rd_conn *conn, int code) {
    if (conn->set->on_cut != NULL) conn->set->on_cut(conn, code);
}

/* How many of `len` bytes may be sent. What exceeds the promised length is cut, and the connection
 * ends. */
static size_t allowed(rd_conn *conn, size_t len) {
    rd_http1 *http = rd_http1_of(conn);
    if (!http->length_out) return len;
    if (len > http->output_left) {
        if (!http->too_long) report_cut(conn, RD_ERR_ANSWER_LONG);
        http->close_after = http->too_long = true;
        len = (size_t)http->output_left;
    }
    http->output_left -= len;
    return len;
}

RD_APART static void begin_chunk(rd_conn *conn, size_t len) {
    char line[20];
    int size = snprintf(line, sizeof(line), "%zx\r\n", len);
    rd_outq_copy(&conn->out, &conn->set->chunks, line, (size_t)size);
}

static void before_part(rd_conn *conn, size_t len) {
    if (rd_http1_of(conn)->chunked_out) begin_chunk(conn, len);
}

static void after_part(rd_conn *conn, rd_request *request, size_t len) {
    if (rd_http1_of(conn)->chunked_out) rd_outq_copy(&conn->out, &conn->set->chunks, "\r\n", 2);
    request->bytes_out += len;
    if (conn->out.bytes > (size_t)conn->set->settings->output_high_bytes) conn->above_high = true;
    rd_conn_mark_dirty(conn);
}

int rd_http1_write(rd_request *request, const char *bytes, size_t len) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    if (request->drop_body) return 0;
    len = allowed(conn, len);
    if (len == 0) return 0;
    before_part(conn, len);
    rd_outq_copy(&conn->out, &conn->set->chunks, bytes, len);
    after_part(conn, request, len);
    return 0;
}

int rd_http1_borrow(rd_request *request, const char *bytes, size_t len, rd_release *release) {
    rd_conn *conn = rd_http1_client(request);
    size_t part = 0;
    if (conn != NULL && !request->drop_body) part = allowed(conn, len);
    if (part == 0) {
        release->run(release);
        return conn == NULL ? RD_ERR_CLOSED : 0;
    }
    before_part(conn, part);
    rd_outq_borrow(&conn->out, bytes, part, release);
    after_part(conn, request, part);
    return 0;
}

int rd_http1_send_file(rd_request *request, rd_file *file, off_t offset, size_t len) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    if (request->drop_body) return 0;
    len = allowed(conn, len);
    if (len == 0) return 0;
    before_part(conn, len);
    rd_outq_file(&conn->out, file, offset, len);
    after_part(conn, request, len);
    return 0;
}

int rd_http1_flush(rd_request *request) {
    rd_conn *conn = rd_http1_client(request);
    if (conn == NULL) return RD_ERR_CLOSED;
    rd_conn_ref(conn);
    rd_conn_flush(conn);
    rd_conn_unref(conn);
    return request->conn != NULL ? 0 : RD_ERR_CLOSED;
}

bool rd_http1_ends_with_connection(const rd_request *request) {
    const rd_http1 *http = rd_http1_of(request->conn);
    if (!http->started || http->raw_out || request->drop_body) return false;
    return !http->length_out && !http->chunked_out;
}

bool rd_http1_end_answer(rd_request *request) {
    rd_conn *conn = request->conn;
    const rd_http1 *http = rd_http1_of(conn);
    assert(http->started);
    if (http->length_out && http->output_left > 0 && !request->drop_body) {
        report_cut(conn, RD_ERR_ANSWER_SHORT);
        return false;
    }
    if (http->chunked_out) rd_outq_copy(&conn->out, &conn->set->chunks, "0\r\n\r\n", 5);
    rd_conn_mark_dirty(conn);
    return true;
}
