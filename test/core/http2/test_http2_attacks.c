/* SPDX-License-Identifier: MIT
 *
 * HTTP/2 (http2/http2.c, http2/http2_stream.c): clients that mean harm, or only have bad luck. What
 * they make the server hold, and what of their connection has to live on.
 */
#include "http2_serving.h"

#include "http2/http2_session.h"

enum { FRAME = 16384 };

static char body[1 << 20];
static size_t body_size;

static void answer_body(rd_request *request) {
    answer_with(request, body, body_size);
}

/* Sizes around those of frames and of what is queued ahead. */
static void test_sizes_of_answers(void) {
    for (size_t frames = 1; frames <= 24; frames++) {
        for (size_t more = 0; more < 3; more++) {
            body_size = frames * FRAME + more - 1;
            const int fd = begin_with(answer_body);
            put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30);
            put_window(&out, 0, 1 << 30);
            put_get(&out, 1, "/");
            for (int i = 0; i < 40 && !peer_of(1)->ended; i++) tell(fd, &out);
            CHECK_SAYS(peer_of(1)->body_len == body_size, "%zu of %zu bytes", peer_of(1)->body_len,
                       body_size);
            CHECK_INT(peer_of(1)->reset, NO_CODE);
            finish(fd);
        }
    }
}

/* The same with windows that open a little at a time. */
static void test_sizes_of_windows(void) {
    body_size = 3 * 65535 + FRAME;
    const int fd = begin_with(answer_body);
    put_get(&out, 1, "/");
    for (int i = 0; i < 40 && !peer_of(1)->ended; i++) {
        tell(fd, &out);
        put_window(&out, 0, FRAME);
        put_window(&out, 1, FRAME);
    }
    CHECK_INT(peer_of(1)->body_len, body_size);
    finish(fd);
}

/* A head that breaks a rule ends its own stream, and has no time of its own. */
static void test_other_streams_outlive_a_bad_head(void) {
    settings.linger_timeout_ms = 0;
    const int fd = begin_with(hold);
    put_get(&out, 1, "/");
    put_head_with(&out, 3, NGHTTP2_FLAG_END_STREAM, HEAD_FIELDS("GET", "/") "\nX y");
    tell(fd, &out);
    CHECK_INT(peer_of(3)->reset, NGHTTP2_PROTOCOL_ERROR);
    later(31000);
    tell(fd, &out);
    CHECK(!server_said.closed);
    CHECK(held != NULL && !held->gone);
    finish(fd);
}

/* At a stop the time for requests that are on their way ends in the middle of a head. */
static void test_other_streams_outlive_half_a_head(void) {
    const int fd = begin_with(hold);
    put_get(&out, 1, "/");
    tell(fd, &out);
    rd_server_stop(server, RD_STOP_DRAIN);
    put_frame(&out, NGHTTP2_HEADERS, 0, 3, "\x82", 1);
    tell(fd, &out);
    CHECK_INT(server_said.goaways, 1);
    pass_ms(300);
    tell(fd, &out);
    CHECK_INT(server_said.goaways, 2);
    CHECK(held != NULL && !held->gone);
    if (held == NULL) return;
    rd_loop_lock(&server->loop);
    answer_path(held);
    rd_loop_unlock(&server->loop);
    tell(fd, &out);
    CHECK_STR(peer_of(1)->body, "/");
    CHECK(server_said.closed);
    finish(fd);
}

/* A client that acknowledges no settings may think that it may open as many streams as it likes. It
 * does not read that they are refused. */
static void test_refusals_that_nobody_reads(void) {
    static char junk[1 << 20];
    settings.linger_timeout_ms = 0;
    settings.http2_seats = 100;
    body_size = sizeof(body);
    const int fd = begin_with(answer_body);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30);
    put_window(&out, 0, 1 << 30);
    for (uint32_t i = 0; i < 100; i++) put_get(&out, 2 * i + 1, "/");
    send_part(fd, out.bytes, out.len);
    for (int i = 0; i < 8; i++) turn();
    size_t waiting = 0;
    for (uint32_t id = 201; id < 100001 && joined->state == RD_CONN_OPEN; id += 2) {
        out.len = 0;
        put_get(&out, id, "/");
        if (send(fd, out.bytes, out.len, MSG_NOSIGNAL) < 0) break;
        if (id % 64 == 1) turn();
        if (joined->state != RD_CONN_OPEN) break;
        const size_t now = nghttp2_session_get_outbound_queue_size(rd_http2_of(joined)->session);
        if (now > waiting) waiting = now;
    }
    CHECK_SAYS(waiting < 1200, "%zu frames wait", waiting);
    while (recv(fd, junk, sizeof(junk), 0) > 0) turn();
    finish(fd);
}

