/* SPDX-License-Identifier: MIT
 *
 * Turns events of the message layer into events of the application, and closes the connection from
 * either side; see websocket.h.
 */
#include "endpoint/websocket.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/apart.h"
#include "system/random.h"
#include "request/handler.h"
#include "endpoint/endpoint_conn.h"
#include "endpoint/websocket_encoding.h"

#define BACKLOG_BYTES                                                                              \
    65536 /* of messages that the application has not taken: above this, reading stops */
#define SMALL_BYTES           512 /* written as one piece */
#define MESSAGE_FRAGMENTS_MAX 131072
#define PONGS_BEHIND_MAX      32 /* most pongs queued behind much output */

static rd_ws_reader *reader_of(rd_conn *conn) {
    return &((rd_websocket_input *)rd_conn_state_of(conn))->reader;
}

static rd_websocket *of_endpoint(rd_endpoint *endpoint) {
    return RD_CONTAINER(endpoint, rd_websocket, endpoint);
}

static rd_websocket *websocket_of(rd_conn *conn) {
    return of_endpoint(rd_endpoint_of(conn));
}

static void set_timeout(rd_conn *conn, int64_t ms) {
    rd_conn_set_deadline(conn, ms > 0 ? conn->set->loop->now_ms + (uint64_t)ms : UINT64_MAX);
}

static void set_phase(rd_websocket *ws, rd_websocket_phase phase) {
    assert(phase > ws->phase);
    ws->phase = (uint8_t)phase;
    ws->endpoint.is_closing = phase >= RD_WEBSOCKET_CLOSING;
}

/* NULL: permessage-deflate was not negotiated. */
static rd_ws_deflate *deflate_of(const rd_websocket *ws) {
    return ws->window_bits > 0 ? ws->endpoint.shared->deflate : NULL;
}

/* ---- sending ---- */

RD_APART static void queue_masked(rd_conn *conn, unsigned opcode, bool deflated, rd_slice payload) {
    rd_buffer frame = {0};
    rd_ws_write_masked(&frame, opcode, deflated, payload);
    rd_outq_copy(&conn->out, &conn->set->chunks, rd_buffer_ptr(&frame), rd_buffer_len(&frame));
    rd_buffer_clear(&frame);
    rd_conn_mark_dirty(conn);
}

/* Header and payload go into the same block. */
static void queue_small(rd_conn *conn, unsigned opcode, bool deflated, rd_slice payload) {
    const size_t most = RD_WS_HEADER_MAX + payload.len;
    char *frame = rd_outq_reserve(&conn->out, &conn->set->chunks, most);
    const size_t header_len = rd_ws_header_write(frame, opcode, deflated, payload.len);
    memcpy(frame + header_len, payload.ptr, payload.len);
    rd_outq_commit(&conn->out, header_len + payload.len);
}

static void queue_frame(rd_websocket *ws, unsigned opcode, bool deflated, rd_slice payload) {
    rd_conn *conn = ws->endpoint.conn;
    char header[RD_WS_HEADER_MAX];
    if (ws->is_client) {
        queue_masked(conn, opcode, deflated, payload);
        return;
    }
    if (payload.len <= SMALL_BYTES) {
        queue_small(conn, opcode, deflated, payload);
    } else {
        size_t header_len = rd_ws_header_write(header, opcode, deflated, payload.len);
        rd_outq_copy(&conn->out, &conn->set->chunks, header, header_len);
        rd_outq_copy(&conn->out, &conn->set->chunks, payload.ptr, payload.len);
    }
    rd_conn_mark_dirty(conn);
}

static void queue_message(rd_websocket *ws, unsigned opcode, rd_slice payload) {
    rd_slice packed = {NULL, 0};
    if (ws->window_bits > 0) {
        packed = rd_ws_deflate_pack(deflate_of(ws), ws->window_bits, payload);
    }
    queue_frame(ws, opcode, packed.ptr != NULL, packed.ptr != NULL ? packed : payload);
}

