/* SPDX-License-Identifier: MIT
 *
 * The protocol of the pair's end; see forwarding.h.
 */
#include "protocol/forwarding.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "protocol/http1_reply.h"
#include "protocol/protocols.h"
#include "transport/identity.h"
#include "transport/pump.h"

/* The state of the pair's end in this process. */
typedef struct rd_forward {
    rd_conn *inner;      /* that end */
    rd_request *request; /* a reference; NULL: the forward is over */
    rd_list held;        /* the request, by its in_queue */
    rd_waiter room;      /* while the client is too slow */
    rd_http1_reply reply;
    bool in_body;
    bool is_joined; /* the pair stays, for the client's connection and the application */
} rd_forward;

static rd_forward *forward_of(rd_conn *inner) {
    return rd_conn_state_of(inner);
}

/* ---- the end ---- */

void rd_forwarding_end(rd_request *request) {
    rd_forward *forward = RD_CONTAINER(request->in_queue.next, rd_forward, held);
    forward->request = NULL;
    rd_request_end_wait(request, &forward->room);
    rd_list_unlink(&request->in_queue);
    request->queued.place = RD_PLACE_NONE;
    rd_request_unref(request);
    if (!forward->is_joined) rd_conn_close(forward->inner);
}

/* Mostly the end of the answer has done it. */
static void leave(rd_forward *forward) {
    rd_handler *handler = rd_http_shared_of(forward->inner)->handler;
    if (forward->request != NULL) handler->on_left(handler, forward->request);
}

static void answer_instead(rd_request *request, int code) {
    static const rd_field type = {RD_SLICE_INIT("content-type"),
                                  RD_SLICE_INIT("text/plain; charset=utf-8")};
    char text[128];
    const int len = snprintf(text, sizeof(text), "%s\n", rd_error_text(code));
    const rd_response_head head = {
        .status = rd_error_status(code), .fields = &type, .count = 1, .length = len};
    request->responder->start(request, &head);
    request->responder->write(request, text, (size_t)len);
    request->responder->finish(request);
}

/* The answer is not complete and never will be. */
static void fail(rd_forward *forward, int code) {
    rd_request *request = forward->request;
    rd_conn *conn = request->conn;
    if (conn->set->on_cut != NULL) conn->set->on_cut(conn, code);
    if (request->status == 0) {
        answer_instead(request, code);
    } else {
        request->responder->abort(request);
    }
    leave(forward);
}

/* ---- the answer ---- */

static rd_forward *waiting_for(rd_waiter *waiter) {
    return RD_CONTAINER(waiter, rd_forward, room);
}

static void on_room(rd_waiter *waiter) {
    rd_conn *inner = waiting_for(waiter)->inner;
    if (rd_conn_is_open(inner)) rd_conn_resume_reading(inner);
}

/* A client that does not take its answer holds up the sibling. */
static void limit_ahead(rd_forward *forward) {
    rd_conn *inner = forward->inner, *conn = forward->request->conn;
    if (conn->out.bytes <= (size_t)conn->set->settings->output_high_bytes) return;
    conn->above_high = true;
    if (inner->read_paused) return;
    rd_request_begin_wait(forward->request, &forward->room);
    rd_conn_pause_reading(inner);
}

/* What follows is not HTTP: from here on both connections are one, in both directions. */
static void join(rd_forward *forward) {
    rd_conn *inner = forward->inner, *conn = forward->request->conn;
    forward->request->detached = forward->is_joined = true;
    leave(forward);
    rd_pump_join(conn, inner);
}

/* The client's stream may be reset by it, and the forward is over then. */
static void pass_head(rd_forward *forward, const char *bytes) {
    rd_request *request = forward->request;
    const rd_http1_reply *reply = &forward->reply;
    rd_field *fields = rd_alloc((reply->count + 1) * sizeof(rd_field));
    const rd_response_head head = {
        .status = reply->status,
        .fields = fields,
        .count = rd_http1_reply_fields(reply, bytes, fields),
        .length = reply->length,
        .has_date = reply->has_date,
        .close = reply->closes,
        .raw = reply->body == RD_REPLY_RAW,
    };
    if (rd_http1_reply_is_interim(reply)) {
        request->responder->inform(request, &head);
    } else {
        request->responder->start(request, &head);
    }
    rd_free(fields);
}

static void finish(rd_forward *forward) {
    forward->request->responder->finish(forward->request);
    leave(forward);
}

static void begin_body(rd_forward *forward) {
    switch ((rd_reply_body)forward->reply.body) {
    case RD_REPLY_NONE:
        finish(forward);
        break;
    case RD_REPLY_RAW:
        join(forward);
        break;
    case RD_REPLY_LENGTH:
    case RD_REPLY_CHUNKED:
        forward->in_body = true;
        break;
    }
}

