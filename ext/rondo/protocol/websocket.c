/* SPDX-License-Identifier: MIT
 *
 * From events of the message layer to events of the application, and the two ends of a connection;
 * see websocket.h.
 */
#include "protocol/websocket.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "http/handler.h"
#include "protocol/http1.h"
#include "protocol/http1_field.h"
#include "protocol/websocket_handshake.h"

#define BACKLOG_BYTES                                                                              \
    65536 /* of messages that the application has not taken: then reading stops                    \
           */
#define FIELDS_MAX            64
#define MESSAGE_FRAGMENTS_MAX 131072

static rd_websocket *websocket_of(rd_conn *conn) {
    return *(rd_websocket **)rd_conn_state_of(conn);
}

static rd_websocket *of_push(rd_push *push) {
    return RD_CONTAINER(push, rd_websocket, push);
}

static void set_timeout(rd_conn *conn, int64_t ms) {
    rd_conn_set_deadline(conn, ms > 0 ? conn->set->loop->now_ms + (uint64_t)ms : UINT64_MAX);
}

static void set_phase(rd_websocket *ws, rd_websocket_phase phase) {
    assert(phase > ws->phase);
    ws->phase = (uint8_t)phase;
    ws->push.closing = phase >= RD_WEBSOCKET_CLOSING;
}

/* ---- sending ---- */

static void queue_frame(rd_conn *conn, unsigned opcode, const char *bytes, size_t len) {
    char header[RD_WS_HEADER_MAX];
    size_t header_len = rd_ws_header_write(header, opcode, false, len);
    rd_outq_copy(&conn->out, &conn->set->chunks, header, header_len);
    rd_outq_copy(&conn->out, &conn->set->chunks, bytes, len);
    rd_conn_mark_dirty(conn);
}

static void queue_close(rd_conn *conn, unsigned code, rd_slice reason) {
    char frame[RD_WS_CLOSE_MAX];
    size_t len = rd_ws_close_write(frame, code == RD_WS_NO_CODE ? 0 : code, reason);
    rd_outq_copy(&conn->out, &conn->set->chunks, frame, len);
    rd_conn_mark_dirty(conn);
}

/* Our Close goes first; the peer has until the deadline to answer it. */
static void begin_close(rd_websocket *ws, unsigned code, rd_slice reason) {
    rd_conn *conn = ws->push.conn;
    if (ws->phase != RD_WEBSOCKET_OPEN) return;
    set_phase(ws, RD_WEBSOCKET_CLOSING);
    queue_close(conn, code, reason);
    rd_conn_resume_reading(conn);
    set_timeout(conn, conn->set->settings->close_timeout_ms);
}

/* Nothing more is read or sent; what is queued still leaves. */
static void finish(rd_websocket *ws) {
    set_phase(ws, RD_WEBSOCKET_OVER);
    rd_conn_finish(ws->push.conn, true);
}

/* The answer to the peer's Close, or to a rule it broke, once the application has been told of
 * everything that came before and could still answer it. */
static void answer_end(rd_websocket *ws) {
    const rd_push *push = &ws->push;
    if (ws->phase != RD_WEBSOCKET_ENDING || push->is_told || push->open_due) return;
    if (!rd_list_is_empty(&push->messages)) return;
    queue_close(push->conn, push->close_code, rd_push_reason(push));
    finish(ws);
}

/* The peer's side is over. */
static void begin_end(rd_websocket *ws, unsigned code, rd_slice reason) {
    rd_push_set_close(&ws->push, code, reason);
    if (ws->phase == RD_WEBSOCKET_CLOSING) {
        finish(ws);
    } else if (ws->phase == RD_WEBSOCKET_OPEN) {
        set_phase(ws, RD_WEBSOCKET_ENDING);
        rd_conn_pause_reading(ws->push.conn);
        set_timeout(ws->push.conn, 0);
    }
}

static void push_overflow(rd_push *push) {
    rd_push_set_close(push, 1013, RD_SLICE("too slow"));
    rd_conn_close(push->conn); /* a Close would wait behind what the client does not read */
}

static void push_write(rd_push *push, const char *bytes, size_t len, bool is_text) {
    rd_conn *conn = push->conn;
    if (push->closing) return;
    queue_frame(conn, is_text ? RD_WS_TEXT : RD_WS_BINARY, bytes, len);
    conn->tell_empty = push->wants_drained;
    if (conn->out.bytes <= (size_t)conn->set->settings->max_pending_bytes) return;
    rd_conn_flush(conn); /* it may take some at once */
    if (push->conn == NULL) return;
    if (conn->out.bytes > (size_t)conn->set->settings->max_pending_bytes) push_overflow(push);
}

static int encode(const rd_message *message, unsigned opcode, rd_buffer *out) {
    char header[RD_WS_HEADER_MAX];
    rd_buffer_append(out, header, rd_ws_header_write(header, opcode, false, message->payload_len));
    const rd_slice payload = rd_message_payload(message);
    rd_buffer_append(out, payload.ptr, payload.len);
    return 0;
}

