/* SPDX-License-Identifier: MIT
 *
 * HTTP/2: the life of a connection, and what comes from its socket; http2_callbacks.c has what the
 * library makes of that. See http2_session.h.
 */
#include "http2/http2.h"

#include "base/alloc.h"
#include "system/clock.h"
#include "http2/http2_callbacks.h"
#include "http2/http2_stream.h"
#include "http2/http2_taking.h"
#include "http2/http2_time.h"

#define STREAMS           100
#define STREAM_WINDOW     8192    /* of a stream before its head is read */
#define CONNECTION_WINDOW 2097152 /* the windows of the streams are the limit */
#define MUCH_INPUT        256     /* bytes */

/* ---- what comes ---- */

/* What the library cannot go on after. */
static void fail(rd_http2 *http2, int code) {
    if (code == NGHTTP2_ERR_FLOODED || code == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS) {
        rd_http2_fail_for_flood(http2);
    } else {
        rd_http2_fail(http2, code == NGHTTP2_ERR_BAD_CLIENT_MAGIC ? NGHTTP2_PROTOCOL_ERROR
                                                                  : NGHTTP2_INTERNAL_ERROR);
    }
}

static void fail_for_frame(rd_http2 *http2, rd_http2_fault fault) {
    if (fault == RD_HTTP2_FLOOD) {
        rd_http2_fail_for_flood(http2);
    } else {
        rd_http2_fail(http2,
                      fault == RD_HTTP2_CLOSED ? NGHTTP2_STREAM_CLOSED : NGHTTP2_PROTOCOL_ERROR);
    }
}

/* Lets the library read what was checked. It stops where it has decoded much. If it stops behind
 * the last byte, its frame is not taken yet. Returns how much it has read, or its error. */
static ssize_t give(rd_http2 *http2, const char *bytes) {
    size_t given = 0;
    do {
        http2->input.decoded_now = 0;
        http2->input.is_paused = false;
        const ssize_t used = nghttp2_session_mem_recv(
            http2->session, (const uint8_t *)bytes + given, http2->input.checked);
        if (used < 0) return used;
        const size_t part = http2->input.is_paused ? (size_t)used : http2->input.checked;
        given += part;
        http2->input.checked -= part;
    } while (http2->input.is_paused && http2->input.checked == 0);
    return (ssize_t)given;
}

/* Returns how many bytes were read, or -1: the library cannot go on. */
static ssize_t read_piece(rd_http2 *http2, const char *bytes, size_t len) {
    const uint64_t now_ms = http2->carrier->set->loop->now_ms;
    if (http2->input.checked == 0) {
        const size_t piece = rd_http2_frames_piece(&http2->frames, bytes, len);
        http2->input.checked = rd_http2_frames_read(&http2->frames, &http2->account, now_ms, bytes,
                                                    piece, &http2->input.fault);
    }
    const ssize_t used = give(http2, bytes);
    if (used < 0 && !http2->is_over) fail(http2, (int)used);
    if (http2->input.checked == 0 && http2->input.fault != RD_HTTP2_FINE && !http2->is_over)
        fail_for_frame(http2, http2->input.fault);
    return http2->is_over || http2->has_failed ? -1 : used;
}

/* Reads pieces until this time, at least one. Returns how many bytes are left to be read. */
static size_t read_pieces(rd_http2 *http2, const char *bytes, size_t len, uint64_t until) {
    size_t at = 0;
    if (http2->has_failed) return 0;
    do {
        const ssize_t read = read_piece(http2, bytes + at, len - at);
        if (read < 0) return 0;
        at += (size_t)read;
    } while (at < len && rd_clock_ns() < until);
    return len - at;
}

/* Nothing more is read from the socket until this has been. Most clients have sent no more than
 * this, so that the poller need not be told. False: all clients together have no room for it. */
static bool put_off(rd_http2 *http2, const char *bytes, size_t len) {
    rd_conn *carrier = http2->carrier;
    rd_buffer_append(&carrier->input, bytes, len);
    if (!rd_conn_count_input(carrier)) {
        rd_conn_drop_input(carrier);
        return false;
    }
    carrier->read_paused = true;
    if (len > MUCH_INPUT) rd_conn_pause_reading(carrier);
    rd_deferred_wait(carrier->set, &http2->later);
    return true;
}

/* Returns how many of the bytes can wait. */
static size_t read_until(rd_http2 *http2, const char *bytes, size_t len, uint64_t until) {
    const rd_conn *carrier = http2->carrier;
    rd_http2_enter(http2);
    const size_t left = read_pieces(http2, bytes, len, until);
    return rd_http2_leave(http2) && rd_conn_is_open(carrier) ? left : 0;
}

