/* SPDX-License-Identifier: MIT
 *
 * Deadlines and the end of a connection of HTTP/2; see http2_time.h.
 */
#include "http2/http2_time.h"

#include <string.h>

#define SILENCE_MS     30000 /* of a client with open streams, until it gets a PING */
#define UNANSWERED_MAX 2     /* PINGs */

static const uint8_t goodbye[] = "goodbye"; /* eight bytes with its end, as a PING has */

static void set_deadline(rd_http2 *http2, int64_t in_ms) {
    rd_conn_set_deadline(http2->carrier, http2->carrier->set->loop->now_ms + (uint64_t)in_ms);
}

void rd_http2_expect(rd_http2 *http2) {
    const rd_settings *settings = http2->carrier->set->settings;
    if (!rd_conn_is_open(http2->carrier) || http2->is_warned) return;
    if (http2->head.is_decoding) {
        set_deadline(http2, settings->head_timeout_ms);
    } else if (http2->stream_count > 0) {
        set_deadline(http2, SILENCE_MS);
    } else if (http2->served > 0) {
        set_deadline(http2, settings->keep_alive_timeout_ms);
    } /* before the first head the deadline of the beginning holds */
}

void rd_http2_hear(rd_http2 *http2) {
    http2->heard_ms = http2->carrier->set->loop->now_ms;
    http2->unanswered = 0;
}

/* ---- a client that may not be there any more ---- */

/* What the server has sent comes before a PING, and may take long. A client that lets it wait has
 * the deadlines of writing. */
static bool takes_bytes(rd_http2 *http2) {
    rd_conn *carrier = http2->carrier;
    const uint32_t before = http2->unread;
    http2->unread = carrier->transport->count_unread(carrier);
    return carrier->out.bytes > 0 || http2->unread < before;
}

static void ask_for_life(rd_http2 *http2) {
    const uint64_t now = http2->carrier->set->loop->now_ms, silent_ms = now - http2->heard_ms;
    if (http2->carrier->read_eof) {
        rd_conn_set_deadline(http2->carrier, UINT64_MAX); /* it cannot answer, and has said so */
    } else if (silent_ms < SILENCE_MS) {
        set_deadline(http2, SILENCE_MS - (int64_t)silent_ms);
    } else if (takes_bytes(http2)) {
        set_deadline(http2, SILENCE_MS);
    } else if (http2->unanswered == UNANSWERED_MAX) {
        rd_http2_fail(http2, NGHTTP2_NO_ERROR);
    } else {
        http2->unanswered++;
        nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, NULL);
        set_deadline(http2, SILENCE_MS);
    }
}

/* ---- the end ---- */

void rd_http2_warn(rd_http2 *http2) {
    if (http2->is_warned) return;
    nghttp2_submit_shutdown_notice(http2->session);
    nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, goodbye);
    http2->is_warned = true;
    set_deadline(http2, http2->carrier->set->settings->idle_grace_ms);
}

static void end(rd_http2 *http2) {
    const int32_t last = nghttp2_session_get_last_proc_stream_id(http2->session);
    if (http2->stream_count == 0) {
        rd_http2_fail(http2, NGHTTP2_NO_ERROR);
        return;
    }
    nghttp2_submit_goaway(http2->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0);
    http2->is_ending = true;
    http2->frames.opens_none = true;
    set_deadline(http2, SILENCE_MS);
}

void rd_http2_take_pong(rd_http2 *http2, const uint8_t *payload) {
    if (rd_http2_take_arrival(http2, payload)) return;
    const bool is_goodbye = memcmp(payload, goodbye, sizeof(goodbye)) == 0;
    if (is_goodbye && http2->is_warned && !http2->is_ending) end(http2);
}

/* ---- deadlines that are over ---- */

void rd_http2_time_out(rd_http2 *http2) {
    if (http2->is_warned && !http2->is_ending) {
        end(http2);
    } else if (http2->stream_count > 0 && (http2->is_ending || !http2->head.is_decoding)) {
        ask_for_life(http2);
    } else {
        rd_http2_fail(http2, NGHTTP2_NO_ERROR);
    }
}
