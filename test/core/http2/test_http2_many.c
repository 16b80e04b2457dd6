/* SPDX-License-Identifier: MIT
 *
 * HTTP/2 (http2/http2.c, http2/http2_stream.c): many streams, each ended in one of the ways in
 * which streams end, on connections that end in one of theirs; then nothing is held, and the leak
 * sanitizer finds nothing. RONDO_STREAMS says how many.
 */
#include "http2_serving.h"

#include "http2/http2_session.h"

enum { A_CONNECTION = 400, AT_ONCE = 40, WAYS = 8 };

static char long_body[70000];
static rd_request *kept[A_CONNECTION];
static size_t kept_count;

static void answer(rd_request *request) {
    const rd_slice path = rd_request_slice(request, request->head.path);
    if (rd_slice_equal(path, RD_SLICE("/kept"))) {
        rd_request_ref(request);
        kept[kept_count++] = request;
    } else if (rd_slice_equal(path, RD_SLICE("/long"))) {
        answer_with(request, long_body, sizeof(long_body));
    } else if (rd_slice_equal(path, RD_SLICE("/cut"))) {
        const rd_response_head head = {.status = 200, .length = -1};
        request->responder->start(request, &head);
        request->responder->write(request, "half", 4);
        request->responder->abort(request);
    } else {
        answer_path(request);
    }
}

static void put_stream(uint32_t id) {
    switch (id / 2 % WAYS) {
    case 0:
        put_get(&out, id, "/answered");
        break;
    case 1:
        put_get(&out, id, "/reset");
        put_reset(&out, id, NGHTTP2_CANCEL);
        break;
    case 2: /* malformed */
        put_head_with(&out, id, NGHTTP2_FLAG_END_STREAM, HEAD_FIELDS("GET", "nonsense"));
        break;
    case 3:
        put_head_with(&out, id, 0, HEAD_FIELDS("POST", "/body"));
        put_data(&out, id, "some of it", false);
        put_data(&out, id, "the rest", true);
        break;
    case 4: /* the client takes no more than its window */
        put_get(&out, id, "/long");
        put_reset(&out, id, NGHTTP2_CANCEL);
        break;
    case 5:
        put_get(&out, id, "/cut");
        break;
    case 6: /* goes while the application has it */
        put_get(&out, id, "/kept");
        break;
    default: /* without its body */
        put_head_with(&out, id, 0, HEAD_FIELDS("POST", "/half"));
        put_data(&out, id, "half", false);
        put_reset(&out, id, NGHTTP2_CANCEL);
        break;
    }
}

static void give_back(void) {
    rd_loop_lock(&server->loop);
    for (size_t i = 0; i < kept_count; i++) {
        if (kept[i]->conn != NULL && i % 2 == 0) answer_path(kept[i]);
        rd_request_unref(kept[i]);
    }
    kept_count = 0;
    rd_loop_unlock(&server->loop);
}

/* How a connection ends: at rest, with streams, in the middle of a frame, by a broken rule. */
static void end_connection(int fd, uint32_t number) {
    if (number % 4 == 1) put_get(&out, 2 * A_CONNECTION + 1, "/kept");
    if (number % 4 == 2) put(&out, "\0\0\5", 3);
    if (number % 4 == 3) put_frame(&out, NGHTTP2_DATA, 0, 0, "x", 1);
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    turns(2);
    close(fd);
    for (int i = 0; i < 50 && server->conns.count > 0; i++) turn();
    turns(2);
    give_back();
    CHECK_INT(server->conns.count, 0);
    CHECK_INT(server->http.http2_counts.streams, 0);
    CHECK_INT(server->conns.layers.count, 0);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_INPUT].held, 0);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_OUTPUT].held, 0);
}

static void serve_connection(uint32_t number) {
    const int fd = join();
    peer_begin();
    out.len = 0;
    put_opening(&out);
    tell(fd, &out);
    for (uint32_t i = 0; i < A_CONNECTION; i++) {
        put_stream(2 * i + 1);
        if (i % AT_ONCE != AT_ONCE - 1) continue;
        for (int turn_count = 0; turn_count < 3; turn_count++) tell(fd, &out);
        give_back();
        tell(fd, &out);
        peer_forget_streams();
    }
    CHECK(!server_said.closed);
    CHECK_INT(server_said.goaway, NO_CODE);
    end_connection(fd, number);
    peer_end();
    pass_ms(1000);
}

int main(void) {
    const char *text = getenv("RONDO_STREAMS");
    const uint32_t count = text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 4 * A_CONNECTION;
    rd_settings_init(&settings);
    settings.linger_timeout_ms = 0;
    settings.http2 = 1;
    start(answer);
    for (uint32_t i = 0; i * A_CONNECTION < count; i++) serve_connection(i);
    end();
    return check_summary();
}