static void queue_close(rd_websocket *ws, unsigned code, rd_slice reason) {
    rd_conn *conn = ws->endpoint.conn;
    char frame[RD_WS_CLOSE_MAX];
    size_t len = rd_ws_close_write(frame, code == RD_WS_NO_CODE ? 0 : code, reason);
    if (ws->is_client) {
        queue_masked(conn, RD_WS_CLOSE, false, rd_slice_of(frame + 2, len - 2));
        return;
    }
    rd_outq_copy(&conn->out, &conn->set->chunks, frame, len);
    rd_conn_mark_dirty(conn);
}

static void go_on(rd_websocket *ws);

/* The server's Close goes first; the client has until the deadline to answer it. */
static void begin_close(rd_websocket *ws, unsigned code, rd_slice reason) {
    rd_conn *conn = ws->endpoint.conn;
    if (ws->phase != RD_WEBSOCKET_OPEN) return;
    set_phase(ws, RD_WEBSOCKET_CLOSING);
    queue_close(ws, code, reason);
    set_timeout(conn, conn->set->settings->close_timeout_ms);
    go_on(ws);
}

/* Nothing more is read or queued; what is queued still leaves. */
static void finish(rd_websocket *ws) {
    set_phase(ws, RD_WEBSOCKET_OVER);
    rd_conn_finish(ws->endpoint.conn, true);
}

/* Answers the client's Close, or a rule that it broke, once the application has handled everything
 * that came before and could still answer it. */
static void answer_end(rd_websocket *ws) {
    const rd_endpoint *endpoint = &ws->endpoint;
    if (ws->phase != RD_WEBSOCKET_ENDING || endpoint->source.is_handling ||
        rd_endpoint_is_due(endpoint, RD_ENDPOINT_OPEN))
        return;
    if (endpoint->messages != NULL) return;
    queue_close(ws, endpoint->close_code, rd_endpoint_reason_of(endpoint));
    finish(ws);
}

/* The client's side has ended. */
static void begin_end(rd_websocket *ws, unsigned code, rd_slice reason) {
    rd_endpoint_set_close(&ws->endpoint, code, reason);
    if (ws->phase == RD_WEBSOCKET_CLOSING) {
        finish(ws);
    } else if (ws->phase == RD_WEBSOCKET_OPEN) {
        set_phase(ws, RD_WEBSOCKET_ENDING);
        rd_endpoint_end_subscriptions(&ws->endpoint); /* a busy channel would delay the end */
        set_timeout(ws->endpoint.conn, 0);
        rd_conn_pause_reading(ws->endpoint.conn); /* may close the connection */
    }
}

/* The client broke a rule, or there is no room: whatever else it sends is ignored. */
static void fail(rd_websocket *ws, int code) {
    const char *text = rd_error_text(code);
    begin_end(ws, (unsigned)rd_error_status(code), rd_slice_of(text, strlen(text)));
}

/* Counts the memory of messages that are incomplete or not handled, and of `more`. Returns false
 * when all clients together have no room for it. */
static bool count_messages(rd_websocket *ws, size_t more) {
    const rd_endpoint *endpoint = &ws->endpoint;
    size_t size = endpoint->message_bytes + more;
    if (endpoint->conn != NULL) size += rd_ws_reader_memory(reader_of(endpoint->conn));
    return rd_ledger_keep(endpoint->shared->ledger, RD_LEDGER_MESSAGES, &ws->counted, size);
}

static void endpoint_write(rd_endpoint *endpoint, const char *bytes, size_t len, bool is_text) {
    if (!rd_endpoint_may_write(endpoint)) return;
    queue_message(of_endpoint(endpoint), is_text ? RD_WS_TEXT : RD_WS_BINARY,
                  rd_slice_of(bytes, len));
    rd_endpoint_queued(endpoint);
}

/* Sends the data alone: WebSocket messages have no fields. */
static void push_event(rd_endpoint *endpoint, const rd_named_event *event) {
    if (event->data.ptr == NULL) return;
    endpoint_write(endpoint, event->data.ptr, event->data.len, event->is_text);
}

RD_APART static void deliver_masked(rd_websocket *ws, const rd_message *message, rd_receive_as as) {
    rd_encoding *encoding = rd_ws_masked_encoding(message, as, deflate_of(ws), ws->window_bits);
    rd_message *holder = encoding->message;
    rd_endpoint_queue(&ws->endpoint, encoding);
    rd_message_unref(holder);
}

