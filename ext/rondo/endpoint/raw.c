/* SPDX-License-Identifier: MIT
 *
 * Bytes in, bytes out, and the end of either side; see raw.h.
 */
#include "endpoint/raw.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "endpoint/endpoint_conn.h"
#include "request/handler.h"

/* Of messages that the application has not taken: above this, reading stops. */
#define BACKLOG_BYTES RD_RAW_MESSAGE_MAX

/* Counts so many bytes for what the client has sent. Returns false when all clients together have
 * no room for them. */
static bool keep(rd_endpoint *endpoint, size_t bytes) {
    size_t counted = endpoint->counted;
    const bool has_room =
        rd_ledger_keep(endpoint->shared->ledger, RD_LEDGER_MESSAGES, &counted, bytes);
    endpoint->counted = (uint32_t)counted; /* at most twice the backlog, and max_pending_bytes */
    return has_room;
}

/* Counts the memory of messages that wait. */
static bool count_messages(rd_endpoint *endpoint) {
    return keep(endpoint, endpoint->message_bytes);
}

/* ---- sending ---- */

static void endpoint_write(rd_endpoint *endpoint, const char *bytes, size_t len, bool is_text) {
    (void)is_text;
    if (!rd_endpoint_may_write(endpoint) || len == 0) return;
    rd_conn *conn = endpoint->conn;
    rd_outq_copy(&conn->out, &conn->set->chunks, bytes, len);
    rd_endpoint_expect(endpoint);
    rd_endpoint_queued(endpoint);
}

/* Sends the data alone: there are no fields. */
static void push_event(rd_endpoint *endpoint, const rd_named_event *event) {
    if (event->data.ptr == NULL) return;
    endpoint_write(endpoint, event->data.ptr, event->data.len, event->is_text);
}

static int encode(const rd_message *message, void *with, rd_buffer *out) {
    const rd_slice payload = rd_message_payload(message);
    (void)with;
    rd_buffer_append(out, payload.ptr, payload.len);
    return 0;
}

/* The form that the subscriber wants does not matter: bytes are bytes. */
static void endpoint_deliver(rd_endpoint *endpoint, rd_message *message, rd_receive_as as) {
    (void)as;
    if (message->payload_len == 0) return;
    rd_endpoint_expect(endpoint);
    rd_endpoint_queue(endpoint, rd_message_encoding(message, RD_ENCODING_RAW, encode, NULL));
}

/* Ends after the client, once the application has handled everything that came before and could
 * still answer it. */
static void answer_end(rd_endpoint *endpoint) {
    if (!endpoint->has_ended || endpoint->is_closing || endpoint->source.is_handling) return;
    if (rd_endpoint_is_due(endpoint, RD_ENDPOINT_OPEN)) return;
    if (endpoint->messages == NULL) rd_endpoint_finish(endpoint, false);
}

static void endpoint_handled(rd_endpoint *endpoint) {
    count_messages(endpoint);
    if (endpoint->is_closing) return;
    if (endpoint->has_ended) {
        answer_end(endpoint);
    } else if (rd_endpoint_can_read_on(endpoint, BACKLOG_BYTES)) {
        rd_conn_resume_reading(endpoint->conn);
    }
}

static void endpoint_free(rd_endpoint *endpoint) {
    keep(endpoint, 0);
    rd_free(endpoint);
}

static const rd_endpoint_ops ops = {
    .events = RD_ENDPOINT_EVENTS(RD_EVENTS_OF_CONNECTION),
    .write = endpoint_write,
    .event = push_event,
    .deliver = endpoint_deliver,
    .overflow = rd_endpoint_overflow,
    .close = rd_endpoint_close,
    .handled = endpoint_handled,
    .free = endpoint_free,
};

/* ---- receiving ---- */

/* When clients together leave little memory, the application takes what waits before more is read.
 */
static bool is_backlog_full(const rd_endpoint *endpoint) {
    if (endpoint->message_bytes >= BACKLOG_BYTES) return true;
    return endpoint->message_bytes > 0 &&
           !rd_ledger_has_room(endpoint->shared->ledger, RD_LEDGER_MESSAGES, BACKLOG_BYTES);
}

/* Also logged. What came before is still delivered. */
static void refuse(rd_endpoint *endpoint, int code) {
    rd_handler *handler = endpoint->shared->handler;
    handler->on_refused(handler, endpoint->conn, code);
    rd_endpoint_close(endpoint, (unsigned)rd_error_status(code), RD_SLICE("no memory"));
}

static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_endpoint *endpoint = rd_endpoint_of(conn);
    rd_endpoint_expect(endpoint);
    rd_endpoint_add_bytes(endpoint, bytes, len, RD_RAW_MESSAGE_MAX);
    rd_endpoint_notify(endpoint);
    if (!count_messages(endpoint)) {
        refuse(endpoint, RD_ERR_WS_MESSAGES_FULL);
    } else if (is_backlog_full(endpoint)) {
        rd_conn_pause_reading(conn); /* may close it, which frees an unclaimed endpoint */
    }
}

/* ---- the life of the connection ---- */

static rd_endpoint *new_endpoint(rd_conn *conn) {
    rd_endpoint *endpoint = rd_alloc(sizeof(*endpoint));
    rd_endpoint_init(endpoint, &ops, rd_http_shared_of(conn), conn);
    return endpoint;
}

