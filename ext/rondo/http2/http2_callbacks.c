/* SPDX-License-Identifier: MIT
 *
 * HTTP/2: what the library calls while http2.c gives it bytes or takes some: heads, frames, what
 * has left, and the account of the client. See http2_session.h.
 */
#include "http2/http2_callbacks.h"

#include <string.h>

#include "base/error.h"
#include "http2/http2_request.h"
#include "http2/http2_stream.h"
#include "http2/http2_taking.h"
#include "http2/http2_time.h"

#define HEAD_OUT_MAX    1048576 /* fields of an answer */
#define LEAST_STEP      512     /* a smaller step of a window carries nothing */
#define FIELD_OVERHEAD  32      /* RFC 9113, section 6.5.2 */
#define DECODED_A_POINT 4096    /* bytes of fields beyond those that are free */
#define DECODED_FREE    8192    /* the client's table has 4096, and the fixed one less */
#define MOST_OF_A_BYTE  2       /* of Huffman's codes the shortest has five bits */
#define DECODED_AT_ONCE 32768   /* then others have their turn */
/* The account is the limit. The library counts by another clock, and cut CONTINUATIONs twice. */
#define CONTINUATIONS 10000
#define RESETS        UINT32_MAX /* at once, and a second */

/* ---- heads ---- */

