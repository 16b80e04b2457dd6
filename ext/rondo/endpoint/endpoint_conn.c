/* SPDX-License-Identifier: MIT
 *
 * From a request to an upgraded connection, and what all such connections do; see endpoint_conn.h.
 */
#include "endpoint/endpoint_conn.h"

#include "base/alloc.h"
#include "http/field_list.h"
#include "request/handler.h"
#include "transport/parting.h"

/* ---- sending ---- */

void rd_endpoint_overflow(rd_endpoint *endpoint) {
    rd_endpoint_set_close(endpoint, 1013, RD_SLICE("too slow"));
    rd_conn_close(endpoint->conn); /* a Close would wait behind the output that the client does not
                                    * read */
}

/* A burst to a client that reads is not a reason to close it. */
bool rd_endpoint_may_write(rd_endpoint *endpoint) {
    rd_conn *conn = endpoint->conn;
    const size_t most = (size_t)conn->set->settings->max_pending_bytes;
    if (endpoint->is_closing) return false;
    if (conn->out.memory <= most) return true;
    rd_endpoint_relieve(endpoint, most);
    if (endpoint->conn != NULL && conn->out.memory > most) rd_endpoint_overflow(endpoint);
    return endpoint->conn != NULL;
}

void rd_endpoint_queued(rd_endpoint *endpoint) {
    endpoint->conn->notify_drained = endpoint->wants_drained;
    rd_conn_mark_dirty(endpoint->conn);
}

void rd_endpoint_finish(rd_endpoint *endpoint, bool linger) {
    endpoint->is_closing = true;
    rd_conn_finish(endpoint->conn, linger);
}

void rd_endpoint_close(rd_endpoint *endpoint, unsigned code, rd_slice reason) {
    rd_endpoint_set_close(endpoint, code, reason);
    rd_endpoint_finish(endpoint, true);
}

bool rd_endpoint_can_read_on(const rd_endpoint *endpoint, size_t backlog) {
    return endpoint->message_bytes < backlog / 2 && endpoint->conn->read_paused &&
           !rd_endpoint_is_due(endpoint, RD_ENDPOINT_SHUTDOWN);
}

/* ---- the life of the connection ---- */

void rd_endpoint_on_open(rd_conn *conn) {
    rd_endpoint_notify(rd_endpoint_of(conn));
}

void rd_endpoint_on_drained(rd_conn *conn) {
    rd_endpoint *endpoint = rd_endpoint_of(conn);
    if (endpoint->is_closing || conn->out.bytes > 0) return;
    if (endpoint->wants_drained) rd_endpoint_set_due(endpoint, RD_ENDPOINT_DRAINED);
    rd_endpoint_notify(endpoint);
}

void rd_endpoint_on_close(rd_conn *conn) {
    rd_endpoint_closed(rd_endpoint_of(conn));
}

static void ignore(rd_conn *conn) {
    (void)conn;
}

/* Of a connection that lingers and has no endpoint any more. */
static const rd_protocol without_endpoint = {
    .on_close = ignore,
    .is_spare = rd_endpoint_is_spare,
    .on_shutdown = ignore,
};

void rd_endpoint_on_sent(rd_conn *conn) {
    conn->protocol->on_close(conn);
    conn->protocol = &without_endpoint;
}

bool rd_endpoint_is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    (void)conn, (void)kept, (void)since_ms;
    return false;
}

/* Outgoing connections are of this process, whose other end expects no crowd. */
bool rd_endpoint_ends_later(rd_conn *conn) {
    rd_endpoint *endpoint = rd_endpoint_of(conn);
    if (endpoint->ends_later) return !rd_parting_is_ending(conn);
    if (endpoint->is_outgoing || endpoint->is_closing) return false;
    endpoint->ends_later = rd_parting_add(conn);
    return endpoint->ends_later;
}

void rd_endpoint_on_shutdown(rd_conn *conn) {
    rd_endpoint *endpoint = rd_endpoint_of(conn);
    if (endpoint->is_closing) return;
    rd_endpoint_set_due(endpoint, RD_ENDPOINT_SHUTDOWN);
    rd_endpoint_notify(endpoint);
}

void rd_endpoint_on_stalled(rd_conn *conn) {
    rd_endpoint_set_close(rd_endpoint_of(conn), 1013, RD_SLICE("too slow"));
}

/* ---- the upgrade ---- */

static bool is_dropped(const rd_endpoint_answer *answer, rd_slice name) {
    for (size_t i = 0; i < answer->dropped_count; i++) {
        if (rd_field_is_word(name, answer->dropped[i])) return true;
    }
    return false;
}

static bool has_field(const rd_field *fields, size_t count, rd_slice name) {
    for (size_t i = 0; i < count; i++) {
        if (rd_field_is_word(fields[i].name, name)) return true;
    }
    return false;
}

/* Writes to `all`, which has room for the fields of both. */
static size_t join_fields(const rd_endpoint_answer *answer, const rd_field *fields, size_t count,
                          rd_field *all) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_dropped(answer, fields[i].name)) all[kept++] = fields[i];
    }
    size_t len = kept;
    for (size_t i = 0; i < answer->own_count; i++) {
        if (!has_field(all, kept, answer->own[i].name)) all[len++] = answer->own[i];
    }
    return len;
}

int rd_endpoint_answer_send(rd_request *request, const rd_endpoint_answer *answer,
                            const rd_field *fields, size_t count) {
    rd_field *all = rd_alloc((count + answer->own_count) * sizeof(*all));
    size_t len = join_fields(answer, fields, count, all);
    const rd_response_head head = {.status = answer->status,
                                   .fields = all,
                                   .count = len,
                                   .length = -1,
                                   .has_date = has_field(all, len, RD_SLICE("date")),
                                   .raw = true};
    int result = request->responder->start(request, &head);
    rd_free(all);
    return result;
}

/* The state of the connection is zeroed. */
static void begin(rd_conn *conn, rd_endpoint *endpoint, const rd_protocol *protocol) {
    *(rd_endpoint **)rd_conn_state_of(conn) = endpoint;
    rd_endpoint_expect(endpoint);
    protocol->on_open(conn);
    rd_buffer ahead = conn->input;
    conn->input = (rd_buffer){0};
    rd_conn_count_input(conn);
    if (rd_buffer_len(&ahead) > 0)
        protocol->on_data(conn, rd_buffer_ptr(&ahead), rd_buffer_len(&ahead));
    rd_buffer_clear(&ahead);
    if (conn->set->stopping && rd_conn_is_open(conn)) protocol->on_shutdown(conn);
}

rd_endpoint *rd_endpoint_begin(rd_request *request, rd_endpoint *endpoint,
                               const rd_protocol *protocol) {
    rd_conn *conn = request->conn;
    request->responder->switch_to(request, protocol);
    rd_endpoint_ref(endpoint);
    begin(conn, endpoint, protocol);
    return endpoint;
}

void rd_endpoint_connected(rd_endpoint *endpoint, rd_conn *conn, const rd_protocol *protocol) {
    rd_conn_switch(conn, protocol);
    endpoint->conn = conn;
    endpoint->is_dialing = false;
    rd_endpoint_set_due(endpoint, RD_ENDPOINT_OPEN);
    begin(conn, endpoint, protocol);
}