/* For those who want text whatever it was published as. */
static bool is_text_possible(const rd_message *message) {
    rd_utf8 utf8 = {0};
    const rd_slice payload = rd_message_payload(message);
    if (message->is_text) return true;
    return rd_utf8_feed(&utf8, payload.ptr, payload.len) == payload.len &&
           rd_utf8_is_boundary(&utf8);
}

static int encode_text(const rd_message *message, void *with, rd_buffer *out) {
    (void)with;
    return is_text_possible(message) ? encode(message, RD_WS_TEXT, out) : -1;
}

static int encode_binary(const rd_message *message, void *with, rd_buffer *out) {
    (void)with;
    return encode(message, RD_WS_BINARY, out);
}

static void push_publish(rd_push *push, rd_message *message, rd_receive_as as) {
    bool is_text = as == RD_AS_SENT ? message->is_text : as == RD_AS_TEXT;
    rd_encoding *encoding = NULL;
    if (is_text) encoding = rd_message_encoding(message, RD_ENCODING_WS_TEXT, encode_text, NULL);
    if (encoding == NULL) {
        encoding = rd_message_encoding(message, RD_ENCODING_WS_BINARY, encode_binary, NULL);
    }
    rd_push_queue(push, encoding);
}

static void push_close(rd_push *push, unsigned code, rd_slice reason) {
    rd_websocket *ws = of_push(push);
    if (ws->phase != RD_WEBSOCKET_OPEN) return;
    rd_push_set_close(push, code, reason);
    begin_close(ws, code, reason);
}

static void push_told(rd_push *push) {
    rd_websocket *ws = of_push(push);
    if (ws->phase == RD_WEBSOCKET_ENDING) {
        answer_end(ws);
    } else if (push->message_bytes < BACKLOG_BYTES / 2 && push->conn->read_paused) {
        rd_conn_resume_reading(push->conn);
    }
}

static void push_free(rd_push *push) {
    rd_websocket *ws = of_push(push);
    rd_ws_reader_clear(&ws->reader);
    rd_free(ws);
}

static const rd_push_ops ops = {
    .name = "websocket",
    .write = push_write,
    .publish = push_publish,
    .overflow = push_overflow,
    .close = push_close,
    .told = push_told,
    .free = push_free,
};

/* ---- receiving ---- */

static void take_message(rd_websocket *ws, const rd_ws_event *event) {
    rd_buffer payload = {0};
    rd_ws_reader_take(&ws->reader, event, &payload);
    rd_push_add_message(&ws->push, &payload, event->opcode == RD_WS_TEXT);
    if (ws->push.message_bytes >= BACKLOG_BYTES) rd_conn_pause_reading(ws->push.conn);
}

static void take_event(rd_websocket *ws, int kind, const rd_ws_event *event) {
    switch (kind) {
    case RD_WS_EVENT_MESSAGE:
        if (ws->phase == RD_WEBSOCKET_OPEN) take_message(ws, event);
        break;
    case RD_WS_EVENT_PING:
        if (ws->phase != RD_WEBSOCKET_OPEN) break;
        /* Whoever does not read pongs need not get them all: RFC 6455 section 5.5.3. */
        if (ws->push.conn->out.bytes > RD_CHUNK_COPY_MAX) break;
        queue_frame(ws->push.conn, RD_WS_PONG, event->payload.ptr, event->payload.len);
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

static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_websocket *ws = websocket_of(conn);
    char *rest = (char *)(uintptr_t)bytes; /* the receive buffer: unmasked in place */
    int kind = RD_WS_EVENT_MESSAGE;
    if (ws->phase == RD_WEBSOCKET_OPEN) {
        ws->pinged = false;
        rd_push_expect(&ws->push);
    }
    while (kind > RD_WS_EVENT_NONE && takes_input(ws)) {
        rd_ws_event event;
        size_t used = 0;
        kind = rd_ws_feed(&ws->reader, &ws->limits, rest, len, &used, &event);
        rest += used;
        len -= used;
        if (kind < 0) {
            const char *text = rd_error_text(kind);
            begin_end(ws, (unsigned)rd_error_status(kind), rd_slice_of(text, strlen(text)));
        } else {
            take_event(ws, kind, &event);
        }
    }
    answer_end(ws);
    rd_push_tell(&ws->push);
}

/* ---- the life of the connection ---- */

static void on_open(rd_conn *conn) {
    rd_push_tell(&websocket_of(conn)->push);
}

static void on_eof(rd_conn *conn) {
    rd_websocket *ws = websocket_of(conn);
    if (ws->phase == RD_WEBSOCKET_ENDING) return; /* its answer is to come */
    if (ws->phase != RD_WEBSOCKET_OVER) set_phase(ws, RD_WEBSOCKET_OVER);
    rd_conn_finish(conn, false);
}

static void on_drained(rd_conn *conn) {
    rd_websocket *ws = websocket_of(conn);
    if (ws->phase != RD_WEBSOCKET_OPEN || conn->out.bytes > 0) return;
    ws->push.drained_due = ws->push.wants_drained;
    rd_push_tell(&ws->push);
}

/* Nothing was heard for an interval: a ping, and after another one the end. */
static void on_timeout(rd_conn *conn) {
    rd_websocket *ws = websocket_of(conn);
    if (ws->phase == RD_WEBSOCKET_ENDING) return; /* waits for the application */
    if (ws->phase != RD_WEBSOCKET_OPEN || ws->pinged) {
        rd_conn_close(conn);
        return;
    }
    ws->pinged = true;
    queue_frame(conn, RD_WS_PING, "", 0);
    rd_push_expect(&ws->push);
}

static void on_close(rd_conn *conn) {
    rd_websocket *ws = websocket_of(conn);
    ws->phase = RD_WEBSOCKET_OVER;
    rd_push_closed(&ws->push);
}

static bool is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    (void)conn, (void)kept, (void)since_ms;
    return false;
}