/* An upgraded connection has its endpoint already. */
static void on_open(rd_conn *conn) {
    if (rd_endpoint_of(conn) == NULL) {
        rd_endpoint *endpoint = new_endpoint(conn);
        *(rd_endpoint **)rd_conn_state_of(conn) = endpoint;
        endpoint->index = RD_ENDPOINT_NOBODY;
        rd_endpoint_expect(endpoint);
    }
    rd_endpoint_notify(rd_endpoint_of(conn));
}

static void on_eof(rd_conn *conn) {
    rd_endpoint *endpoint = rd_endpoint_of(conn);
    rd_endpoint_set_close(endpoint, RD_ENDPOINT_NO_CODE, RD_SLICE(""));
    endpoint->has_ended = true;
    rd_endpoint_end_subscriptions(endpoint); /* a busy channel would delay the end */
    rd_conn_set_deadline(conn, UINT64_MAX);
    answer_end(endpoint);
}

/* Neither side has sent anything for an interval. */
static void on_timeout(rd_conn *conn) {
    rd_endpoint *endpoint = rd_endpoint_of(conn);
    if (endpoint->has_ended) return; /* waits for the application */
    if (endpoint->wants_ping) rd_endpoint_set_due(endpoint, RD_ENDPOINT_PING);
    rd_endpoint_expect(endpoint);
    rd_endpoint_notify(endpoint);
}

/* Whether a connection that the application does not know yet is shown to it although it is closed:
 * it has said something and ended in good order. It counts in full, because clients may open and
 * close as many as they like. */
static bool is_worth_showing(rd_endpoint *endpoint) {
    rd_handler *handler = endpoint->shared->handler;
    if (!endpoint->has_ended || endpoint->messages == NULL) return false;
    if (keep(endpoint, endpoint->message_bytes + sizeof(*endpoint) + RD_LEDGER_FREE)) return true;
    handler->on_refused(handler, endpoint->conn, RD_ERR_WS_MESSAGES_FULL);
    return false;
}

static void on_close(rd_conn *conn) {
    rd_endpoint *endpoint = rd_endpoint_of(conn);
    const bool is_unknown =
        endpoint->is_unclaimed && rd_endpoint_is_due(endpoint, RD_ENDPOINT_OPEN);
    if (is_unknown && !is_worth_showing(endpoint)) {
        rd_endpoint_withdrawn(endpoint);
    } else {
        rd_endpoint_closed(endpoint);
    }
}

/* Stops reading until the application has handled the event: a busy client would delay that. */
static void on_shutdown(rd_conn *conn) {
    if (rd_endpoint_of(conn)->has_ended || rd_endpoint_ends_later(conn)) return;
    rd_conn_pause_reading(conn);
    rd_endpoint_on_shutdown(conn);
}

const rd_protocol rd_protocol_raw = {
    .state_size = sizeof(rd_endpoint *),
    .on_open = on_open,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_drained = rd_endpoint_on_drained,
    .on_timeout = on_timeout,
    .on_sent = rd_endpoint_on_sent,
    .on_close = on_close,
    .is_spare = rd_endpoint_is_spare,
    .on_shutdown = on_shutdown,
    .on_stalled = rd_endpoint_on_stalled,
};

/* ---- its beginnings ---- */

void rd_raw_set_maker(rd_conn *conn, uint32_t number) {
    rd_endpoint *endpoint = rd_endpoint_of(conn);
    assert(conn->protocol == &rd_protocol_raw);
    endpoint->index = number;
    endpoint->is_unclaimed = true;
}

rd_endpoint *rd_raw_open(rd_conn_set *set, int fd, const rd_address *peer) {
    rd_conn *conn = rd_conn_open(set, fd, &rd_transport_tcp, &rd_protocol_raw, peer);
    rd_endpoint *endpoint = rd_endpoint_of(conn);
    rd_endpoint_ref(endpoint);
    return endpoint;
}

rd_endpoint *rd_raw_dialing(rd_http_shared *shared) {
    rd_endpoint *endpoint = rd_alloc(sizeof(*endpoint));
    rd_endpoint_init_dialing(endpoint, &ops, shared);
    return endpoint;
}

/* A part of the request may still be on its way, or on its way to a disk. */
bool rd_raw_is_possible(const rd_request *request) {
    rd_conn *conn = request->conn;
    if (conn == NULL || !rd_conn_is_open(conn)) return false;
    return request->body_complete && conn->source.fd >= 0 && !rd_conn_is_forwarded(conn);
}

static const rd_slice dropped[] = {
    RD_SLICE_INIT("content-length"),
    RD_SLICE_INIT("transfer-encoding"),
    RD_SLICE_INIT("trailer"),
};

static const rd_field own[] = {{RD_SLICE_INIT("connection"), RD_SLICE_INIT("close")}};

rd_endpoint *rd_raw_upgrade(rd_request *request, int status, const rd_field *fields, size_t count) {
    const rd_endpoint_answer answer = {
        .status = status,
        .dropped = dropped,
        .dropped_count = sizeof(dropped) / sizeof(dropped[0]),
        .own = own,
        .own_count = status == 101 ? 0 : 1, /* 101 has an own meaning of this field */
    };
    if (!rd_raw_is_possible(request)) return NULL;
    if (rd_endpoint_answer_send(request, &answer, fields, count) < 0) return NULL;
    rd_conn *conn = request->conn;
    rd_endpoint *endpoint = rd_endpoint_begin(request, new_endpoint(conn), &rd_protocol_raw);
    if (endpoint->conn != NULL && conn->read_eof) on_eof(conn); /* nothing will report it again */
    return endpoint;
}