static bool is_request(const nghttp2_frame *frame) {
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

/* Frames of a head, one behind the other. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *data) {
    rd_http2 *http2 = data;
    (void)session;
    if (hd->type == NGHTTP2_HEADERS) http2->input.block = hd->length;
    if (hd->type == NGHTTP2_CONTINUATION) http2->input.block += hd->length;
    return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *data) {
    rd_http2 *http2 = data;
    (void)session;
    http2->input.decoded = http2->input.paid = 0;
    if (!is_request(frame)) return 0;
    http2->head_id = frame->hd.stream_id;
    rd_http2_head_begin(&http2->head, http2->spare->head);
    rd_http2_expect(http2);
    return 0;
}

/* Heads that many clients begin and do not end count together. */
static void count_head(rd_http2 *http2) {
    rd_ledger *ledger = &http2->carrier->set->ledger;
    const size_t memory = rd_http2_head_memory(&http2->head);
    if (rd_ledger_keep(ledger, RD_LEDGER_INPUT, &http2->head_counted, memory)) return;
    rd_ledger_refuse(ledger, RD_LEDGER_INPUT);
    rd_http2_head_fail(&http2->head, RD_ERR_INPUT_FULL);
}

void rd_http2_fail_for_flood(rd_http2 *http2) {
    rd_handler *handler = rd_http_shared_of(http2->carrier)->handler;
    if (http2->has_failed) return;
    handler->on_refused(handler, http2->carrier, RD_ERR_HTTP2_FLOOD);
    rd_http2_fail(http2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static bool may_spend(rd_http2 *http2) {
    const bool suffices =
        rd_http2_account_charge(&http2->account, http2->carrier->set->loop->now_ms);
    if (!suffices) rd_http2_fail_for_flood(http2);
    return suffices;
}

static int charge(rd_http2 *http2) {
    may_spend(http2);
    return 0;
}

/* Bytes of fields that cost nothing. Who names each field of the tables once has no more, unless
 * there are hundreds of fields of a few bytes. */
static size_t free_of(const rd_http2 *http2) {
    const size_t most = rd_http_shared_of(http2->carrier)->limits.head_bytes;
    const size_t fair = http2->input.block * MOST_OF_A_BYTE + DECODED_FREE;
    return fair < most ? fair : most;
}

/* A byte can decode to a field of 4 KiB, and the library looks at each byte of it. */
static bool may_decode(rd_http2 *http2, size_t len) {
    rd_http2_input *input = &http2->input;
    const size_t costs_nothing = free_of(http2);
    input->decoded += len;
    input->decoded_now += len;
    if (input->decoded <= costs_nothing) return true;
    const size_t points = (input->decoded - costs_nothing) / DECODED_A_POINT;
    for (; input->paid < points; input->paid++) {
        if (!may_spend(http2)) return false;
    }
    return true;
}

/* The library stops behind this field when it has decoded much at once. */
static int pause_if_much(rd_http2 *http2) {
    if (http2->input.decoded_now < DECODED_AT_ONCE) return 0;
    http2->input.is_paused = true;
    return NGHTTP2_ERR_PAUSE;
}

/* Trailers are checked by the library, and dropped. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *data) {
    rd_http2 *http2 = data;
    (void)session, (void)flags;
    if (!may_decode(http2, name_len + value_len + FIELD_OVERHEAD)) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (!is_request(frame)) return pause_if_much(http2);
    rd_http2_head_add(&http2->head, &rd_http_shared_of(http2->carrier)->limits,
                      rd_slice_of((const char *)name, name_len),
                      rd_slice_of((const char *)value, value_len));
    count_head(http2);
    return pause_if_much(http2);
}

static bool ends_stream(const nghttp2_frame *frame) {
    return (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

/* Its client may ask again, because the application has not seen the request (RFC 9113, section
 * 8.7). One stream a connection may always have: clients with many streams shut nobody out. */
static bool is_one_too_many(rd_http2 *http2, int32_t id) {
    rd_http_shared *shared = rd_http_shared_of(http2->carrier);
    const uint64_t most = (uint64_t)shared->settings->max_streams;
    if (http2->stream_count == 0 || shared->http2_counts.streams < most) return false;
    shared->http2_counts.refused++;
    nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    return true;
}

/* The connection has served as many requests as it may. */
static void end_if_used_up(rd_http2 *http2) {
    const rd_settings *settings = http2->carrier->set->settings;
    const uint64_t most = settings->keep_alive ? (uint64_t)settings->max_keep_alive : 1;
    if (most > 0 && http2->served >= most) rd_http2_warn(http2);
}

static void forget_head(rd_http2 *http2) {
    rd_http2_head_end(&http2->head, http2->spare->head);
    count_head(http2);
    rd_http2_expect(http2);
}

static void take_request(rd_http2 *http2, const nghttp2_frame *frame) {
    const int32_t id = frame->hd.stream_id;
    rd_slice text = RD_SLICE("");
    const int code = rd_http2_head_finish(&http2->head, &text);
    if (!is_one_too_many(http2, id)) {
        rd_http2_request_open(http2, id, text, code, ends_stream(frame));
        end_if_used_up(http2);
    }
    forget_head(http2);
}

/* ---- frames ---- */

/* NULL: the library knows the stream, but it is not served any more. */
static rd_conn *conn_of(rd_http2 *http2, int32_t id) {
    return nghttp2_session_get_stream_user_data(http2->session, id);
}

static void end_input(rd_http2 *http2, int32_t id) {
    rd_conn *conn = conn_of(http2, id);
    if (conn == NULL) return;
    rd_conn_ref(conn);
    rd_http2_stream_end_input(conn, true);
    rd_conn_unref(conn);
}

static void reprioritize(rd_http2 *http2, const nghttp2_ext_priority_update *update) {
    rd_conn *conn = conn_of(http2, update->stream_id);
    const rd_slice value = rd_slice_of((const char *)update->field_value, update->field_value_len);
    if (update->stream_id == 0) rd_http2_fail(http2, NGHTTP2_PROTOCOL_ERROR);
    if (conn != NULL) rd_http2_request_reprioritize(conn, value);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *data) {
    rd_http2 *http2 = data;
    (void)session;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (is_request(frame)) {
            take_request(http2, frame);
        } else if (ends_stream(frame)) {
            end_input(http2, frame->hd.stream_id);
        }
        return 0;
    case NGHTTP2_DATA:
        if (ends_stream(frame)) end_input(http2, frame->hd.stream_id);
        return 0;
    case NGHTTP2_WINDOW_UPDATE:
        return frame->window_update.window_size_increment < LEAST_STEP ? charge(http2) : 0;
    case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK) rd_http2_take_pong(http2, frame->ping.opaque_data);
        return 0;
    case NGHTTP2_PRIORITY_UPDATE:
        reprioritize(http2, frame->ext.payload);
        return 0;
    default:
        return 0;
    }
}

/* A wrong frame of the connection itself ends it. A client that has not acknowledged our settings
 * may have sent a few streams too many. One that goes on costs memory, because it need not read
 * that they are refused. */
static int on_invalid(nghttp2_session *session, const nghttp2_frame *frame, int code, void *data) {
    rd_http2 *http2 = data;
    (void)session;
    if (frame->hd.stream_id == 0) rd_http2_note_failure(http2);
    if (code != NGHTTP2_ERR_REFUSED_STREAM) return 0;
    rd_http_shared_of(http2->carrier)->http2_counts.refused++;
    return charge(data);
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                         size_t len, void *data) {
    rd_conn *conn = conn_of(data, id);
    (void)flags;
    nghttp2_session_consume_connection(session, len);
    if (conn == NULL) {
        nghttp2_session_consume_stream(session, id, len);
    } else {
        rd_http2_stream_take(conn, (const char *)bytes, len);
    }
    return 0;
}

/* ---- what has left ---- */

static bool is_sent_end(const nghttp2_frame *frame) {
    return (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
           ends_stream(frame);
}

/* The answer is complete before the body of the request: nothing reads the rest (RFC 9113, section
 * 8.1). */
static void end_early(nghttp2_session *session, int32_t id) {
    if (nghttp2_session_get_stream_remote_close(session, id) != 0) return;
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
}

static void report_end(rd_http2 *http2, uint32_t error) {
    rd_handler *handler = rd_http_shared_of(http2->carrier)->handler;
    if (error == NGHTTP2_NO_ERROR || error == NGHTTP2_ENHANCE_YOUR_CALM) return;
    handler->on_refused(handler, http2->carrier, RD_ERR_HTTP2_BROKEN);
}

/* A stream that the server had to reset costs its client as much as one that it resets itself,
 * unless others have taken its place. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *data) {
    if (frame->hd.type == NGHTTP2_HEADERS) rd_http2_remove_head(data, frame, true);
    if (is_sent_end(frame)) {
        end_early(session, frame->hd.stream_id);
    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
        report_end(data, frame->goaway.error_code);
    } else if (frame->hd.type == NGHTTP2_RST_STREAM &&
               frame->rst_stream.error_code != NGHTTP2_NO_ERROR &&
               frame->rst_stream.error_code != NGHTTP2_REFUSED_STREAM) {
        return charge(data);
    }
    return 0;
}

/* The library dropped a head: it was too long. Its stream would wait for ever. */
static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int code, void *data) {
    (void)code;
    if (frame->hd.type == NGHTTP2_HEADERS) {
        rd_http2_remove_head(data, frame, false);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_INTERNAL_ERROR);
    }
    return 0;
}