static void on_shutdown(rd_conn *conn) {
    rd_websocket *ws = websocket_of(conn);
    if (ws->phase != RD_WEBSOCKET_OPEN) return;
    ws->push.shutdown_due = true;
    rd_push_tell(&ws->push);
}

const rd_protocol rd_protocol_websocket = {
    "websocket", sizeof(rd_websocket *),
    on_open,     on_data,
    on_eof,      on_drained,
    on_timeout,  on_close,
    is_spare,    on_shutdown,
};

/* ---- the upgrade ---- */

bool rd_websocket_is_asked(const rd_request *request) {
    rd_slice key;
    return rd_ws_handshake_check(&request->head, request->bytes, &key) == 1;
}

static bool is_ours(rd_slice name) {
    static const rd_slice names[] = {
        RD_SLICE_INIT("connection"),           RD_SLICE_INIT("upgrade"),
        RD_SLICE_INIT("content-length"),       RD_SLICE_INIT("transfer-encoding"),
        RD_SLICE_INIT("sec-websocket-accept"), RD_SLICE_INIT("sec-websocket-extensions"),
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (rd_http1_is_word(name, names[i])) return true;
    }
    return false;
}

/* The request is over for HTTP: its connection has another protocol from now on. */
static rd_websocket *take_over(rd_request *request) {
    rd_conn *conn = request->conn;
    rd_websocket *ws = rd_alloc_zero(sizeof(*ws));
    const rd_settings *settings = conn->set->settings;
    rd_push_init(&ws->push, &ops, rd_http_shared_of(conn), conn);
    rd_ws_reader_init(&ws->reader, false);
    ws->limits = (rd_ws_limits){(uint32_t)settings->max_message_bytes, MESSAGE_FRAGMENTS_MAX};
    rd_http1_leave(conn);
    rd_conn_switch(conn, &rd_protocol_websocket);
    *(rd_websocket **)rd_conn_state_of(conn) = ws;
    rd_push_expect(&ws->push);
    return ws;
}

rd_push *rd_websocket_upgrade(rd_request *request, const rd_field *fields, size_t count) {
    char accept[RD_WS_ACCEPT_LEN];
    rd_slice key;
    rd_conn *conn = request->conn;
    if (conn == NULL || !rd_conn_is_open(conn)) return NULL;
    if (rd_ws_handshake_check(&request->head, request->bytes, &key) != 1) return NULL;
    rd_field all[FIELDS_MAX + 3];
    size_t len = 0;
    for (size_t i = 0; i < count && len < FIELDS_MAX; i++) {
        if (!is_ours(fields[i].name)) all[len++] = fields[i];
    }
    rd_ws_handshake_accept(key, accept);
    all[len++] = (rd_field){RD_SLICE("upgrade"), RD_SLICE("websocket")};
    all[len++] = (rd_field){RD_SLICE("connection"), RD_SLICE("Upgrade")};
    all[len++] = (rd_field){RD_SLICE("sec-websocket-accept"), rd_slice_of(accept, sizeof(accept))};
    const rd_response_head head = {
        .status = 101, .fields = all, .count = len, .length = -1, .raw = true};
    if (request->responder->start(request, &head) < 0) return NULL;
    rd_websocket *ws = take_over(request);
    rd_push_ref(&ws->push);
    on_open(conn);
    rd_buffer ahead = conn->input;
    conn->input = (rd_buffer){0};
    if (rd_buffer_len(&ahead) > 0 && rd_conn_is_open(conn))
        on_data(conn, rd_buffer_ptr(&ahead), rd_buffer_len(&ahead));
    rd_buffer_clear(&ahead);
    if (conn->set->stopping && rd_conn_is_open(conn)) on_shutdown(conn);
    return &ws->push;
}
