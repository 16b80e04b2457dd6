/* SPDX-License-Identifier: MIT
 *
 * The opening as a protocol of its own; see opening.h.
 */
#include "protocol/opening.h"

#include <assert.h>

#include "base/error.h"
#include "endpoint/raw.h"
#include "protocol/http1_responder.h"
#include "protocol/request_protocols.h"
#include "transport/layer.h"
#include "transport/packed.h"
#include "protocol/proxy_header.h"

#define HANDSHAKE_MS 10000 /* for a handshake; less if the settings give heads less */

typedef enum rd_opening_step { PROXY, HANDSHAKE } rd_opening_step;

typedef struct rd_opening {
    rd_opening_step step;
    uint32_t maker;    /* of a raw connection: the listener's number */
    uint64_t head_due; /* ms: the end of the first head */
} rd_opening;

/* Has room for the protocol that follows, too. */
typedef union rd_opening_room {
    rd_opening opening;
    rd_http1 http1;
} rd_opening_room;

static rd_opening *opening_of(rd_conn *conn) {
    return rd_conn_state_of(conn);
}

static bool has_proxy_header(const rd_conn_set *set, const rd_address *peer) {
    const rd_http_shared *shared = set->shared;
    return rd_networks_contain(shared->proxies, shared->proxy_count, peer);
}

bool rd_opening_is_needed(const rd_conn_set *set, const rd_transport *transport,
                          const rd_address *peer) {
    assert((transport->begin == NULL) == (transport->handshake == NULL));
    return transport->handshake != NULL || has_proxy_header(set, peer);
}

/* ---- the way to the protocol ---- */

static bool is_raw(const rd_conn *conn) {
    return conn->protocol == &rd_protocol_raw_opening;
}

/* Switches to the protocol. The deadline of the opening stays if it is earlier. */
static void go_on_with(rd_conn *conn, const rd_protocol *protocol) {
    const uint64_t due = opening_of(conn)->head_due;
    rd_conn_switch(conn, protocol);
    protocol->on_open(conn);
    if (due < conn->deadlines.protocol) rd_conn_set_deadline(conn, due);
}

/* A raw connection has no head that would have a deadline. */
static void go_on_raw(rd_conn *conn) {
    const uint32_t maker = opening_of(conn)->maker;
    rd_conn_switch(conn, &rd_protocol_raw);
    rd_protocol_raw.on_open(conn);
    rd_raw_set_maker(conn, maker);
}

static void go_on_with_first(rd_conn *conn) {
    if (is_raw(conn)) {
        go_on_raw(conn);
    } else {
        go_on_with(conn, rd_protocol_first);
    }
}

/* Switches to the first protocol, which refuses and reports it. A raw connection has no words for
 * that. */
static void refuse(rd_conn *conn, int code) {
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    if (is_raw(conn)) {
        handler->on_refused(handler, conn, code);
        rd_conn_finish(conn, true);
    } else {
        go_on_with(conn, rd_protocol_first);
        rd_http1_refuse(conn, code);
    }
}

static void take_input(rd_conn *conn, rd_buffer *input) {
    *input = conn->input;
    conn->input = (rd_buffer){0};
    rd_conn_count_input(conn);
}

static void set_due(rd_conn *conn, uint64_t due) {
    opening_of(conn)->head_due = due;
    rd_conn_set_deadline(conn, due);
}

/* A transport that fails has said why, and the connection lingers so that the peer reads that. If
 * there is no room, nothing was said, and what was read is freed at once. A client without the
 * transport's handshake gets its answer in plain text. */
static void refuse_handshake(rd_conn *conn, int code) {
    rd_handler *handler = rd_http_shared_of(conn)->handler;
    if (code != RD_ERR_INPUT_FULL && rd_error_class(code) == RD_ERROR_PEER) {
        refuse(conn, code);
        return;
    }
    if (code != RD_ERR_CLOSED) handler->on_refused(handler, conn, code);
    rd_conn_finish(conn, code != RD_ERR_INPUT_FULL);
}

static void begin_handshake(rd_conn *conn, const char *ahead, size_t len) {
    const uint64_t due = conn->set->loop->now_ms + HANDSHAKE_MS;
    opening_of(conn)->step = HANDSHAKE;
    if (due < conn->deadlines.protocol) rd_conn_set_deadline(conn, due);
    if (!rd_layer_begin(conn, ahead, len)) refuse_handshake(conn, RD_ERR_INPUT_FULL);
}

/* Goes on behind the PROXY header; `bytes` are not in conn->input. */
static void end_proxy_header(rd_conn *conn, const char *bytes, size_t len) {
    if (conn->layered) {
        begin_handshake(conn, bytes, len);
        return;
    }
    go_on_with_first(conn);
    if (len > 0) conn->protocol->on_data(conn, bytes, len);
}

static void on_handshake(rd_conn *conn, int code) {
    if (code != 0) {
        refuse_handshake(conn, code);
        return;
    }
    const rd_protocol *protocol = rd_protocol_agreed(conn, rd_layer_agreed(conn));
    if (protocol == NULL || is_raw(conn)) {
        go_on_with_first(conn);
    } else {
        go_on_with(conn, protocol);
    }
}

/* ---- the PROXY header ---- */