static uint32_t reset_many(int fd, uint32_t id, int count) {
    for (int i = 0; i < count; i++, id += 2) {
        put_get(&out, id, "/");
        put_reset(&out, id, NGHTTP2_CANCEL);
        tell(fd, &out);
    }
    return id;
}

/* There is one account. The library's own, by another clock, would end the connection first. */
static void test_resets_that_are_paid_for(void) {
    const int fd = begin_with(hold);
    const uint32_t next = reset_many(fd, 1, 600);
    later(19000);
    reset_many(fd, next, 600);
    CHECK_INT(server_said.goaway, NO_CODE);
    reset_many(fd, next + 1200, 600);
    CHECK_INT(server_said.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
    finish(fd);
}

/* A head of a byte for each field of 4 KB, and trailers that are the same: neither is decoded to
 * its end. */
static void test_bombs(void) {
    settings.linger_timeout_ms = 0;
    for (int in_trailers = 0; in_trailers < 2; in_trailers++) {
        const int fd = begin_with(answer_path);
        if (in_trailers) put_head_with(&out, 1, 0, HEAD_FIELDS("POST", "/"));
        put_repeated(&out, 1, NGHTTP2_FLAG_END_STREAM, in_trailers ? "" : HEAD_FIELDS("GET", "/"),
                     12000);
        send_part(fd, out.bytes, out.len);
        out.len = 0;
        turn();
        if (rd_conn_is_open(joined)) CHECK(rd_http2_of(joined)->input.decoded < 5000000);
        tell(fd, &out);
        CHECK_INT(server_said.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
        CHECK(server_said.closed);
        finish(fd);
    }
}

static nghttp2_nv field_of(const char *name, const char *value, size_t len) {
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), len, NGHTTP2_NV_FLAG_NONE};
}

/* What a connection begins with costs a few of the 1,000. */
static uint32_t points_of(rd_conn *conn) {
    return CHECK(rd_conn_is_open(conn)) ? rd_http2_of(conn)->account.points : 0;
}

/* A field of 4 KB is in the table, and each of many heads names it this often. */
static void ask_with_references(int fd, uint32_t requests, unsigned references) {
    char block[64] = "\x82\x86\x84\x01\x01"
                     "a";
    memset(block + 6, 0xbe, references);
    put_repeated(&out, 1, NGHTTP2_FLAG_END_STREAM, HEAD_FIELDS("GET", "/"), 0);
    tell(fd, &out);
    for (uint32_t i = 1; i <= requests && !server_said.closed; i++) {
        put_frame(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_END_HEADERS,
                  2 * i + 1, block, 6 + references);
        tell(fd, &out);
    }
}

/* None of these heads is too long, and each is sent as a few bytes. */
static void test_small_bombs(void) {
    settings.linger_timeout_ms = 0;
    int fd = begin_with(answer_path);
    ask_with_references(fd, 100, 27);
    CHECK_INT(server_said.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
    CHECK(server_said.closed);
    finish(fd);
    fd = begin_with(answer_path);
    ask_with_references(fd, 200, 1);
    CHECK(points_of(joined) >= 990);
    finish(fd);
}

/* A browser with long cookies: one that is in the table, one that is too long for it, and many
 * short ones. All are compressed. */
static void test_long_cookies_cost_nothing(void) {
    static char kept[3000], large[8192];
    static uint8_t block[FRAME];
    static nghttp2_nv fields[64];
    memset(kept, '1', sizeof(kept));
    memset(large, 'a', sizeof(large));
    nghttp2_nv *last = fields;
    *last++ = field_of(":method", "GET", 3);
    *last++ = field_of(":scheme", "http", 4);
    *last++ = field_of(":path", "/", 1);
    *last++ = field_of(":authority", "a", 1);
    *last++ = field_of("cookie", kept, sizeof(kept));
    *last++ = field_of("cookie", large, sizeof(large));
    while (last < fields + 64) *last++ = field_of("cookie", large, 10);
    nghttp2_hd_deflater *deflater;
    CHECK_INT(nghttp2_hd_deflate_new(&deflater, 4096), 0);
    const int fd = begin_with(answer_path);
    for (uint32_t i = 0; i < 200; i++) {
        const ssize_t len = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), fields, 64);
        CHECK(len > 0);
        put_frame(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_END_HEADERS,
                  2 * i + 1, block, (size_t)len);
        tell(fd, &out);
        CHECK_STR(peer_of(2 * i + 1)->body, "/");
    }
    CHECK(points_of(joined) >= 990);
    nghttp2_hd_deflate_del(deflater);
    finish(fd);
}

