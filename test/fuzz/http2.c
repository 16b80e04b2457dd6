/* SPDX-License-Identifier: MIT
 *
 * A connection of HTTP/2 with a whole server: what the client sends behind its preface is the
 * input, in pieces whose size the first byte says; the second byte says how the application
 * answers. Holds: no crash; whatever the client sends, the connection ends when the client goes,
 * and nothing is held then.
 */
#include "fuzz_server.h"

#include "http2_peer.h"

static uint8_t manner; /* of the application: a bit for each choice */
static char large[100000];

static void start_only(rd_request *request) {
    const rd_response_head head = {.status = 200, .length = -1};
    request->responder->start(request, &head);
    request->responder->write(request, "part", 4);
    request->responder->flush(request);
}

static void answer(rd_request *request) {
    const rd_response_head hints = {.status = 103};
    if (manner & 1) request->responder->inform(request, &hints);
    if (request->conn == NULL) return;
    if (manner & 2) request->responder->want_body(request);
    if (request->conn == NULL) return;
    if (manner & 4) {
        answer_with(request, large, sizeof(large));
    } else if (manner & 8) {
        start_only(request);
        if (manner & 16 && request->conn != NULL) request->responder->abort(request);
        if (manner & 32 && request->conn != NULL) request->responder->finish(request);
    } else {
        answer_path(request);
    }
}

static void hear_nothing(int fd) {
    char bytes[65536];
    if (manner & 64) return; /* a client that does not read */
    while (recv(fd, bytes, sizeof(bytes), 0) > 0) continue;
}

static int begin(void) {
    if (server == NULL) {
        rd_settings_init(&settings);
        settings.http2 = settings.http2_websocket = 1;
        settings.max_body_bytes = 100000;
        start(answer);
    }
    const int fd = join();
    say(fd, PREFACE);
    fuzz_turn();
    return fd;
}

static void finish(int fd) {
    close(fd);
    for (int i = 0; i < 100 && server->conns.count > 0; i++) {
        pass_ms(10000);
        fuzz_turn();
    }
    fuzz_turn();
    FUZZ_CHECK(rd_list_is_empty(&server->conns.carried));
    FUZZ_CHECK(server->http.requests.live == 0);
    fuzz_check_nothing_is_held();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (len < 2 || len > 4096) return 0;
    const size_t piece = bytes[0] == 0 ? len : bytes[0];
    manner = bytes[1];
    const int fd = begin();
    for (size_t at = 2; at < len; at += piece) {
        const size_t part = len - at < piece ? len - at : piece;
        if (send(fd, bytes + at, part, MSG_NOSIGNAL) < 0) break;
        fuzz_turn();
        hear_nothing(fd);
    }
    if (manner & 128) pass_ms(40000);
    fuzz_turn();
    hear_nothing(fd);
    finish(fd);
    return 0;
}
