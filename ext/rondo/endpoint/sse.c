/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of an event stream, and its keep-alive comments; see sse.h.
 */
#include "endpoint/sse.h"

#include "base/alloc.h"
#include "system/random.h"
#include "request/handler.h"
#include "endpoint/endpoint_conn.h"
#include "endpoint/sse_accept.h"

#define RETRY_LEAST_MS 1000 /* a proxy may still send the client here */

typedef struct rd_sse {
    rd_endpoint endpoint;
    size_t ignored; /* bytes that the client sent after its request */
} rd_sse;

static rd_sse *of_endpoint(rd_endpoint *endpoint) {
    return RD_CONTAINER(endpoint, rd_sse, endpoint);
}

/* ---- sending ---- */

static void put(void *to, const char *bytes, size_t len) {
    rd_conn *conn = to;
    rd_outq_copy(&conn->out, &conn->set->chunks, bytes, len);
}

static void push_event(rd_endpoint *endpoint, const rd_named_event *event) {
    if (!rd_endpoint_may_write(endpoint)) return;
    rd_sse_write(event, put, endpoint->conn);
    rd_endpoint_expect(endpoint);
    rd_endpoint_queued(endpoint);
}

static void endpoint_write(rd_endpoint *endpoint, const char *bytes, size_t len, bool is_text) {
    const rd_named_event event = {.data = rd_slice_of(bytes, len), .retry_ms = -1};
    (void)is_text;
    push_event(endpoint, &event);
}

/* The form that the subscriber wants does not matter: there is only text. */
static void endpoint_deliver(rd_endpoint *endpoint, rd_message *message, rd_receive_as as) {
    rd_encoding *encoding = rd_message_encoding(message, RD_ENCODING_SSE, rd_sse_encode, NULL);
    (void)as;
    if (encoding == NULL) return;
    rd_endpoint_expect(endpoint);
    rd_endpoint_queue(endpoint, encoding);
}

static void endpoint_handled(rd_endpoint *endpoint) {
    if (endpoint->hold != NULL) endpoint->hold->settle(endpoint->hold, false);
}

static void endpoint_close(rd_endpoint *endpoint, unsigned code, rd_slice reason) {
    if (endpoint->hold != NULL) endpoint->hold->settle(endpoint->hold, true);
    if (endpoint->conn != NULL) rd_endpoint_close(endpoint, code, reason);
}

static void endpoint_free(rd_endpoint *endpoint) {
    rd_free(of_endpoint(endpoint));
}

static const rd_endpoint_ops ops = {
    .events = RD_ENDPOINT_EVENTS(RD_EVENTS_OF_CONNECTION),
    .has_ids = true,
    .write = endpoint_write,
    .event = push_event,
    .deliver = endpoint_deliver,
    .overflow = rd_endpoint_overflow,
    .close = endpoint_close,
    .handled = endpoint_handled,
    .free = endpoint_free,
};

/* ---- the life of the connection ---- */

/* Another request, or anything else: it gets no answer. */
static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_sse *sse = of_endpoint(rd_endpoint_of(conn));
    (void)bytes;
    sse->ignored += len;
    if (sse->ignored <= (size_t)conn->set->settings->max_pipeline_bytes) return;
    rd_endpoint_set_close(&sse->endpoint, 1002, RD_SLICE("an event stream takes no input"));
    rd_conn_close(conn);
}

static void on_eof(rd_conn *conn) {
    rd_endpoint_finish(rd_endpoint_of(conn), false);
}

/* Nothing was sent for an interval. A comment shows proxies that the stream is alive, and shows the
 * server if its client has gone. */
static void on_timeout(rd_conn *conn) {
    if (conn->out.bytes == 0) {
        put(conn, ":\n\n", 3);
        rd_conn_mark_dirty(conn);
    }
    rd_endpoint_expect(rd_endpoint_of(conn));
}

/* A random time, so that clients scatter even if their ends could not be spread. */
static int64_t random_retry_ms(int64_t spread_ms) {
    uint64_t bits;
    rd_random(&bits, sizeof(bits));
    return RETRY_LEAST_MS + (int64_t)(bits % ((uint64_t)spread_ms + 1));
}

/* Before the application is told, so that it may send another one. Nothing is added to what a
 * client does not read. */
static void send_retry(rd_endpoint *endpoint) {
    const rd_settings *settings = endpoint->shared->settings;
    const bool has_room = endpoint->conn->out.memory <= (size_t)settings->max_pending_bytes;
    if (settings->drain_spread_ms == 0 || endpoint->is_closing || !has_room) return;
    const rd_named_event event = {.retry_ms = random_retry_ms(settings->drain_spread_ms)};
    rd_sse_write(&event, put, endpoint->conn);
    rd_endpoint_queued(endpoint);
}

static void on_shutdown(rd_conn *conn) {
    if (rd_endpoint_ends_later(conn)) return;
    send_retry(rd_endpoint_of(conn));
    rd_endpoint_on_shutdown(conn);
}

const rd_protocol rd_protocol_sse = {
    .state_size = sizeof(rd_endpoint *),
    .on_open = rd_endpoint_on_open,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_drained = rd_endpoint_on_drained,
    .on_timeout = on_timeout,
    .on_sent = rd_endpoint_on_sent,
    .on_close = rd_endpoint_on_close,
    .is_spare = rd_endpoint_is_spare,
    .on_shutdown = on_shutdown,
    .on_stalled = rd_endpoint_on_stalled,
};

/* ---- the upgrade ---- */

/* A request with a body is refused, because some of the body may still be on its way. */
bool rd_sse_is_asked(const rd_request *request) {
    const rd_head *head = &request->head;
    if (head->method_id != RD_METHOD_GET || rd_head_has_open_body(head)) return false;
    return head->content_length == 0 && rd_sse_is_accepted(head, request->bytes);
}

static const rd_slice dropped[] = {
    RD_SLICE_INIT("connection"),     RD_SLICE_INIT("keep-alive"),
    RD_SLICE_INIT("upgrade"),        RD_SLICE_INIT("trailer"),
    RD_SLICE_INIT("content-length"), RD_SLICE_INIT("transfer-encoding"),
    RD_SLICE_INIT("content-type"),   RD_SLICE_INIT("content-encoding"),
};

static const rd_field own[] = {
    {RD_SLICE_INIT("content-type"), RD_SLICE_INIT("text/event-stream")},
    {RD_SLICE_INIT("cache-control"), RD_SLICE_INIT("no-cache")},
    {RD_SLICE_INIT("x-accel-buffering"), RD_SLICE_INIT("no")},
    {RD_SLICE_INIT("connection"), RD_SLICE_INIT("close")},
};

rd_endpoint *rd_sse_upgrade(rd_request *request, const rd_field *fields, size_t count) {
    const rd_endpoint_answer answer = {
        .status = 200,
        .dropped = dropped,
        .dropped_count = sizeof(dropped) / sizeof(dropped[0]),
        .own = own,
        .own_count = sizeof(own) / sizeof(own[0]),
    };
    if (rd_endpoint_answer_send(request, &answer, fields, count) < 0) return NULL;
    rd_sse *sse = rd_alloc_zero(sizeof(*sse));
    rd_endpoint_init(&sse->endpoint, &ops, rd_http_shared_of(request->conn), request->conn);
    return rd_endpoint_begin(request, &sse->endpoint, &rd_protocol_sse);
}