/* Returns how many of the bytes can wait. */
static size_t read_some(rd_http2 *http2, const char *bytes, size_t len) {
    rd_conn_set *set = http2->carrier->set;
    const uint64_t begun = rd_clock_ns(), until = rd_deferred_until(set, begun);
    const size_t left = until > 0 ? read_until(http2, bytes, len, until) : len;
    rd_deferred_spend(set, rd_clock_ns() - begun);
    return left;
}

/* A client that sends little never waits for those that send much. */
static void on_data(rd_conn *carrier, const char *bytes, size_t len) {
    rd_http2 *http2 = rd_http2_of(carrier);
    if (http2->is_busy || http2->has_failed) return;
    rd_conn_ref(carrier);
    rd_http2_hear(http2);
    const size_t left =
        len <= RD_HTTP2_PIECE ? read_until(http2, bytes, len, 0) : read_some(http2, bytes, len);
    if (left > 0 && !put_off(http2, bytes + len - left, left)) {
        read_until(http2, bytes + len - left, left, UINT64_MAX);
    }
    rd_conn_unref(carrier);
}

static void keep_rest(rd_http2 *http2, rd_buffer *input, size_t left) {
    rd_conn *carrier = http2->carrier;
    rd_buffer_consume(input, rd_buffer_len(input) - left);
    carrier->input = *input;
    *input = (rd_buffer){0};
    rd_conn_count_input(carrier); /* it has become less */
    if (left > 0) {
        rd_deferred_wait(carrier->set, &http2->later);
    } else {
        rd_conn_resume_reading(carrier);
    }
}

/* One piece of what was put off. The connection may be closed meanwhile, and with it the input. */
static void go_on(rd_deferred *deferred) {
    rd_http2 *http2 = RD_CONTAINER(deferred, rd_http2, later);
    rd_conn *carrier = http2->carrier;
    rd_buffer input = carrier->input;
    if (!rd_conn_is_open(carrier)) return;
    carrier->input = (rd_buffer){0};
    rd_conn_ref(carrier);
    rd_http2_enter(http2);
    const size_t left = read_pieces(http2, rd_buffer_ptr(&input), rd_buffer_len(&input), 0);
    if (rd_http2_leave(http2) && rd_conn_is_open(carrier)) keep_rest(http2, &input, left);
    rd_buffer_clear(&input);
    rd_conn_unref(carrier);
}

/* ---- opening ---- */

/* The last entry allows extended CONNECT. Where it was not sent, the library itself resets a stream
 * that has :protocol (RFC 8441, section 3). */
static void submit_settings(const rd_http2 *http2) {
    const rd_settings *settings = http2->carrier->set->settings;
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)settings->max_head_bytes},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
    };
    const size_t all = sizeof(entries) / sizeof(entries[0]);
    nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, entries,
                            settings->http2_websocket ? all : all - 1);
    nghttp2_session_set_local_window_size(http2->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
}

/* A proxy's connection is not taken for one client. */
static uint32_t seats_for(const rd_conn *carrier) {
    const rd_http_shared *shared = rd_http_shared_of(carrier);
    const rd_settings *settings = carrier->set->settings;
    if (!rd_networks_contain(shared->trusted, shared->trusted_count, &carrier->peer)) {
        return (uint32_t)settings->http2_seats;
    }
    return settings->proxy_seats > 0 ? (uint32_t)settings->proxy_seats : STREAMS;
}

static void on_open(rd_conn *carrier) {
    const rd_settings *settings = carrier->set->settings;
    rd_http2 *http2 = rd_alloc_zero(sizeof(*http2));
    *rd_http2_place(carrier) = http2;
    http2->carrier = carrier;
    rd_http_shared_of(carrier)->http2_counts.any = true;
    rd_http_shared_of(carrier)->http2_counts.connections++;
    http2->lines = rd_lines_new(seats_for(carrier));
    http2->spare = rd_http2_spare_ref(rd_http_shared_of(carrier));
    http2->section = rd_http_shared_of(carrier)->sections.last;
    http2->window_room = CONNECTION_WINDOW;
    rd_http2_frames_init(&http2->frames);
    rd_http2_flight_init(&http2->flight);
    rd_http2_account_init(&http2->account, carrier->set->loop->now_ms);
    rd_list_init(&http2->streams);
    rd_deferred_init(&http2->later, go_on);
    http2->session = rd_http2_new_session(http2);
    rd_conn_set_deadline(carrier, carrier->set->loop->now_ms + (uint64_t)settings->head_timeout_ms);
    if (http2->session == NULL) {
        rd_conn_reset(carrier);
        return;
    }
    submit_settings(http2);
    rd_http2_send(http2);
}

