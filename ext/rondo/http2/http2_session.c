/* SPDX-License-Identifier: MIT
 *
 * What leaves a connection of HTTP/2, its end, and what its client may spend; see http2_session.h.
 */
#include "http2/http2_session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "system/clock.h"
#include "http2/http2_taking.h"

#define AHEAD_BYTES 65536 /* queued for the socket: priorities act on what comes after that */

/* ---- the library ---- */

void rd_http2_enter(rd_http2 *http2) {
    http2->is_busy = true;
}

static void free_now(rd_http2 *http2) {
    nghttp2_session_del(http2->session);
    rd_http2_head_clear(&http2->head);
    rd_ledger *ledger = &http2->carrier->set->ledger;
    rd_ledger_recount(ledger, RD_LEDGER_INPUT, &http2->head_counted, 0);
    rd_ledger_recount(ledger, RD_LEDGER_OUTPUT, &http2->taking.heads_counted, 0);
    rd_lines_unref(http2->lines);
    rd_http2_spare_unref(http2->spare);
    rd_free(http2);
}

void rd_http2_free(rd_http2 *http2) {
    http2->is_over = true;
    if (!http2->is_busy) free_now(http2);
}

bool rd_http2_leave(rd_http2 *http2) {
    http2->is_busy = false;
    if (http2->is_over) {
        free_now(http2);
        return false;
    }
    rd_http2_send(http2);
    return true;
}

void rd_http2_close_streams(rd_http2 *http2, uint32_t most) {
    while (most-- > 0 && !rd_list_is_empty(&http2->streams)) {
        rd_conn_close(RD_CONTAINER(http2->streams.next, rd_http2_stream, in_session)->conn);
    }
}

void rd_http2_put_off(rd_http2 *http2, void (*go_on)(rd_deferred *deferred)) {
    rd_conn_set *set = http2->carrier->set;
    rd_deferred_leave(set, &http2->later);
    rd_deferred_init(&http2->later, go_on);
    rd_deferred_wait(set, &http2->later);
}

/* ---- sending ---- */

static const char probe_name[4] = "sent";

/* A PING with a number. */
static void ask_for_arrival(rd_http2 *http2) {
    uint8_t payload[8];
    const uint32_t number = http2->flight.next;
    memcpy(payload, probe_name, sizeof(probe_name));
    memcpy(payload + sizeof(probe_name), &number, sizeof(number));
    if (nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, payload) != 0) return;
    rd_http2_flight_ask(&http2->flight, rd_clock_ns());
}

static void release_streams(rd_http2 *http2) {
    for (rd_list *node = http2->streams.next; node != &http2->streams; node = node->next) {
        rd_http2_stream *stream = RD_CONTAINER(node, rd_http2_stream, in_session);
        if (!stream->is_held) continue;
        stream->is_held = stream->is_deferred = false;
        nghttp2_session_resume_data(http2->session, stream->id);
    }
}

bool rd_http2_has_room(rd_http2 *http2) {
    rd_conn *carrier = http2->carrier;
    if (!rd_conn_is_open(carrier)) return false;
    if (carrier->out.bytes < AHEAD_BYTES) return true;
    carrier->above_high = true;
    return false;
}

/* The answer has cost the client a point, as every frame that carries nothing. */
bool rd_http2_take_arrival(rd_http2 *http2, const uint8_t *payload) {
    uint32_t number;
    memcpy(&number, payload + sizeof(probe_name), sizeof(number));
    if (memcmp(payload, probe_name, sizeof(probe_name)) != 0) return false;
    if (rd_http2_flight_arrive(&http2->flight, number, rd_clock_ns())) {
        rd_http2_account_refund(&http2->account);
        release_streams(http2);
    }
    return true;
}

/* Streams whose bytes the library asks for may close, and so may the carrier. */
static void fill(rd_http2 *http2) {
    rd_conn *carrier = http2->carrier;
    const uint64_t now_ms = carrier->set->loop->now_ms;
    const uint8_t *bytes;
    while (rd_http2_has_room(http2)) {
        if (rd_http2_flight_must_ask(&http2->flight, now_ms)) ask_for_arrival(http2);
        const ssize_t len = nghttp2_session_mem_send(http2->session, &bytes);
        if (len <= 0 || !rd_conn_is_open(carrier)) return;
        rd_outq_copy(&carrier->out, &carrier->set->chunks, (const char *)bytes, (size_t)len);
        http2->flight.sent += (uint64_t)len;
    }
}

/* Whether nothing more comes or leaves. */
static bool has_nothing_left(const rd_http2 *http2) {
    if (nghttp2_session_want_write(http2->session)) return false;
    return (http2->is_ending && http2->stream_count == 0) ||
           !nghttp2_session_want_read(http2->session);
}

/* Some of its streams are closed. The connection may be closed before all are. */
static void go_on_closing(rd_deferred *deferred) {
    rd_http2 *http2 = RD_CONTAINER(deferred, rd_http2, later);
    rd_http2_close_streams(http2, RD_HTTP2_AT_ONCE);
    if (http2->stream_count > 0) rd_deferred_wait(http2->carrier->set, deferred);
}

/* What was queued leaves first. A client that broke the rules may still be sending: without a
 * linger that would reset the connection, and destroy the GOAWAY on its way. */
static void end_if_over(rd_http2 *http2) {
    if (http2->is_ended || !has_nothing_left(http2)) return;
    http2->is_ended = true;
    rd_http2_take_no_more(http2);
    rd_conn_finish(http2->carrier, true);
    if (http2->stream_count > 0) rd_http2_put_off(http2, go_on_closing);
}

void rd_http2_send(rd_http2 *http2) {
    rd_conn *carrier = http2->carrier;
    if (http2->is_busy || !rd_conn_is_open(carrier)) return;
    http2->is_busy = true;
    fill(http2);
    http2->is_busy = false;
    if (http2->is_over) {
        free_now(http2);
        return;
    }
    if (carrier->out.bytes > 0) rd_conn_mark_dirty(carrier);
    if (rd_conn_is_open(carrier)) end_if_over(http2);
}

void rd_http2_note_failure(rd_http2 *http2) {
    http2->has_failed = true;
    rd_http2_take_no_more(http2);
}

void rd_http2_fail(rd_http2 *http2, uint32_t error) {
    if (http2->has_failed) return;
    if (error != NGHTTP2_NO_ERROR) rd_http2_note_failure(http2);
    nghttp2_session_terminate_session(http2->session, error);
}
