/* SPDX-License-Identifier: MIT
 *
 * The rows of protocols that carry requests; see request_protocols.h.
 */
#include "protocol/request_protocols.h"

#include "protocol/http1.h"
#include "request/handler.h"

const rd_protocol_row rd_protocols[] = {
    {RD_SLICE_INIT("http/1.1"), &rd_protocol_http1},
};
const size_t rd_protocol_count = sizeof(rd_protocols) / sizeof(rd_protocols[0]);

const rd_protocol *const rd_protocol_first = &rd_protocol_http1;

const rd_protocol *rd_protocol_find(rd_slice alpn) {
    for (size_t i = 0; i < rd_protocol_count; i++) {
        if (rd_slice_equal(rd_protocols[i].alpn, alpn)) return rd_protocols[i].protocol;
    }
    return NULL;
}

rd_slice rd_protocol_name_of(const rd_conn *conn) {
    for (size_t i = 0; i < rd_protocol_count; i++) {
        const rd_protocol_row *row = &rd_protocols[i];
        if (row->protocol == conn->protocol && row->protocol != rd_protocol_first) return row->alpn;
    }
    return RD_SLICE("");
}

rd_slice rd_protocol_offer(size_t index) {
    return index < rd_protocol_count ? rd_protocols[index].alpn : RD_SLICE("");
}

rd_slice rd_protocol_offer_http2(size_t index) {
    return index == 0 ? RD_SLICE("h2") : rd_protocol_offer(index - 1);
}

const rd_protocol *rd_protocol_agreed(const rd_conn *conn, rd_slice alpn) {
    const rd_protocol *http2 = rd_http_shared_of(conn)->http2;
    return rd_slice_equal(alpn, RD_SLICE("h2")) ? http2 : rd_protocol_find(alpn);
}