static void endpoint_deliver(rd_endpoint *endpoint, rd_message *message, rd_receive_as as) {
    rd_websocket *ws = of_endpoint(endpoint);
    if (ws->is_client) {
        deliver_masked(ws, message, as);
        return;
    }
    rd_endpoint_queue(endpoint, rd_ws_encoding(message, as, deflate_of(ws), ws->window_bits));
}

static void endpoint_close(rd_endpoint *endpoint, unsigned code, rd_slice reason) {
    rd_websocket *ws = of_endpoint(endpoint);
    if (ws->phase != RD_WEBSOCKET_OPEN) return;
    rd_endpoint_set_close(endpoint, code, reason);
    begin_close(ws, code, reason);
}

static void endpoint_handled(rd_endpoint *endpoint) {
    rd_websocket *ws = of_endpoint(endpoint);
    count_messages(ws, 0);
    if (ws->phase == RD_WEBSOCKET_ENDING) {
        answer_end(ws);
    } else if (rd_endpoint_can_read_on(endpoint, BACKLOG_BYTES)) {
        go_on(ws);
    }
}

static void endpoint_free(rd_endpoint *endpoint) {
    rd_websocket *ws = of_endpoint(endpoint);
    rd_ledger_keep(endpoint->shared->ledger, RD_LEDGER_MESSAGES, &ws->counted, 0);
    rd_free(ws);
}

static const rd_endpoint_ops ops = {
    .events = RD_ENDPOINT_EVENTS(RD_EVENTS_OF_CONNECTION),
    .write = endpoint_write,
    .event = push_event,
    .deliver = endpoint_deliver,
    .overflow = rd_endpoint_overflow,
    .close = endpoint_close,
    .handled = endpoint_handled,
    .free = endpoint_free,
};

/* ---- receiving ---- */

/* Also logged. Messages that came before are still delivered. */
static void refuse(rd_websocket *ws, int code) {
    rd_conn *conn = ws->endpoint.conn;
    rd_handler *handler = ws->endpoint.shared->handler;
    handler->on_refused(handler, conn, code);
    rd_ws_reader_clear(reader_of(conn));
    rd_conn_drop_input(conn);
    count_messages(ws, 0);
    fail(ws, code);
}

/* When clients together leave little memory, the application takes one message before the next is
 * read. */
static bool is_backlog_full(const rd_websocket *ws) {
    const size_t waiting = ws->endpoint.message_bytes;
    if (waiting >= BACKLOG_BYTES) return true;
    return waiting > 0 &&
           !rd_ledger_has_room(ws->endpoint.shared->ledger, RD_LEDGER_MESSAGES, BACKLOG_BYTES);
}

static void take_message(rd_websocket *ws, const rd_ws_event *event) {
    rd_ws_reader *reader = reader_of(ws->endpoint.conn);
    rd_endpoint_message kind = {.is_text = event->opcode == RD_WS_TEXT,
                                .is_ascii = event->is_ascii};
    ws->message_since_ms = 0;
    if (!count_messages(ws, rd_ws_reader_memory(reader) > 0 ? 0 : event->payload.len)) {
        refuse(ws, RD_ERR_WS_MESSAGES_FULL);
        return;
    }
    if (rd_ws_reader_take(reader, event, &kind.payload)) {
        rd_endpoint_add_message(&ws->endpoint, &kind);
    } else {
        rd_endpoint_add_copy(&ws->endpoint, event->payload, &kind);
    }
    if (is_backlog_full(ws)) rd_conn_pause_reading(ws->endpoint.conn);
}

/* A client that does not read its pongs need not get all of them. */
static void answer_ping(rd_websocket *ws, rd_slice payload) {
    rd_conn *conn = ws->endpoint.conn;
    if (conn->out.bytes <= RD_CHUNK_COPY_MAX) ws->pongs_behind = 0;
    if (ws->pongs_behind == PONGS_BEHIND_MAX) return;
    ws->pongs_behind++;
    queue_frame(ws, RD_WS_PONG, false, payload);
}