/* Returns the bytes of the header; 0: it is incomplete, < 0: it is invalid. */
static int read_proxy_header(rd_conn *conn, const char *bytes, size_t len) {
    rd_proxy_header header;
    const int used = rd_proxy_header_parse(bytes, len, &header);
    if (used > 0 && header.has_addresses) {
        rd_address_from_sockaddr(&conn->peer, (const struct sockaddr *)&header.source);
    }
    return used;
}

/* Whether the peer may do without a header, and does. */
static bool lacks_header(const rd_conn *conn) {
    const rd_buffer *input = &conn->input;
    return rd_http_shared_of(conn)->proxy_optional &&
           rd_proxy_header_is_absent(rd_buffer_ptr(input), rd_buffer_len(input));
}

static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_buffer input;
    rd_buffer_append(&conn->input, bytes, len);
    const int used =
        read_proxy_header(conn, rd_buffer_ptr(&conn->input), rd_buffer_len(&conn->input));
    if (used < 0 && lacks_header(conn)) {
        take_input(conn, &input);
        end_proxy_header(conn, rd_buffer_ptr(&input), rd_buffer_len(&input));
        rd_buffer_clear(&input);
    } else if (used < 0) {
        refuse(conn, used);
    } else if (used == 0) {
        if (!rd_conn_count_input(conn)) refuse(conn, RD_ERR_INPUT_FULL);
    } else {
        take_input(conn, &input);
        rd_buffer_consume(&input, (size_t)used);
        end_proxy_header(conn, rd_buffer_ptr(&input), rd_buffer_len(&input));
        rd_buffer_clear(&input);
    }
}

/* ---- the life of the connection ---- */

static void on_open(rd_conn *conn) {
    const uint64_t timeout = (uint64_t)conn->set->settings->head_timeout_ms;
    set_due(conn, conn->set->loop->now_ms + timeout);
    if (!has_proxy_header(conn->set, &conn->peer)) {
        begin_handshake(conn, NULL, 0);
        return;
    }
    opening_of(conn)->step = PROXY;
    if (conn->layered) rd_layer_hold(conn);
}

static void on_eof(rd_conn *conn) {
    rd_conn_finish(conn, false);
}

/* A handshake that waits in the server's line is late, but not because of its peer. A peer that has
 * sent nothing is not worth a line in the log. */
static void on_timeout(rd_conn *conn) {
    const uint64_t later = conn->set->loop->now_ms + 1000;
    if (conn->layered && rd_layer_is_in_line(conn)) {
        if (opening_of(conn)->head_due < later) opening_of(conn)->head_due = later;
        rd_conn_set_deadline(conn, later);
    } else if (opening_of(conn)->step == HANDSHAKE && rd_conn_layer(conn)->has_heard) {
        refuse_handshake(conn, RD_ERR_TLS_TIMEOUT);
    } else {
        rd_conn_finish(conn, false);
    }
}

static void on_nothing(rd_conn *conn) {
    (void)conn;
}

/* A load balancer may open connections long before it uses them. A connection whose handshake does
 * not come is not worth keeping. */
static bool is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    const uint64_t timeout = (uint64_t)conn->set->settings->head_timeout_ms;
    const rd_opening *opening = opening_of(conn);
    return !kept && opening->step == HANDSHAKE && opening->head_due <= since_ms + timeout;
}

/* Does the same as HTTP/1.1 before its first request. */
static void on_shutdown(rd_conn *conn) {
    const uint64_t grace_ms = (uint64_t)conn->set->settings->idle_grace_ms;
    const uint64_t due = conn->set->loop->now_ms + grace_ms;
    if (grace_ms == 0) {
        rd_conn_finish(conn, false);
    } else if (due < conn->deadlines.protocol) {
        set_due(conn, due);
    }
}

/* ---- in another process ---- */

static bool pack(rd_conn *conn, bool request, rd_packed *packed) {
    packed->begun = false;
    return !request && !conn->layered;
}

static void unpack(rd_conn *conn, const rd_packed *packed) {
    const rd_slice input = packed->parts[RD_PACKED_INPUT];
    if (input.len > 0) {
        rd_conn_take_data(conn, input.ptr, input.len);
    } else {
        rd_conn_read_now(conn);
    }
    if (!rd_conn_is_open(conn) || conn->protocol != &rd_protocol_opening) return;
    if (packed->left_ms == UINT32_MAX) return;
    set_due(conn, conn->set->loop->now_ms + packed->left_ms);
}

const rd_protocol rd_protocol_opening = {
    .state_size = sizeof(rd_opening_room),
    .on_open = on_open,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_drained = on_nothing,
    .on_timeout = on_timeout,
    .on_close = on_nothing,
    .is_spare = is_spare,
    .on_shutdown = on_shutdown,
    .pack = pack,
    .unpack = unpack,
    .on_handshake = on_handshake,
};

const rd_protocol rd_protocol_raw_opening = {
    .state_size = sizeof(rd_opening),
    .on_open = on_open,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_drained = on_nothing,
    .on_timeout = on_timeout,
    .on_close = on_nothing,
    .is_spare = is_spare,
    .on_shutdown = on_shutdown,
    .on_handshake = on_handshake,
    .is_silent = true,
};

void rd_opening_set_maker(rd_conn *conn, uint32_t number) {
    assert(is_raw(conn));
    opening_of(conn)->maker = number;
}