/* Returns how many bytes of the head it used: all of it or none. */
static size_t take_head(rd_forward *forward, const char *bytes, size_t len) {
    rd_http1_reply *reply = &forward->reply;
    const int used = rd_http1_reply_head(reply, bytes, len);
    if (used < 0) fail(forward, used);
    if (used <= 0) return 0;
    if (reply->status == RD_REPLY_TAKEN_STATUS) {
        join(forward);
        return (size_t)used;
    }
    pass_head(forward, bytes);
    if (forward->request == NULL) return (size_t)used;
    if (rd_http1_reply_is_interim(reply)) {
        rd_http1_reply_init(reply, reply->to_head);
    } else {
        begin_body(forward);
    }
    return (size_t)used;
}

static size_t take_body(rd_forward *forward, const char *bytes, size_t len) {
    rd_request *request = forward->request;
    size_t used;
    rd_slice data;
    const int result = rd_http1_reply_body(&forward->reply, bytes, len, &used, &data);
    if (result < 0) {
        fail(forward, result);
        return 0;
    }
    if (result == RD_REPLY_DATA) request->responder->write(request, data.ptr, data.len);
    const bool is_whole = forward->reply.body == RD_REPLY_LENGTH && forward->reply.left == 0;
    if (result == RD_REPLY_DONE || is_whole) finish(forward);
    return used;
}

static const rd_protocol forward_protocol; /* at the end of this file */

static bool goes_on(const rd_conn *inner) {
    return rd_conn_is_open(inner) && inner->protocol == &forward_protocol;
}

/* Returns how many bytes are used up. */
static size_t feed(rd_conn *inner, const char *bytes, size_t len) {
    rd_forward *forward = forward_of(inner);
    size_t used = 0, step = 1;
    while (used < len && step > 0 && goes_on(inner)) {
        step = forward->in_body ? take_body(forward, bytes + used, len - used)
                                : take_head(forward, bytes + used, len - used);
        used += step;
    }
    if (goes_on(inner) || !rd_conn_is_open(inner) || used == len) return used;
    inner->protocol->on_data(inner, bytes + used, len - used); /* what follows is not HTTP */
    return len;
}

static void on_data(rd_conn *inner, const char *bytes, size_t len) {
    rd_buffer *input = &inner->input;
    if (input->end == 0) {
        const size_t used = feed(inner, bytes, len);
        if (!rd_conn_is_open(inner)) return;
        rd_buffer_append(input, bytes + used, len - used);
    } else {
        rd_buffer_append(input, bytes, len);
        const size_t used = feed(inner, rd_buffer_ptr(input), rd_buffer_len(input));
        if (!rd_conn_is_open(inner)) return;
        rd_buffer_consume(input, used);
    }
    const bool has_room = rd_conn_count_input(inner);
    if (!goes_on(inner)) return;
    if (has_room) {
        limit_ahead(forward_of(inner));
    } else {
        fail(forward_of(inner), RD_ERR_INPUT_FULL);
    }
}

/* ---- the life of the pair ---- */

static void on_close(rd_conn *inner) {
    rd_forward *forward = forward_of(inner);
    if (forward->request != NULL) fail(forward, RD_ERR_REPLY_CUT);
}

static bool is_spare(rd_conn *inner, bool kept, uint64_t since_ms) {
    (void)inner, (void)kept, (void)since_ms;
    return false;
}

static void on_nothing(rd_conn *inner) {
    (void)inner;
}

static const rd_protocol forward_protocol = {
    .state_size = sizeof(rd_forward),
    .on_open = on_nothing,
    .on_data = on_data,
    .on_eof = rd_conn_close,
    .on_drained = on_nothing,
    .on_timeout = on_nothing,
    .on_close = on_close,
    .is_spare = is_spare,
    .on_shutdown = on_nothing,
};

/* ---- the beginning ---- */

/* Only this process can tell the application what it knows of the client. */
static bool may_answer_elsewhere(rd_conn *conn) {
    return !conn->transport->can_move && !rd_conn_is_forwarded(conn) &&
           rd_identity_owner(conn) == NULL;
}

/* A request that may become something else than an answer stays with its connection. */
bool rd_forwarding_is_possible(const rd_request *request) {
    rd_conn *conn = request->conn;
    if (conn == NULL || !rd_conn_is_open(conn) || !may_answer_elsewhere(conn)) return false;
    return rd_request_can_start_over(request) && !request->head.expect_continue &&
           !rd_upgrade_is_named(request);
}

void rd_forwarding_begin(rd_request *request, int fd) {
    rd_conn *inner = rd_conn_open_inner(request->conn, fd, &forward_protocol);
    rd_forward *forward = forward_of(inner);
    *forward = (rd_forward){.inner = inner, .request = request, .room.wake = on_room};
    rd_request_ref(request);
    rd_http1_reply_init(&forward->reply, request->head.method_id == RD_METHOD_HEAD);
    rd_list_init(&forward->held);
    rd_list_init(&forward->room.node);
    rd_list_append(&forward->held, &request->in_queue);
    request->queued.place = RD_PLACE_FORWARDED;
    rd_conn_rejoin_loop(inner);
}
