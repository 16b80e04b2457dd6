/* SPDX-License-Identifier: MIT
 *
 * From a wish to a connection or a failure; see outgoing.h.
 */
#include "protocol/outgoing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "system/random.h"
#include "endpoint/endpoint_conn.h"
#include "endpoint/raw.h"
#include "endpoint/websocket.h"
#include "request/handler.h"
#include "transport/layer.h"

typedef struct rd_outgoing {
    rd_list node;
    rd_dial dial;
    rd_outgoings *all;
    rd_endpoint *endpoint;
    rd_conn *conn; /* in its handshake, or NULL */
    const rd_transport *transport;
    char *peer_name;
    rd_ws_call *call; /* NULL: a raw connection */
    uint64_t due_ms;
} rd_outgoing;

static const rd_slice stops = RD_SLICE_INIT("the server stops");
static const rd_slice no_room = RD_SLICE_INIT("there is no room for another connection");

void rd_outgoings_init(rd_outgoings *outgoings, rd_conn_set *set, const uint32_t *conn_limit) {
    *outgoings = (rd_outgoings){.set = set, .conn_limit = conn_limit};
    rd_dialer_init(&outgoings->dialer, set->loop, &set->ledger);
    outgoings->dialer.nodelay = set->settings->tcp_nodelay != 0;
    rd_list_init(&outgoings->all);
}

bool rd_outgoings_are_full(const rd_outgoings *outgoings) {
    const uint64_t limit = (uint64_t)outgoings->set->settings->max_dials;
    return outgoings->count >= limit || outgoings->dialer.waits >= limit;
}

/* Frees it, and returns its endpoint. */
static rd_endpoint *leave(rd_outgoing *outgoing) {
    rd_endpoint *endpoint = outgoing->endpoint;
    rd_list_unlink(&outgoing->node);
    outgoing->all->count--;
    rd_transport_unref(outgoing->transport);
    rd_free(outgoing->peer_name);
    rd_free(outgoing->call);
    rd_free(outgoing);
    return endpoint;
}

static void fail(rd_outgoing *outgoing, rd_slice why) {
    rd_endpoint_failed(leave(outgoing), why);
}

/* ---- the connection ---- */

/* The state of a connection in its handshake. */
static rd_outgoing **place_of(rd_conn *conn) {
    return rd_conn_state_of(conn);
}

/* The connection does not know it any more. */
static rd_outgoing *take(rd_conn *conn) {
    rd_outgoing *outgoing = *place_of(conn);
    *place_of(conn) = NULL;
    return outgoing;
}

static void give_up(rd_conn *conn, rd_slice why) {
    fail(take(conn), why);
    rd_conn_finish(conn, false);
}

static void on_nothing(rd_conn *conn) {
    (void)conn;
}

static void give_up_for(rd_conn *conn, const char *why) {
    give_up(conn, rd_slice_of(why, strlen(why)));
}

/* Bytes of the application can be sent: the WebSocket's request, or those of a raw connection. */
static void begin_protocol(rd_conn *conn) {
    rd_outgoing *outgoing = *place_of(conn);
    if (outgoing->call == NULL) {
        rd_endpoint_connected(leave(outgoing), conn, &rd_protocol_raw);
        return;
    }
    rd_buffer request = {0};
    uint8_t key[RD_WS_KEY_BYTES];
    rd_random(key, sizeof(key));
    rd_ws_call_set_key(outgoing->call, key);
    rd_ws_call_write(outgoing->call, &request);
    rd_outq_copy(&conn->out, &conn->set->chunks, rd_buffer_ptr(&request), rd_buffer_len(&request));
    rd_buffer_clear(&request);
    rd_conn_mark_dirty(conn);
}

static void on_handshake(rd_conn *conn, int code) {
    if (code == 0) {
        begin_protocol(conn);
        return;
    }
    const char *reason = rd_layer_reason(conn);
    give_up_for(conn, reason == NULL ? rd_error_text(code) : reason);
}

