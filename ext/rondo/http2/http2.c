/* SPDX-License-Identifier: MIT
 *
 * HTTP/2: the life of a connection, and what comes from its socket; http2_callbacks.c has what the
 * library makes of that. See http2_session.h.
 */
#include "http2/http2.h"

#include "base/alloc.h"
#include "http2/http2_callbacks.h"
#include "http2/http2_stream.h"
#include "http2/http2_time.h"

#define STREAMS           100
#define STREAM_WINDOW     8192    /* of a stream before its head is read */
#define CONNECTION_WINDOW 2097152 /* the windows of the streams are the limit */

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
    http2->section = rd_http_shared_of(carrier)->sections.last;
    http2->window_room = CONNECTION_WINDOW;
    rd_http2_frames_init(&http2->frames);
    rd_http2_flight_init(&http2->flight);
    rd_http2_account_init(&http2->account, carrier->set->loop->now_ms);
    rd_list_init(&http2->streams);
    http2->session = rd_http2_new_session(http2);
    rd_conn_set_deadline(carrier, carrier->set->loop->now_ms + (uint64_t)settings->head_timeout_ms);
    if (http2->session == NULL) {
        rd_conn_reset(carrier);
        return;
    }
    submit_settings(http2);
    rd_http2_send(http2);
}

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

static void on_data(rd_conn *carrier, const char *bytes, size_t len) {
    rd_http2_fault fault;
    rd_http2 *http2 = rd_http2_of(carrier);
    if (http2->is_busy || http2->has_failed) return;
    rd_conn_ref(carrier);
    rd_http2_enter(http2);
    rd_http2_hear(http2);
    const size_t fine = rd_http2_frames_read(&http2->frames, &http2->account,
                                             carrier->set->loop->now_ms, bytes, len, &fault);
    const ssize_t used = nghttp2_session_mem_recv(http2->session, (const uint8_t *)bytes, fine);
    if (used < 0 && !http2->is_over) fail(http2, (int)used);
    if (fault != RD_HTTP2_FINE && !http2->is_over) fail_for_frame(http2, fault);
    rd_http2_leave(http2);
    rd_conn_unref(carrier);
}

/* Answers can still reach the client, but no request comes any more. */
static void on_eof(rd_conn *carrier) {
    rd_http2 *http2 = rd_http2_of(carrier);
    rd_list *streams = &http2->streams;
    rd_http2_enter(http2);
    for (rd_list *node = streams->next, *next; node != streams && !http2->is_over; node = next) {
        next = node->next;
        rd_http2_stream_end_input(RD_CONTAINER(node, rd_http2_stream, in_session)->conn, false);
    }
    http2->is_ending = true;
    rd_http2_leave(http2);
}

static void on_drained(rd_conn *carrier) {
    rd_http2_send(rd_http2_of(carrier));
}

static void on_timeout(rd_conn *carrier) {
    rd_http2 *http2 = rd_http2_of(carrier);
    rd_http2_time_out(http2);
    rd_http2_send(http2);
}

static void on_close(rd_conn *carrier) {
    rd_http2 *http2 = rd_http2_of(carrier);
    rd_http2_close_streams(http2);
    rd_http_shared_of(carrier)->http2_counts.connections--;
    rd_http2_free(http2);
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