static void take_event(rd_websocket *ws, int kind, const rd_ws_event *event) {
    switch (kind) {
    case RD_WS_EVENT_MESSAGE:
        if (ws->phase == RD_WEBSOCKET_OPEN) take_message(ws, event);
        break;
    case RD_WS_EVENT_PING:
        if (ws->phase == RD_WEBSOCKET_OPEN) answer_ping(ws, event->payload);
        break;
    case RD_WS_EVENT_CLOSE:
        begin_end(ws, event->code, event->payload);
        break;
    default:
        break;
    }
}

static bool takes_input(const rd_websocket *ws) {
    return ws->phase == RD_WEBSOCKET_OPEN || ws->phase == RD_WEBSOCKET_CLOSING;
}

/* A message that has begun has a deadline of its own, which pings and fragments do not extend. */
static void expect_message(rd_websocket *ws) {
    rd_conn *conn = ws->endpoint.conn;
    const uint64_t timeout_ms = (uint64_t)conn->set->settings->message_timeout_ms;
    if (ws->phase != RD_WEBSOCKET_OPEN || timeout_ms == 0) return;
    if (ws->message_since_ms == 0) ws->message_since_ms = conn->set->loop->now_ms;
    const uint64_t due = ws->message_since_ms + timeout_ms;
    if (due < conn->deadlines.protocol) rd_conn_set_deadline(conn, due);
}

/* Keeps the rest of a read, and updates the count for an incomplete message. */
static void keep_rest(rd_websocket *ws, const char *bytes, size_t len) {
    rd_conn *conn = ws->endpoint.conn;
    const bool is_open = rd_ws_reader_is_open(reader_of(conn));
    if (is_open) expect_message(ws);
    if (len == 0 && !is_open && ws->counted == 0) return;
    rd_buffer_append(&conn->input, bytes, len);
    if (rd_conn_count_input(conn) && count_messages(ws, 0)) return;
    refuse(ws, RD_ERR_WS_MESSAGES_FULL);
}

/* Handles the events of these bytes, which are unmasked in place. Deflated messages of one read may
 * be some thousand times as large when inflated. So those that the application has no room for stay
 * compressed. */
static void take_bytes(rd_websocket *ws, char *bytes, size_t len) {
    rd_conn *conn = ws->endpoint.conn;
    const rd_ws_limits limits = {
        .message_bytes = (uint32_t)conn->set->settings->max_message_bytes,
        .fragments = MESSAGE_FRAGMENTS_MAX,
        .deflate = deflate_of(ws),
        .from_server = ws->is_client,
    };
    int kind = RD_WS_EVENT_MESSAGE;
    while (kind > RD_WS_EVENT_NONE && takes_input(ws) && !conn->read_paused) {
        rd_ws_event event;
        size_t used = 0;
        kind = rd_ws_feed(reader_of(conn), &limits, bytes, len, &used, &event);
        bytes += used;
        len -= used;
        if (kind < 0) {
            fail(ws, kind);
        } else {
            take_event(ws, kind, &event);
        }
    }
    if (takes_input(ws)) keep_rest(ws, bytes, len);
    answer_end(ws);
    rd_endpoint_notify(&ws->endpoint);
}

/* There is room for messages again: first for those read before, then for more from the socket. */
static void go_on(rd_websocket *ws) {
    rd_conn *conn = ws->endpoint.conn;
    rd_buffer waiting = conn->input;
    conn->input = (rd_buffer){0};
    rd_conn_count_input(conn);
    if (ws->message_since_ms != 0)
        ws->message_since_ms = conn->set->loop->now_ms; /* the server made it wait */
    rd_conn_resume_reading(conn);                       /* may close the connection */
    if (ws->endpoint.conn != NULL && rd_buffer_len(&waiting) > 0) {
        take_bytes(ws, rd_buffer_ptr(&waiting), rd_buffer_len(&waiting));
    }
    rd_buffer_clear(&waiting);
}

static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_websocket *ws = websocket_of(conn);
    if (ws->phase == RD_WEBSOCKET_OPEN) {
        ws->pinged = false;
        rd_endpoint_expect(&ws->endpoint);
    }
    take_bytes(ws, (char *)(uintptr_t)bytes, len); /* the receive buffer is writable */
}

/* ---- the life of the connection ---- */