/* ---- the protocol ---- */

/* Returns whether there may be more. */
static bool end_some_inputs(rd_http2 *http2) {
    rd_list *streams = &http2->streams;
    unsigned left = RD_HTTP2_AT_ONCE;
    for (rd_list *node = streams->next, *next; node != streams && !http2->is_over; node = next) {
        rd_http2_stream *stream = RD_CONTAINER(node, rd_http2_stream, in_session);
        next = node->next;
        if (stream->input_ended) continue;
        if (left-- == 0) return true;
        rd_http2_stream_end_input(stream->conn, false);
    }
    return false;
}

static void go_on_at_eof(rd_deferred *deferred);

static void end_inputs(rd_http2 *http2) {
    rd_conn *carrier = http2->carrier;
    rd_conn_ref(carrier);
    rd_http2_enter(http2);
    const bool goes_on = end_some_inputs(http2);
    if (rd_http2_leave(http2) && goes_on && rd_conn_is_open(carrier)) {
        rd_http2_put_off(http2, go_on_at_eof);
    }
    rd_conn_unref(carrier);
}

static void go_on_at_eof(rd_deferred *deferred) {
    end_inputs(RD_CONTAINER(deferred, rd_http2, later));
}

/* Answers can still reach the client, but no request comes any more. */
static void on_eof(rd_conn *carrier) {
    rd_http2 *http2 = rd_http2_of(carrier);
    http2->is_ending = true;
    end_inputs(http2);
}

static void on_drained(rd_conn *carrier) {
    rd_http2_send(rd_http2_of(carrier));
}

static void on_timeout(rd_conn *carrier) {
    rd_http2 *http2 = rd_http2_of(carrier);
    rd_http2_time_out(http2);
    rd_http2_send(http2);
}

static void end(rd_http2 *http2) {
    rd_http2_close_streams(http2, UINT32_MAX);
    rd_http2_free(http2);
}

/* Some of its streams are closed. */
static void go_on_ending(rd_deferred *deferred) {
    rd_http2 *http2 = RD_CONTAINER(deferred, rd_http2, later);
    rd_conn *carrier = http2->carrier;
    rd_http2_close_streams(http2, RD_HTTP2_AT_ONCE);
    if (http2->stream_count > 0) {
        rd_deferred_wait(carrier->set, deferred);
        return;
    }
    rd_http2_free(http2);
    rd_conn_unref(carrier);
}

/* Many clients may go in one turn of the loop, each with a hundred streams. */
static void on_close(rd_conn *carrier) {
    rd_http2 *http2 = rd_http2_of(carrier);
    rd_http_shared_of(carrier)->http2_counts.connections--;
    rd_deferred_leave(carrier->set, &http2->later);
    if (http2->is_busy || http2->stream_count <= RD_HTTP2_AT_ONCE) {
        end(http2);
        return;
    }
    rd_conn_ref(carrier);
    rd_http2_take_no_more(http2);
    rd_http2_put_off(http2, go_on_ending);
}

static bool is_spare(rd_conn *carrier, bool kept, uint64_t since_ms) {
    const rd_http2 *http2 = rd_http2_of(carrier);
    const rd_settings *settings = carrier->set->settings;
    if ((http2->served > 0) != kept || http2->stream_count > 0) return false;
    const int64_t timeout_ms = kept ? settings->keep_alive_timeout_ms : settings->head_timeout_ms;
    return carrier->deadlines.protocol != UINT64_MAX &&
           carrier->deadlines.protocol <= since_ms + (uint64_t)timeout_ms;
}

static void on_shutdown(rd_conn *carrier) {
    rd_http2 *http2 = rd_http2_of(carrier);
    rd_list *streams = &http2->streams;
    rd_conn_ref(carrier);
    rd_http2_enter(http2);
    rd_http2_warn(http2);
    for (rd_list *node = streams->next, *next; node != streams && !http2->is_over; node = next) {
        next = node->next;
        rd_conn_shut_down(RD_CONTAINER(node, rd_http2_stream, in_session)->conn);
    }
    rd_http2_leave(http2);
    rd_conn_unref(carrier);
}

static const rd_protocol http2_protocol = {
    .state_size = sizeof(rd_http2 *),
    .on_open = on_open,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_drained = on_drained,
    .on_timeout = on_timeout,
    .on_close = on_close,
    .is_spare = is_spare,
    .on_shutdown = on_shutdown,
};

const rd_protocol *rd_http2_protocol(void) {
    return &http2_protocol;
}

const char *rd_http2_library(void) {
    return nghttp2_version(0)->version_str;
}