static void refuse_answer(rd_conn *conn, int code, int status) {
    char why[64];
    if (code != RD_ERR_WS_ANSWER_STATUS) {
        give_up_for(conn, rd_error_text(code));
        return;
    }
    snprintf(why, sizeof(why), "the answer to the WebSocket handshake is %d", status);
    give_up_for(conn, why);
}

/* What comes behind the answer are frames already. */
static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_outgoing *outgoing = *place_of(conn);
    rd_ws_answer answer;
    if (outgoing == NULL) return;
    rd_buffer_append(&conn->input, bytes, len);
    if (!rd_conn_count_input(conn)) {
        refuse_answer(conn, RD_ERR_INPUT_FULL, 0);
        return;
    }
    const int head = rd_ws_answer_read(outgoing->call, rd_buffer_ptr(&conn->input),
                                       rd_buffer_len(&conn->input), &answer);
    if (head < 0) {
        refuse_answer(conn, head, answer.status);
    } else if (head > 0) {
        rd_buffer_consume(&conn->input, (size_t)head);
        rd_websocket_connected(leave(outgoing), conn, &answer);
    }
}

static void on_eof(rd_conn *conn) {
    if (*place_of(conn) != NULL && (!conn->layered || !rd_layer_is_shaking(conn)))
        give_up_for(conn, "the peer has ended the handshake");
}

static void on_timeout(rd_conn *conn) {
    if (*place_of(conn) != NULL) give_up(conn, RD_SLICE("the handshake has not ended in time"));
}

static void on_shutdown(rd_conn *conn) {
    if (*place_of(conn) != NULL) give_up(conn, stops);
}

/* There is no room for its handshake, or for what has come. */
static void on_refused(rd_conn *conn, int code) {
    if (*place_of(conn) == NULL) return;
    fail(take(conn), rd_slice_of(rd_error_text(code), strlen(rd_error_text(code))));
}

static const rd_slice is_slow = RD_SLICE_INIT("the peer does not read the handshake");

static void on_stalled(rd_conn *conn) {
    if (*place_of(conn) != NULL) fail(take(conn), is_slow);
}

/* It was not closed from here. */
static void on_close(rd_conn *conn) {
    const bool is_late = rd_conn_write_deadline(conn) <= conn->set->loop->now_ms;
    if (*place_of(conn) == NULL) return;
    fail(take(conn), is_late ? is_slow : RD_SLICE("the handshake was cut"));
}

static bool is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    (void)conn, (void)kept, (void)since_ms;
    return false;
}

#define PROTOCOL(size)                                                                             \
    {                                                                                              \
        .state_size = (size), .on_open = on_nothing, .on_data = on_data, .on_eof = on_eof,         \
        .on_drained = on_nothing, .on_timeout = on_timeout, .on_close = on_close,                  \
        .is_spare = is_spare, .on_shutdown = on_shutdown, .on_stalled = on_stalled,                \
        .on_refused = on_refused, .on_handshake = on_handshake, .is_silent = true,                 \
    }

static const rd_protocol rd_protocol_outgoing = PROTOCOL(sizeof(void *));
/* The same, with room for what follows. */
static const rd_protocol rd_protocol_calling = PROTOCOL(sizeof(rd_websocket_input));

static bool has_room(const rd_outgoings *outgoings) {
    const rd_conn_set *set = outgoings->set;
    return set->count < *outgoings->conn_limit && !rd_ledger_lacks_descriptors(&set->ledger);
}

static void open_conn(rd_outgoing *outgoing, int fd, const rd_address *peer) {
    rd_conn_set *set = outgoing->all->set;
    const bool is_raw = outgoing->call == NULL;
    const rd_protocol *protocol = is_raw ? &rd_protocol_outgoing : &rd_protocol_calling;
    rd_tcp_keep_alive(fd, (unsigned)(set->settings->ping_interval_ms / 1000));
    rd_conn *conn = rd_conn_open(set, fd, outgoing->transport, protocol, peer);
    *place_of(conn) = outgoing;
    outgoing->conn = conn;
    rd_conn_set_deadline(conn, outgoing->due_ms);
    if (conn->layered) {
        conn->transport->name_peer(conn, outgoing->peer_name);
        rd_layer_begin(conn, NULL, 0);
    } else {
        begin_protocol(conn);
        rd_conn_read_now(conn);
    }
}