/* A head that breaks a rule of the library is never complete: the time for it ends with its stream.
 */
static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *data) {
    rd_http2 *http2 = data;
    rd_conn *conn = conn_of(http2, id);
    (void)session, (void)code;
    if (conn != NULL) {
        rd_http2_stream_closed(conn);
    } else if (http2->head.is_decoding && http2->head_id == id) {
        forget_head(http2);
    }
    return 0;
}

/* ---- the session ---- */

static nghttp2_session_callbacks *new_callbacks(void) {
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) return NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_not_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    return callbacks;
}

static nghttp2_option *new_option(void) {
    nghttp2_option *option;
    if (nghttp2_option_new(&option) != 0) return NULL;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
    nghttp2_option_set_max_continuations(option, CONTINUATIONS);
    nghttp2_option_set_stream_reset_rate_limit(option, RESETS, RESETS);
    nghttp2_option_set_max_send_header_block_length(option, HEAD_OUT_MAX);
    return option;
}

/* ---- memory of the library ---- */

static void *take_zeros(size_t count, size_t size, void *blocks) {
    if (size > 0 && count > SIZE_MAX / size) return NULL;
    return memset(rd_http2_blocks_take(blocks, count * size), 0, count * size);
}

static void *take_block(size_t size, void *blocks) {
    return rd_http2_blocks_take(blocks, size);
}

static void give_block(void *ptr, void *blocks) {
    rd_http2_blocks_give(blocks, ptr);
}

static void *resize_block(void *ptr, size_t size, void *blocks) {
    return rd_http2_blocks_resize(blocks, ptr, size);
}

nghttp2_session *rd_http2_new_session(rd_http2 *http2) {
    nghttp2_session_callbacks *callbacks = new_callbacks();
    nghttp2_option *option = new_option();
    nghttp2_session *session = NULL;
    if (callbacks != NULL && option != NULL) {
        nghttp2_mem memory = {&http2->spare->blocks, take_block, give_block, take_zeros,
                              resize_block};
        nghttp2_session_server_new3(&session, callbacks, http2, option, &memory);
    }
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return session;
}
