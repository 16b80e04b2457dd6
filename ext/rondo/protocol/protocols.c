/* SPDX-License-Identifier: MIT
 *
 * The rows of the table; see protocols.h.
 */
#include "protocol/protocols.h"

#include "endpoint/sse.h"
#include "endpoint/sse_accept.h"
#include "endpoint/websocket.h"
#include "endpoint/websocket_deflate.h"
#include "protocol/http1_responder.h"
#include "protocol/opening.h"

_Static_assert(sizeof(rd_websocket_input) <= sizeof(rd_http1), "a connection cannot grow");

/* ---- connections ---- */

const rd_protocol *rd_protocol_begin(const rd_conn_set *set, const rd_transport *transport,
                                     const rd_address *peer) {
    return rd_opening_is_needed(set, transport, peer) ? &rd_protocol_opening : rd_protocol_first;
}

rd_conn *rd_protocol_open_raw(rd_conn_set *set, int fd, const rd_transport *transport,
                              const rd_address *peer, uint32_t number) {
    const bool opens = rd_opening_is_needed(set, transport, peer);
    const rd_protocol *protocol = opens ? &rd_protocol_raw_opening : &rd_protocol_raw;
    rd_conn *conn = rd_conn_open(set, fd, transport, protocol, peer);
    if (opens) {
        rd_opening_set_maker(conn, number);
    } else {
        rd_raw_set_maker(conn, number);
    }
    return conn;
}

rd_slice rd_protocol_busy(void) {
    return rd_http1_busy;
}

/* ---- upgrades ---- */

static bool names_websocket(const rd_request *request) {
    (void)request;
    return true; /* ordinary requests have no Upgrade */
}

static bool names_sse(const rd_request *request) {
    return rd_sse_is_accepted(&request->head, request->bytes);
}

static const rd_upgrade_row upgrades[] = {
    {
        .name = RD_SLICE_INIT("websocket"),
        .header_id = RD_HEADER_UPGRADE,
        .status = 101,
        .same_origin = true,
        .is_asked = rd_websocket_is_asked,
        .is_named = names_websocket,
        .choose = rd_websocket_choose,
        .begin = rd_websocket_upgrade,
    },
    {
        .name = RD_SLICE_INIT("sse"),
        .header_id = RD_HEADER_ACCEPT,
        .status = 200,
        .text_only = true,
        .is_asked = rd_sse_is_asked,
        .is_named = names_sse,
        .begin = rd_sse_upgrade,
    },
};

const rd_upgrade_row rd_upgrade_raw = {.name = RD_SLICE_INIT("raw"), .bytes_only = true};

const rd_upgrade_row *rd_upgrade_websocket(void) {
    return &upgrades[0];
}

#define EACH_UPGRADE(row)                                                                          \
    for (const rd_upgrade_row *row = upgrades;                                                     \
         row < upgrades + sizeof(upgrades) / sizeof(upgrades[0]); row++)

const rd_upgrade_row *rd_upgrade_asked(const rd_request *request) {
    EACH_UPGRADE(row) {
        if (rd_head_has(&request->head, row->header_id) && row->is_asked(request)) return row;
    }
    return NULL;
}

bool rd_upgrade_is_named(const rd_request *request) {
    EACH_UPGRADE(row) {
        if (rd_head_has(&request->head, row->header_id) && row->is_named(request)) return true;
    }
    return false;
}

void rd_protocols_clear(rd_http_shared *shared) {
    rd_ws_deflate_free(shared->deflate);
    rd_endpoint_messages_clear(shared);
}
