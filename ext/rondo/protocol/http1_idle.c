/* SPDX-License-Identifier: MIT
 *
 * HTTP/1.1 between two requests; see http1_idle.h.
 */
#include "protocol/http1_idle.h"

#include "protocol/http1_body.h"

bool rd_http1_is_between_requests(const rd_http1 *http) {
    if (http->input != RD_HTTP1_HEAD) return false;
    return http->request == NULL || rd_http1_parser_is_idle(&http->parser);
}

bool rd_http1_is_idle(rd_conn *conn) {
    return rd_http1_is_between_requests(rd_http1_of(conn));
}

bool rd_http1_is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    const rd_http1 *http = rd_http1_of(conn);
    const rd_settings *settings = conn->set->settings;
    if ((http->served > 0) != kept || !rd_http1_is_between_requests(http) || conn->input.end > 0)
        return false;
    int64_t timeout_ms = kept ? settings->keep_alive_timeout_ms : settings->head_timeout_ms;
    return conn->deadlines.protocol != UINT64_MAX &&
           conn->deadlines.protocol <= since_ms + (uint64_t)timeout_ms;
}

/* A request may be on its way, so an idle connection stays open for a while. The answer to it, or
 * to a request in progress, says that it is the last. */
void rd_http1_on_shutdown(rd_conn *conn) {
    uint64_t grace_ms = (uint64_t)conn->set->settings->idle_grace_ms;
    uint64_t due = conn->set->loop->now_ms + grace_ms;
    if (!rd_http1_is_idle(conn)) return;
    if (grace_ms == 0) {
        rd_conn_finish(conn, false);
    } else if (due < conn->deadlines.protocol) {
        rd_conn_set_deadline(conn, due);
    }
}

/* ---- in another process ---- */

/* All that was read of the next request is in conn->input. */
static bool is_before_request(const rd_http1 *http) {
    return http->input == RD_HTTP1_HEAD;
}

/* Whether the request can be sent to another process: nothing of it is answered. */
static bool can_begin_anew(const rd_http1 *http) {
    return http->request != NULL && !http->started && rd_request_can_start_over(http->request);
}

static void pack_request(const rd_request *request, rd_packed *packed) {
    const rd_buffer *body = &request->body.memory;
    packed->parts[RD_PACKED_HEAD] = rd_slice_of(request->bytes, request->head_len);
    packed->parts[RD_PACKED_BODY] = rd_slice_of(rd_buffer_ptr(body), rd_buffer_len(body));
}

bool rd_http1_pack(rd_conn *conn, bool request, rd_packed *packed) {
    const rd_http1 *http = rd_http1_of(conn);
    if (request ? !can_begin_anew(http) : !is_before_request(http)) return false;
    packed->served = http->served;
    packed->begun = true;
    if (request) pack_request(http->request, packed);
    return true;
}

/* A body that had no length ended with its stream. */
static void end_stream_body(rd_conn *conn) {
    const rd_http1 *http = rd_http1_of(conn);
    if (!rd_conn_is_open(conn) || http->input != RD_HTTP1_BODY) return;
    if (http->request->head.framing == RD_FRAMING_STREAM) rd_http1_end_body(conn);
}

/* Takes the packed bytes, or reads the socket if there are none. Returns true when nothing else of
 * a request has been received. */
static bool read_on(rd_conn *conn, const rd_packed *packed) {
    bool any = false;
    for (size_t i = 0; i < RD_PACKED_PARTS && rd_conn_is_open(conn); i++) {
        if (packed->parts[i].len == 0) continue;
        rd_conn_take_data(conn, packed->parts[i].ptr, packed->parts[i].len);
        any = true;
    }
    if (!any) rd_conn_read_now(conn);
    if (packed->is_stream) end_stream_body(conn);
    if (!rd_conn_is_open(conn)) return false;
    return any ? is_before_request(rd_http1_of(conn)) : rd_http1_is_idle(conn);
}

void rd_http1_unpack(rd_conn *conn, const rd_packed *packed) {
    rd_http1 *http = rd_http1_of(conn);
    http->served = packed->served;
    http->is_stream = packed->is_stream;
    if (read_on(conn, packed) && packed->left_ms != UINT32_MAX) {
        rd_conn_set_deadline(conn, conn->set->loop->now_ms + packed->left_ms);
    }
}