/* The library decodes a head on a stream that is over, and tells nothing of it: on one that was
 * reset because its body went on with a head, and on one that is long over. */
static void test_heads_on_streams_that_are_over(void) {
    settings.linger_timeout_ms = 0;
    for (int is_old = 0; is_old < 2; is_old++) {
        const int fd = begin_with(answer_path);
        put_head_with(&out, 1, is_old ? NGHTTP2_FLAG_END_STREAM : 0, HEAD_FIELDS("POST", "/"));
        tell(fd, &out);
        for (uint32_t id = 3; is_old && id < 303; id += 2) {
            put_get(&out, id, "/");
            tell(fd, &out);
        }
        const unsigned flags = NGHTTP2_FLAG_END_HEADERS | (is_old ? NGHTTP2_FLAG_END_STREAM : 0);
        for (int i = 0; i < 1100; i++) put_frame(&out, NGHTTP2_HEADERS, flags, 1, "\x82", 1);
        tell(fd, &out);
        CHECK_INT(server_said.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
        CHECK(server_said.closed);
        finish(fd);
    }
}

/* After the last GOAWAY the library ignores new streams, and decodes their heads. */
static void test_heads_after_the_end(void) {
    settings.linger_timeout_ms = 0;
    const int fd = begin_with(hold);
    put_get(&out, 1, "/");
    tell(fd, &out);
    rd_server_stop(server, RD_STOP_DRAIN);
    tell(fd, &out);
    pass_ms(300);
    tell(fd, &out);
    CHECK_INT(server_said.goaways, 2);
    for (uint32_t i = 0; i < 1100; i++) put_get(&out, 2 * i + 3, "/");
    tell(fd, &out);
    CHECK_INT(server_said.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
    CHECK(server_said.closed);
    finish(fd);
}

/* Heads that are a little too long are refused, and cost little. */
static void test_heads_that_are_a_little_too_long(void) {
    static char fields[40000];
    settings.max_head_bytes = 16384;
    const int fd = begin_with(answer_path);
    const int len = snprintf(fields, sizeof(fields), "%s\nx-long ", HEAD_FIELDS("GET", "/"));
    memset(fields + len, 'a', 16300);
    for (uint32_t i = 0; i < 200; i++) {
        put_head_with(&out, 2 * i + 1, NGHTTP2_FLAG_END_STREAM, fields);
        tell(fd, &out);
        CHECK_INT(peer_of(2 * i + 1)->status, 431);
    }
    CHECK_INT(server_said.goaway, NO_CODE);
    finish(fd);
}

/* The body waits for a disk that is behind; a window that is given back too early is one that the
 * server did not mean to give. */
static void test_windows_of_slow_disks(void) {
    settings.body_memory_bytes = 0;
    settings.linger_timeout_ms = 0;
    static char part[FRAME];
    const int fd = begin_with(hold);
    put_head_with(&out, 1, 0, HEAD_FIELDS("POST", "/"));
    tell(fd, &out);
    rd_http2 *http2 = rd_http2_of(joined);
    rd_http2_stream *stream = RD_CONTAINER(http2->streams.next, rd_http2_stream, in_session);
    rd_conn *conn = stream->conn;
    size_t most = 0;
    for (int cycle = 0; cycle < 12; cycle++) {
        rd_loop_lock(&server->loop);
        rd_conn_pause_reading(conn);
        rd_loop_unlock(&server->loop);
        for (;;) {
            const int32_t left = nghttp2_session_get_stream_local_window_size(http2->session, 1);
            if (left <= 0) break;
            put_frame(&out, NGHTTP2_DATA, 0, 1, part,
                      left < (int32_t)sizeof(part) ? (size_t)left : sizeof(part));
            tell(fd, &out);
        }
        if (rd_buffer_len(&stream->came) > most) most = rd_buffer_len(&stream->came);
        rd_loop_lock(&server->loop);
        conn->read_paused = false;
        rd_conn_read_now(conn); /* one read, as when the disk is behind again at once */
        rd_conn_pause_reading(conn);
        rd_loop_unlock(&server->loop);
        turn();
    }
    CHECK_SAYS(most <= 524288, "%zu bytes", most);
    rd_loop_lock(&server->loop);
    rd_conn_resume_reading(conn);
    rd_loop_unlock(&server->loop);
    put_data(&out, 1, "", true);
    for (int i = 0; i < 20; i++) tell(fd, &out);
    finish(fd);
}

/* Windows of streams together are no larger than that of their connection. */
static void test_sum_of_windows(void) {
    const int fd = begin_with(hold);
    int64_t all = 0;
    uint32_t large = 0;
    for (uint32_t id = 1; id <= 41; id += 2) {
        put_head_with(&out, id, 0, HEAD_FIELDS("POST", "/"));
        tell(fd, &out);
    }
    rd_http2 *http2 = rd_http2_of(joined);
    for (int32_t id = 1; id <= 41; id += 2) {
        const int32_t window = nghttp2_session_get_stream_local_window_size(http2->session, id);
        if (window <= 65535) continue; /* that of a client that has not read SETTINGS yet */
        all += window;
        large++;
    }
    CHECK_INT(nghttp2_session_get_stream_local_window_size(http2->session, 1), 524288);
    CHECK_INT(large, 8);
    CHECK_SAYS(all <= 2097152, "%lld bytes", (long long)all);
    for (uint32_t id = 1; id <= 41; id += 2) put_reset(&out, id, NGHTTP2_CANCEL);
    put_head_with(&out, 43, 0, HEAD_FIELDS("POST", "/"));
    tell(fd, &out);
    CHECK_INT(nghttp2_session_get_stream_local_window_size(http2->session, 43), 524288);
    CHECK_INT(http2->window_room, 2097152 - 524288);
    put_reset(&out, 43, NGHTTP2_CANCEL);
    tell(fd, &out);
    finish(fd);
}

static rd_file *served;

static void answer_file(rd_request *request) {
    const rd_response_head head = {.status = 200, .length = (int64_t)sizeof(body)};
    request->responder->start(request, &head);
    served->memory = RD_FILE_BLIND;
    request->responder->send_file(request, served, 0, sizeof(body));
    request->responder->finish(request);
}

/* A file system that cannot say what is in memory: a thread reads each part first. */
static void test_files_that_are_read_first(void) {
    char path[] = "/tmp/rondo-http2-XXXXXX";
    const int from = mkstemp(path);
    CHECK(from >= 0 && unlink(path) == 0);
    CHECK_INT(write(from, body, sizeof(body)), sizeof(body));
    const int fd = begin_with(answer_file);
    rd_loop_lock(&server->loop);
    served = rd_file_new(&server->loop, from, 0);
    rd_loop_unlock(&server->loop);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30);
    put_window(&out, 0, 1 << 30);
    put_get(&out, 1, "/");
    for (int i = 0; i < 300 && !peer_of(1)->ended; i++) tell(fd, &out);
    CHECK_INT(peer_of(1)->body_len, sizeof(body));
    CHECK(peer_of(1)->ended);
    rd_loop_lock(&server->loop);
    rd_file_unref(served);
    rd_loop_unlock(&server->loop);
    finish(fd);
}

static void answer_long(rd_request *request) {
    if (rd_slice_equal(rd_request_slice(request, request->head.path), RD_SLICE("/"))) {
        answer_with(request, body, sizeof(body));
    } else {
        answer_path(request);
    }
}

/* A long answer waits until its client has read what came before. One that is short does not, also
 * if its client says nothing of what it reads. */
static void test_what_is_on_its_way(void) {
    const int fd = begin_with(answer_long);
    hears_probes = false;
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30);
    put_window(&out, 0, 1 << 30);
    put_get(&out, 1, "/");
    put_get(&out, 3, "/short");
    for (int i = 0; i < 20; i++) tell(fd, &out);
    CHECK(peer_of(3)->ended);
    CHECK(peer_of(1)->body_len < 200000 && !peer_of(1)->ended);
    put_get(&out, 5, "/soon");
    tell(fd, &out);
    CHECK(peer_of(5)->ended && !peer_of(1)->ended);
    CHECK_INT(server_said.probed, server_said.probe_count);
    hears_probes = true;
    for (int i = 0; i < 100 && !peer_of(1)->ended; i++) tell(fd, &out);
    CHECK_INT(peer_of(1)->body_len, sizeof(body));
    CHECK(peer_of(1)->ended && !server_said.closed);
    finish(fd);
}

static void test_all(void) {
    test_what_is_on_its_way();
    test_sizes_of_answers();
    test_sizes_of_windows();
    test_other_streams_outlive_a_bad_head();
    test_other_streams_outlive_half_a_head();
    test_refusals_that_nobody_reads();
    test_resets_that_are_paid_for();
    test_bombs();
    test_small_bombs();
    test_long_cookies_cost_nothing();
    test_heads_on_streams_that_are_over();
    test_heads_after_the_end();
    test_heads_that_are_a_little_too_long();
    test_windows_of_slow_disks();
    test_sum_of_windows();
    test_files_that_are_read_first();
}

int main(void) {
    return test_both_pollers(test_all);
}