static void on_eof(rd_conn *conn) {
    rd_websocket *ws = websocket_of(conn);
    if (ws->phase == RD_WEBSOCKET_ENDING) return; /* its answer is still to come */
    if (ws->phase != RD_WEBSOCKET_OVER) set_phase(ws, RD_WEBSOCKET_OVER);
    rd_conn_finish(conn, false);
}

static bool is_message_late(const rd_websocket *ws) {
    const rd_conn_set *set = ws->endpoint.conn->set;
    return ws->message_since_ms != 0 &&
           set->loop->now_ms >= ws->message_since_ms + (uint64_t)set->settings->message_timeout_ms;
}

/* Nothing was received for an interval: sends a ping, and after another interval closes. */
static void on_timeout(rd_conn *conn) {
    rd_websocket *ws = websocket_of(conn);
    if (ws->phase == RD_WEBSOCKET_ENDING) return; /* waits for the application */
    const bool listens = !conn->read_paused;      /* otherwise the server caused the silence */
    if (ws->phase != RD_WEBSOCKET_OPEN || (ws->pinged && listens)) {
        rd_conn_close(conn);
        return;
    }
    if (listens && is_message_late(ws)) {
        refuse(ws, RD_ERR_WS_MESSAGE_TIMEOUT);
        answer_end(ws);
        rd_endpoint_notify(&ws->endpoint);
        return;
    }
    if (listens) {
        ws->pinged = true;
        queue_frame(ws, RD_WS_PING, false, RD_SLICE(""));
    }
    rd_endpoint_expect(&ws->endpoint);
}

static void on_close(rd_conn *conn) {
    rd_websocket *ws = websocket_of(conn);
    ws->phase = RD_WEBSOCKET_OVER;
    rd_ws_reader_clear(
        reader_of(conn)); /* returns what belongs to the server, while the server exists */
    count_messages(ws, 0);
    rd_endpoint_on_close(conn);
}

/* Stops reading until the application has handled the event: a busy client would delay that. */
static void on_shutdown(rd_conn *conn) {
    if (websocket_of(conn)->phase != RD_WEBSOCKET_OPEN || rd_endpoint_ends_later(conn)) return;
    rd_conn_pause_reading(conn);
    rd_endpoint_on_shutdown(conn);
}

const rd_protocol rd_protocol_websocket = {
    .state_size = sizeof(rd_websocket_input),
    .on_open = rd_endpoint_on_open,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_drained = rd_endpoint_on_drained,
    .on_timeout = on_timeout,
    .on_close = on_close,
    .is_spare = rd_endpoint_is_spare,
    .on_shutdown = on_shutdown,
    .on_stalled = /* its subscriptions stay here */ rd_endpoint_on_stalled,
};

/* ---- its beginnings ---- */

static void need_deflate(rd_http_shared *shared) {
    if (shared->deflate != NULL) return;
    shared->deflate = rd_ws_deflate_new((size_t)shared->settings->deflate_threshold_bytes);
}

rd_endpoint *rd_websocket_new(rd_conn *conn, unsigned window_bits) {
    rd_websocket *ws = rd_alloc_zero(sizeof(*ws));
    rd_endpoint_init(&ws->endpoint, &ops, rd_http_shared_of(conn), conn);
    ws->window_bits = (uint8_t)window_bits;
    if (window_bits > 0) need_deflate(ws->endpoint.shared);
    return &ws->endpoint;
}

rd_endpoint *rd_websocket_dialing(rd_http_shared *shared) {
    rd_websocket *ws = rd_alloc_zero(sizeof(*ws));
    rd_endpoint_init_dialing(&ws->endpoint, &ops, shared);
    ws->is_client = true;
    return &ws->endpoint;
}

void rd_websocket_connected(rd_endpoint *endpoint, rd_conn *conn, const rd_ws_answer *answer) {
    rd_websocket *ws = of_endpoint(endpoint);
    ws->window_bits = answer->window_bits;
    ws->subprotocol = answer->subprotocol;
    if (ws->window_bits > 0) need_deflate(endpoint->shared);
    rd_endpoint_connected(endpoint, conn, &rd_protocol_websocket);
}

unsigned rd_websocket_subprotocol(rd_endpoint *endpoint) {
    return of_endpoint(endpoint)->subprotocol;
}