static void on_dialed(rd_dial *dial, int fd, const rd_address *peer) {
    rd_outgoing *outgoing = RD_CONTAINER(dial, rd_outgoing, dial);
    if (fd < 0) {
        fail(outgoing, rd_slice_of(dial->why, strlen(dial->why)));
    } else if (!has_room(outgoing->all)) {
        close(fd);
        fail(outgoing, no_room);
    } else {
        open_conn(outgoing, fd, peer);
    }
}

/* ---- from the application ---- */

static char *copy_of(const char *name) {
    if (name == NULL) return NULL;
    const size_t size = strlen(name) + 1;
    return memcpy(rd_alloc(size), name, size);
}

static rd_slice put(char **room, rd_slice text) {
    char *at = *room;
    if (text.len > 0) memcpy(at, text.ptr, text.len);
    *room += text.len;
    return rd_slice_of(at, text.len);
}

/* With what its slices are of behind it. */
static rd_ws_call *copy_of_call(const rd_ws_call *call) {
    if (call == NULL) return NULL;
    const size_t len = call->target.len + call->host.len + call->fields.len + call->protocols.len;
    rd_ws_call *copy = rd_alloc(sizeof(*copy) + len);
    char *room = (char *)(copy + 1);
    *copy = *call;
    copy->target = put(&room, call->target);
    copy->host = put(&room, call->host);
    copy->fields = put(&room, call->fields);
    copy->protocols = put(&room, call->protocols);
    return copy;
}

static void dial(rd_outgoing *outgoing, const rd_destination *where) {
    rd_dialer *dialer = &outgoing->all->dialer;
    const uint64_t due_ms = outgoing->due_ms;
    outgoing->dial.on_done = on_dialed;
    if (where->host != NULL) {
        rd_dial_name(dialer, &outgoing->dial, where->host, where->port, due_ms);
    } else {
        rd_dial_begin(dialer, &outgoing->dial, where->targets, due_ms);
    }
}

rd_endpoint *rd_outgoing_endpoint(const rd_outgoings *outgoings, const rd_destination *where) {
    rd_http_shared *shared = outgoings->set->shared;
    return where->websocket == NULL ? rd_raw_dialing(shared) : rd_websocket_dialing(shared);
}

void rd_outgoing_begin(rd_outgoings *outgoings, rd_endpoint *endpoint,
                       const rd_destination *where) {
    if (outgoings->has_stopped) {
        rd_free(where->targets);
        rd_endpoint_failed(endpoint, stops);
        return;
    }
    rd_outgoing *outgoing = rd_alloc_zero(sizeof(*outgoing));
    outgoing->all = outgoings;
    outgoing->endpoint = endpoint;
    outgoing->due_ms = outgoings->dialer.loop->now_ms + where->timeout_ms;
    outgoing->transport =
        rd_transport_ref(where->transport == NULL ? &rd_transport_tcp : where->transport);
    outgoing->peer_name = copy_of(where->peer_name);
    outgoing->call = copy_of_call(where->websocket);
    rd_list_append(&outgoings->all, &outgoing->node);
    outgoings->count++;
    dial(outgoing, where);
}

unsigned rd_outgoing_subprotocol(rd_endpoint *endpoint) {
    return rd_websocket_subprotocol(endpoint);
}

void rd_outgoings_stop(rd_outgoings *outgoings) {
    outgoings->has_stopped = true;
    while (!rd_list_is_empty(&outgoings->all)) {
        rd_outgoing *outgoing = RD_CONTAINER(outgoings->all.next, rd_outgoing, node);
        if (outgoing->conn != NULL) {
            give_up(outgoing->conn, stops);
        } else {
            rd_dial_cancel(&outgoing->dial);
            fail(outgoing, stops);
        }
    }
}
