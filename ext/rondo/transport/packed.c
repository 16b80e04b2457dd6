/* SPDX-License-Identifier: MIT
 *
 * The part of packing and unpacking that all protocols share; see packed.h.
 */
#include "transport/packed.h"

#include "transport/layer.h"

static uint32_t time_left(const rd_conn *conn) {
    const uint64_t now = conn->set->loop->now_ms;
    if (conn->deadlines.protocol == UINT64_MAX) return UINT32_MAX;
    return conn->deadlines.protocol > now ? (uint32_t)(conn->deadlines.protocol - now) : 0;
}

bool rd_conn_may_move(rd_conn *conn) {
    return rd_conn_own_transport(conn)->can_move && conn->protocol->pack != NULL &&
           !rd_conn_is_forwarded(conn);
}

bool rd_conn_pack(rd_conn *conn, bool request, rd_packed *packed) {
    if (!rd_conn_is_open(conn) || !rd_conn_may_move(conn)) return false;
    if (conn->out.bytes > 0 || conn->read_eof) return false;
    if (conn->layered && !rd_layer_is_at_rest(conn)) return false;
    if (conn->read_paused && !request) return false; /* an answer is still being sent */
    *packed = (rd_packed){
        .left_ms = time_left(conn),
        .parts[RD_PACKED_INPUT] =
            rd_slice_of(rd_buffer_ptr(&conn->input), rd_buffer_len(&conn->input)),
    };
    return conn->protocol->pack(conn, request, packed);
}

void rd_conn_unpack(rd_conn *conn, const rd_packed *packed) {
    conn->protocol->unpack(conn, packed);
}

size_t rd_packed_len(const rd_packed *packed) {
    size_t len = 0;
    for (size_t i = 0; i < RD_PACKED_PARTS; i++) len += packed->parts[i].len;
    return len;
}
