/* SPDX-License-Identifier: MIT
 *
 * From a request to a WebSocket; see websocket.h.
 */
#include "endpoint/endpoint_conn.h"
#include "endpoint/websocket.h"
#include "endpoint/websocket_handshake.h"
#include "request/handler.h"

bool rd_websocket_is_asked(const rd_request *request) {
    rd_slice key;
    return rd_ws_handshake_check(&request->head, request->bytes, &key) == 1;
}

size_t rd_websocket_choose(const rd_request *request, rd_field *fields, size_t count) {
    return rd_ws_handshake_choose(&request->head, request->bytes, fields, count);
}

static const rd_slice dropped[] = {
    RD_SLICE_INIT("connection"),           RD_SLICE_INIT("upgrade"),
    RD_SLICE_INIT("content-length"),       RD_SLICE_INIT("transfer-encoding"),
    RD_SLICE_INIT("sec-websocket-accept"), RD_SLICE_INIT("sec-websocket-extensions"),
};

static rd_ws_extension choose_extension(const rd_request *request) {
    if (!request->conn->set->settings->deflate) return (rd_ws_extension){0};
    return rd_ws_extension_choose(&request->head, request->bytes);
}

rd_endpoint *rd_websocket_upgrade(rd_request *request, const rd_field *fields, size_t count) {
    char accept[RD_WS_ACCEPT_LEN], extensions[RD_WS_EXTENSION_MAX];
    rd_slice key;
    if (request->conn == NULL) return NULL;
    if (rd_ws_handshake_check(&request->head, request->bytes, &key) != 1) return NULL;
    rd_ws_handshake_accept(key, accept);
    const rd_ws_extension extension = choose_extension(request);
    const size_t extensions_len = rd_ws_extension_write(&extension, extensions);
    const rd_field own[] = {
        {RD_SLICE("upgrade"), RD_SLICE("websocket")},
        {RD_SLICE("connection"), RD_SLICE("Upgrade")},
        {RD_SLICE("sec-websocket-accept"), rd_slice_of(accept, sizeof(accept))},
        {RD_SLICE("sec-websocket-extensions"), rd_slice_of(extensions, extensions_len)},
    };
    const rd_endpoint_answer answer = {
        .status = 101,
        .dropped = dropped,
        .dropped_count = sizeof(dropped) / sizeof(dropped[0]),
        .own = own,
        .own_count = extensions_len > 0 ? 4 : 3, /* the last field only if there are extensions */
    };
    if (rd_endpoint_answer_send(request, &answer, fields, count) < 0) return NULL;
    rd_endpoint *endpoint = rd_websocket_new(request->conn, extension.window_bits);
    return rd_endpoint_begin(request, endpoint, &rd_protocol_websocket);
}
