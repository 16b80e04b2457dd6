/* SPDX-License-Identifier: MIT
 *
 * HTTP/2 (http2/http2*.c): rules of RFC 9113 as rows, each delivered whole, byte by byte and cut
 * at every offset; answers, bodies, windows, the end of connections. On both pollers, by a client
 * that writes the bytes of its frames itself.
 */
#include "http2_serving.h"

static rd_request *inside[128];
static unsigned inside_count;

/* ---- rows ---- */

typedef struct row {
    const char *name;
    const char *fields; /* of a HEADERS frame on stream 1; or NULL */
    const char *bytes;  /* frames in hexadecimal digits; or NULL */
    int status;         /* of the answer on stream 1; 0: none */
    int64_t reset;      /* of stream 1; or NO_CODE */
    int64_t goaway;     /* or NO_CODE */
    bool open;          /* the head does not end its stream */
} row;

#define OK(name, fields)                                                                           \
    { name, fields, NULL, 200, NO_CODE, NO_CODE, false }
#define STATUS(name, fields, code)                                                                 \
    { name, fields, NULL, code, NO_CODE, NO_CODE, false }
#define REFUSED(name, fields)                                                                      \
    { name, fields, NULL, 0, NGHTTP2_PROTOCOL_ERROR, NO_CODE, false }
#define BREAKS(name, bytes, code)                                                                  \
    { name, NULL, bytes, 0, NO_CODE, code, false }
#define IGNORED(name, bytes)                                                                       \
    { name, NULL, bytes, 0, NO_CODE, NO_CODE, false }
#define RESETS(name, bytes, code)                                                                  \
    { name, NULL, bytes, 0, code, NO_CODE, false }

#define MSP ":method GET\n:scheme http\n:path /p\n"

/* A GET of / on stream 1 that goes on, in HPACK's static table: 82 84 86 and authority a. */
#define OPEN_1                                                                                     \
    "000006010400000001"                                                                           \
    "828486410161"
#define GET_1                                                                                      \
    "000006010500000001"                                                                           \
    "828486410161"
#define GET_3                                                                                      \
    "000006010500000003"                                                                           \
    "828486410161"

static const row rows[] = {
    /* pseudo-fields: RFC 9113, section 8.3 */
    OK("a request", MSP ":authority a"),
    OK("host in place of :authority", MSP "host a"),
    OK("both, equal", MSP ":authority a\nhost a"),
    STATUS("both, different", MSP ":authority a\nhost b", 400),
    REFUSED("neither", ":method GET\n:scheme http\n:path /p"),
    REFUSED("no method", ":scheme http\n:path /p\n:authority a"),
    REFUSED("no scheme", ":method GET\n:path /p\n:authority a"),
    REFUSED("no path", ":method GET\n:scheme http\n:authority a"),
    REFUSED("method twice", MSP ":method GET\n:authority a"),
    REFUSED("path twice", MSP ":path /q\n:authority a"),
    REFUSED("unknown pseudo-field", MSP ":authority a\n:color red"),
    REFUSED("pseudo-field of an answer", MSP ":authority a\n:status 200"),
    REFUSED("pseudo-field after a field", ":method GET\n:scheme http\nx y\n:path /p\n:authority a"),
    REFUSED("empty path", ":method GET\n:scheme http\n:path\n:authority a"),
    REFUSED("path without a slash", ":method GET\n:scheme http\n:path p\n:authority a"),
    STATUS("fragment in the path", ":method GET\n:scheme http\n:path /p#q\n:authority a", 400),
    REFUSED("asterisk with GET", ":method GET\n:scheme http\n:path *\n:authority a"),
    OK("asterisk with OPTIONS", ":method OPTIONS\n:scheme http\n:path *\n:authority a"),
    STATUS("scheme that is not HTTP", ":method GET\n:scheme ftp\n:path /p\n:authority a", 400),
    OK("https from a proxy", ":method GET\n:scheme https\n:path /p\n:authority a"),
    STATUS("userinfo", MSP ":authority u@a", 400),
    REFUSED("CONNECT with a path", ":method CONNECT\n:scheme http\n:path /p\n:authority a"),
    STATUS("CONNECT", ":method CONNECT\n:authority a:80", 501),
    STATUS("extended CONNECT to something else",
           ":method CONNECT\n:protocol tcp\n:scheme http\n:path /p\n:authority a", 501),
    REFUSED("protocol without CONNECT", MSP ":protocol websocket\n:authority a"),
    /* fields: section 8.2 */
    OK("a field", MSP ":authority a\nx-a b"),
    OK("an empty value", MSP ":authority a\nx-a"),
    OK("te: trailers", MSP ":authority a\nte trailers"),
    OK("an underscore is dropped", MSP ":authority a\nx_a b"),
    REFUSED("te: gzip", MSP ":authority a\nte gzip"),
    REFUSED("connection", MSP ":authority a\nconnection close"),
    REFUSED("keep-alive", MSP ":authority a\nkeep-alive 3"),
    REFUSED("proxy-connection", MSP ":authority a\nproxy-connection close"),
    REFUSED("transfer-encoding", MSP ":authority a\ntransfer-encoding chunked"),
    REFUSED("upgrade", MSP ":authority a\nupgrade websocket"),
    REFUSED("upper case", MSP ":authority a\nX-a b"),
    REFUSED("a blank in a name", MSP ":authority a\nx\ta b"),
    REFUSED("CR in a value", MSP ":authority a\nx-a b\rc"),
    REFUSED("blank before a value", MSP ":authority a\nx-a  b"),
    REFUSED("blank behind a value", MSP ":authority a\nx-a b "),
    REFUSED("an empty name", MSP ":authority a\n b"),
    REFUSED("content-length twice", MSP ":authority a\ncontent-length 0\ncontent-length 0"),
    REFUSED("content-length in words", MSP ":authority a\ncontent-length two"),
    REFUSED("content-length without a body", MSP ":authority a\ncontent-length 2"),
    STATUS("expectation of something else", MSP ":authority a\nexpect wonders", 417),
    /* frames: sections 4 to 6 */
    BREAKS("SETTINGS on a stream", "000000040000000001", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("SETTINGS of 5 bytes", "0000050400000000000102030405", NGHTTP2_FRAME_SIZE_ERROR),
    BREAKS("ACK with a payload", "000006040100000000000300000001", NGHTTP2_FRAME_SIZE_ERROR),
    BREAKS("ENABLE_PUSH 2", "000006040000000000000200000002", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("MAX_FRAME_SIZE too small", "000006040000000000000500003fff", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("window too large", "000006040000000000000480000000", NGHTTP2_FLOW_CONTROL_ERROR),
    IGNORED("an unknown setting", "00000604000000000000ff00000001"),
    BREAKS("frame too long", "004001000000000001", NGHTTP2_FRAME_SIZE_ERROR),
    BREAKS("PING of 7 bytes", "00000706000000000001020304050607", NGHTTP2_FRAME_SIZE_ERROR),
    BREAKS("PING on a stream", "0000080600000000010102030405060708", NGHTTP2_PROTOCOL_ERROR),
    IGNORED("an unknown frame", "000002ee0000000001abcd"),
    BREAKS("a frame inside a head",
           "000003010100000001828486"
           "0000080600000000000102030405060708",
           NGHTTP2_PROTOCOL_ERROR),
    BREAKS("CONTINUATION without a head", "000000090400000001", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("PUSH_PROMISE",
           OPEN_1 "00000505040000000100000002"
                  "82",
           NGHTTP2_PROTOCOL_ERROR),
    BREAKS("padding longer than the frame", "0000020109000000010582", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("DATA on stream 0", "00000100000000000061", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("HEADERS on stream 0", "000006010500000000828486410161", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("HEADERS on an even stream", "000006010500000002828486410161", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("DATA on an idle stream", "00000100000000000561", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("RST_STREAM on an idle stream", "00000403000000000500000008", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("WINDOW_UPDATE on an idle stream", "00000408000000000500000001", NGHTTP2_PROTOCOL_ERROR),
    BREAKS("RST_STREAM of 3 bytes", OPEN_1 "000003030000000001000000", NGHTTP2_FRAME_SIZE_ERROR),
    BREAKS("WINDOW_UPDATE of 3 bytes", "000003080000000000000001", NGHTTP2_FRAME_SIZE_ERROR),
    BREAKS("WINDOW_UPDATE of 0 for the connection", "00000408000000000000000000",
           NGHTTP2_PROTOCOL_ERROR),
    BREAKS("connection window overflows", "0000040800000000007fffffff", NGHTTP2_FLOW_CONTROL_ERROR),
    RESETS("stream window overflows", OPEN_1 "0000040800000000017fffffff",
           NGHTTP2_FLOW_CONTROL_ERROR),
    BREAKS("HPACK index 0", "00000101050000000180", NGHTTP2_COMPRESSION_ERROR),
    BREAKS("HPACK index beyond the table", "000001010500000001ff", NGHTTP2_COMPRESSION_ERROR),
    BREAKS("HPACK table too large", "0000040105000000013fe1ff03", NGHTTP2_COMPRESSION_ERROR),
    BREAKS("Huffman padding too long", "0000050105000000010082ffff00", NGHTTP2_COMPRESSION_ERROR),
};

static unsigned digit(char c) {
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void put_hex(wire *to, const char *hex) {
    for (; hex[0] != '\0'; hex += 2) {
        const uint8_t byte = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));
        put(to, &byte, 1);
    }
}

static void write_row(const row *row, wire *to) {
    to->len = 0;
    put_opening(to);
    if (row->fields != NULL) {
        put_head_with(to, 1, row->open ? 0 : NGHTTP2_FLAG_END_STREAM, row->fields);
    }
    if (row->bytes != NULL) put_hex(to, row->bytes);
}

/* What is not expected would come in the same turn. */
static bool is_as_expected(const row *row) {
    const peer_stream *one = peer_of(1);
    const bool has_settings = server_said.settings_acks > 0 || row->goaway != NO_CODE;
    return has_settings && one->status == row->status && one->reset == row->reset &&
           server_said.goaway == row->goaway && server_said.closed == (row->goaway != NO_CODE);
}

static void check_row(const row *row, const char *delivery, size_t at) {
    const peer_stream *one = peer_of(1);
#define IN_ROW "%s, %s at %zu: %" PRId64 " instead of %" PRId64
    CHECK_SAYS(one->status == row->status, IN_ROW, row->name, delivery, at, (int64_t)one->status,
               (int64_t)row->status);
    CHECK_SAYS(one->reset == row->reset, IN_ROW, row->name, delivery, at, one->reset, row->reset);
    CHECK_SAYS(server_said.goaway == row->goaway, IN_ROW, row->name, delivery, at,
               server_said.goaway, row->goaway);
    const bool ends = row->goaway != NO_CODE;
    CHECK_SAYS(server_said.closed == ends, "%s, %s at %zu: open or closed", row->name, delivery,
               at);
#undef IN_ROW
}

/* A connection that lives still answers. */
static void check_life(int fd, const row *row) {
    if (row->goaway != NO_CODE) return;
    put_get(&out, 7, "/alive");
    tell(fd, &out);
    CHECK_SAYS(peer_of(7)->status == 200 && peer_of(7)->ended, "%s: the connection is dead",
               row->name);
}

/* `step`: bytes at a time; `cut`: first so many, then the rest. */
static void deliver(const row *row, const char *delivery, size_t step, size_t cut) {
    static wire said;
    peer_begin();
    const int fd = join();
    write_row(row, &said);
    if (cut > 0) {
        send_part(fd, said.bytes, cut);
        turn();
        send_part(fd, said.bytes + cut, said.len - cut);
    } else {
        for (size_t at = 0; at < said.len; at += step) {
            send_part(fd, said.bytes + at, said.len - at < step ? said.len - at : step);
            if (step < said.len) turn();
        }
    }
    for (int i = 0; i < 4 && !is_as_expected(row); i++) {
        turn();
        peer_hear(fd);
    }
    check_row(row, delivery, cut);
    out.len = 0;
    if (cut == 0) check_life(fd, row);
    close(fd);
    turn();
}

static void test_rows(void) {
    static wire said;
    settings.http2 = settings.http2_websocket = 1;
    settings.linger_timeout_ms = 0;
    start(answer_path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        deliver(&rows[i], "whole", 1 << 20, 0);
        deliver(&rows[i], "byte by byte", 1, 0);
        write_row(&rows[i], &said);
        const size_t opening = strlen(PREFACE) + 9;
        for (size_t cut = i == 0 ? 1 : opening; cut < said.len; cut++) {
            deliver(&rows[i], "cut", 0, cut);
        }
    }
    end();
    peer_end();
}

/* Without http2_websocket a stream has no other protocol, and its connection lives. */
static void test_websockets_switched_off(void) {
    static const row off[] = {
        REFUSED("WebSocket switched off",
                ":method CONNECT\n:protocol websocket\n:scheme http\n:path /p\n:authority a\n"
                "sec-websocket-version 13"),
        REFUSED("another protocol switched off",
                ":method CONNECT\n:protocol tcp\n:scheme http\n:path /p\n:authority a"),
    };
    settings.http2 = 1;
    settings.http2_websocket = 0;
    settings.linger_timeout_ms = 0;
    start(answer_path);
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        deliver(&off[i], "whole", 1 << 20, 0);
        deliver(&off[i], "byte by byte", 1, 0);
    }
    end();
    peer_end();
}

/* Any wrong byte of the preface: HTTP/1.1 answers, or the connection ends. */
static void test_wrong_prefaces(void) {
    settings.http2 = 1;
    settings.linger_timeout_ms = 0;
    start(answer_path);
    for (size_t at = 0; at < strlen(PREFACE); at++) {
        static wire said;
        said.len = 0;
        put_opening(&said);
        put_get(&said, 1, "/p");
        said.bytes[at] = '!';
        const int fd = join();
        send_part(fd, said.bytes, said.len);
        turns(4);
        CHECK_SAYS(hear(fd), "byte %zu", at);
        CHECK(strstr(got, "200") == NULL);
        close(fd);
        turns(2);
    }
    end();
}

/* ---- answers ---- */

static void test_many_at_once(void) {
    const int fd = begin_with(answer_path);
    char path[32];
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "/%u", i);
        put_get(&out, 2 * i + 1, path);
    }
    for (int i = 0; i < 20; i++) tell(fd, &out);
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "/%u", i);
        CHECK_STR(peer_of(2 * i + 1)->body, path);
        CHECK(peer_of(2 * i + 1)->ended);
        CHECK_INT(peer_of(2 * i + 1)->reset, NO_CODE);
    }
    CHECK_INT(server->conns.count, 1);
    finish(fd);
}

static char big[300000];

static void answer_big(rd_request *request) {
    answer_with(request, big, sizeof(big));
}

/* The client's windows hold back the answer, and open. */
static void test_windows(void) {
    const int fd = begin_with(answer_big);
    put_get(&out, 1, "/");
    tell(fd, &out);
    CHECK_INT(peer_of(1)->body_len, 65535);
    put_window(&out, 1, 1000000);
    tell(fd, &out);
    CHECK_INT(peer_of(1)->body_len, 65535);
    put_window(&out, 0, 100);
    tell(fd, &out);
    CHECK_INT(peer_of(1)->body_len, 65635);
    put_window(&out, 0, 1000000);
    for (int i = 0; i < 20; i++) tell(fd, &out);
    CHECK_INT(peer_of(1)->body_len, sizeof(big));
    CHECK(peer_of(1)->ended);
    CHECK_INT(server->conns.count, 1);
    finish(fd);
}

/* A client that opens its windows and takes nothing has no more time than any other. */
static void test_stalled_streams(void) {
    const int fd = begin_with(answer_big);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    put_get(&out, 1, "/");
    tell(fd, &out);
    CHECK_INT(peer_of(1)->status, 200);
    CHECK_INT(peer_of(1)->body_len, 0);
    later(29000);
    peer_hear(fd);
    CHECK_INT(peer_of(1)->reset, NO_CODE);
    later(9000);
    tell(fd, &out);
    CHECK_INT(peer_of(1)->reset, NGHTTP2_INTERNAL_ERROR);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65535);
    put_get(&out, 3, "/");
    tell(fd, &out);
    CHECK(peer_of(3)->body_len > 0);
    CHECK(!server_said.closed);
    finish(fd);
}

/* A stream that waits for a more urgent one is not late, as long as the client takes that one. */
static void test_streams_that_wait_for_others(void) {
    const int fd = begin_with(answer_big);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000000);
    put_head_with(&out, 1, NGHTTP2_FLAG_END_STREAM, HEAD_FIELDS("GET", "/") "\npriority u=0");
    put_head_with(&out, 3, NGHTTP2_FLAG_END_STREAM, HEAD_FIELDS("GET", "/") "\npriority u=7");
    tell(fd, &out);
    for (int i = 0; i < 8; i++) {
        later(7000);
        put_window(&out, 0, 10000);
        tell(fd, &out);
    }
    CHECK_INT(peer_of(1)->body_len + peer_of(3)->body_len, 65535 + 80000);
    CHECK_INT(peer_of(3)->body_len, 0);
    CHECK_INT(peer_of(1)->reset, NO_CODE);
    CHECK_INT(peer_of(3)->reset, NO_CODE);
    for (int i = 0; i < 8; i++) later(7000);
    tell(fd, &out);
    CHECK_INT(peer_of(1)->reset, NGHTTP2_INTERNAL_ERROR);
    CHECK_INT(peer_of(3)->reset, NGHTTP2_INTERNAL_ERROR);
    finish(fd);
}

/* The window of the connection holds back the rest. */
static int begin_download(void) {
    const int fd = begin_with(answer_big);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000000);
    put_get(&out, 1, "/");
    tell(fd, &out);
    return fd;
}

/* What the server says of the connection itself is no part of an answer: its client has no more
 * time because it asks for that. */
static void test_a_client_that_takes_answers_to_pings_alone(void) {
    const int fd = begin_download();
    CHECK_INT(peer_of(1)->body_len, 65535);
    for (int i = 0; i < 8; i++) {
        later(7000);
        for (int k = 0; k < 200; k++) put_frame(&out, NGHTTP2_PING, 0, 0, "01234567", 8);
        tell(fd, &out);
    }
    CHECK_INT(server_said.pongs, 8 * 200);
    CHECK_INT(server_said.goaway, NO_CODE);
    CHECK_INT(peer_of(1)->reset, NGHTTP2_INTERNAL_ERROR);
    finish(fd);
}

/* Nor is a stream late while the client takes answers that have no body. */
static void test_a_stream_beside_answers_without_bodies(void) {
    const int fd = begin_download();
    for (int i = 0; i < 8; i++) {
        later(7000);
        for (uint32_t k = 0; k < 20; k++) {
            put_head_with(&out, (uint32_t)i * 40 + 2 * k + 3, NGHTTP2_FLAG_END_STREAM,
                          HEAD_FIELDS("HEAD", "/"));
        }
        tell(fd, &out);
    }
    CHECK_INT(peer_of(1)->reset, NO_CODE);
    finish(fd);
}

/* Reads at most this much. */
static void hear_part(int fd, size_t most) {
    peer *said = &server_said;
    for (ssize_t part = 1; part > 0 && most > 0; most -= (size_t)part) {
        part = recv(fd, said->bytes + said->len, most, 0);
        if (part <= 0) return;
        peer_take((size_t)part);
    }
}

static void answer_huge(rd_request *request) {
    static char huge[16 << 20];
    answer_with(request, huge, sizeof(huge));
}

/* The kernel has megabytes that it has not sent. A client that takes a little of that from time to
 * time is not late. */
static void test_a_slow_client_is_not_late(void) {
    const int size = 65536;
    open_peer();
    start_listening(answer_huge);
    const int fd = dial();
    CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
    out.len = 0;
    put_opening(&out);
    put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 32 << 20);
    put_window(&out, 0, 32 << 20);
    put_get(&out, 1, "/");
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    turns(20);
    for (int i = 0; i < 12; i++) {
        hear_part(fd, 40000);
        later(7000);
    }
    CHECK_INT(server->http.http2_counts.streams, 1);
    CHECK_INT(peer_of(1)->reset, NO_CODE);
    finish(fd);
}

static char body_got[64];

static void answer_body(rd_request *request) {
    const rd_buffer *body = &request->body.memory;
    const size_t len = rd_buffer_len(body) < 63 ? rd_buffer_len(body) : 63;
    CHECK(request->head.framing == RD_FRAMING_NONE || request->head.section == 0);
    memset(body_got, 0, sizeof(body_got));
    if (len > 0) memcpy(body_got, rd_buffer_ptr(body), len);
    answer_with(request, body_got, len);
}

static void test_bodies(void) {
    const int fd = begin_with(answer_body);
    put_head_with(&out, 1, 0, HEAD_FIELDS("POST", "/"));
    put_data(&out, 1, "one ", false);
    tell(fd, &out);
    CHECK_INT(peer_of(1)->status, 0);
    put_data(&out, 1, "two", true);
    tell(fd, &out);
    CHECK_STR(peer_of(1)->body, "one two");
    put_head_with(&out, 3, 0, HEAD_FIELDS("POST", "/") "\ncontent-length 3");
    put_data(&out, 3, "abc", true);
    tell(fd, &out);
    CHECK_STR(peer_of(3)->body, "abc");
    put_head_with(&out, 5, 0, HEAD_FIELDS("POST", "/") "\ncontent-length 3");
    put_data(&out, 5, "ab", true);
    tell(fd, &out);
    CHECK_INT(peer_of(5)->reset, NGHTTP2_PROTOCOL_ERROR);
    put_head_with(&out, 7, 0, HEAD_FIELDS("POST", "/") "\ncontent-length 3");
    put_data(&out, 7, "abcd", false);
    tell(fd, &out);
    CHECK_INT(peer_of(7)->reset, NGHTTP2_PROTOCOL_ERROR);
    put_head_with(&out, 9, 0, HEAD_FIELDS("POST", "/"));
    put_data(&out, 9, "with ", false);
    put_head_with(&out, 9, NGHTTP2_FLAG_END_STREAM, "x-trailer dropped");
    tell(fd, &out);
    CHECK_STR(peer_of(9)->body, "with ");
    put_head_with(&out, 11, NGHTTP2_FLAG_END_STREAM, HEAD_FIELDS("POST", "/"));
    tell(fd, &out);
    CHECK_INT(peer_of(11)->status, 200);
    CHECK_INT(peer_of(11)->body_len, 0);
    finish(fd);
}

/* The application has the request before its body, and asks for it. */
static void test_expectation(void) {
    const int fd = begin_with(hold);
    put_head_with(&out, 1, 0, HEAD_FIELDS("POST", "/") "\nexpect 100-continue");
    tell(fd, &out);
    CHECK_INT(peer_of(1)->heads, 0);
    CHECK(held != NULL && !held->body_complete);
    rd_loop_lock(&server->loop);
    CHECK_INT(held->responder->want_body(held), 0);
    rd_loop_unlock(&server->loop);
    tell(fd, &out);
    CHECK_INT(peer_of(1)->status, 100);
    CHECK_INT(peer_of(1)->heads, 1);
    put_data(&out, 1, "body", true);
    tell(fd, &out);
    CHECK(held->body_complete);
    rd_loop_lock(&server->loop);
    answer_body(held);
    rd_loop_unlock(&server->loop);
    tell(fd, &out);
    CHECK_STR(peer_of(1)->body, "body");
    CHECK_INT(peer_of(1)->status, 200);
    finish(fd);
}

static void test_too_large(void) {
    settings.max_body_bytes = 10;
    const int fd = begin_with(answer_body);
    put_head_with(&out, 1, 0, HEAD_FIELDS("POST", "/") "\ncontent-length 11");
    tell(fd, &out);
    CHECK_INT(peer_of(1)->status, 413);
    CHECK_INT(peer_of(1)->reset, NGHTTP2_NO_ERROR);
    put_head_with(&out, 3, 0, HEAD_FIELDS("POST", "/"));
    put_data(&out, 3, "0123456", false);
    put_data(&out, 3, "0123456", false);
    tell(fd, &out);
    CHECK_INT(peer_of(3)->status, 413);
    CHECK_INT(peer_of(3)->reset, NGHTTP2_NO_ERROR);
    put_get(&out, 5, "/");
    tell(fd, &out);
    CHECK_INT(peer_of(5)->status, 200);
    finish(fd);
}

static void test_long_heads(void) {
    char fields[3000];
    settings.max_head_bytes = 2048;
    settings.max_target_bytes = 512;
    const int fd = begin_with(answer_path);
    const int len = snprintf(fields, sizeof(fields), "%s\nx-long ", HEAD_FIELDS("GET", "/"));
    memset(fields + len, 'a', 2000);
    fields[len + 2000] = '\0';
    put_head_with(&out, 1, NGHTTP2_FLAG_END_STREAM, fields);
    snprintf(fields, sizeof(fields), ":method GET\n:scheme http\n:authority a\n:path /%600d", 1);
    for (char *c = strchr(fields, '/'); *c != '\0'; c++) *c = *c == ' ' ? 'b' : *c;
    put_head_with(&out, 3, NGHTTP2_FLAG_END_STREAM, fields);
    put_get(&out, 5, "/");
    tell(fd, &out);
    CHECK_INT(peer_of(1)->status, 431);
    CHECK_INT(peer_of(3)->status, 414);
    CHECK_INT(peer_of(5)->status, 200);
    finish(fd);
}

/* Heads that do not end, of several clients: together they have a limit, and nothing is left of
 * them. */
static void test_heads_count_together(void) {
    static wire block;
    static char value[20000];
    int fds[6];
    settings.total_input_bytes = 65536;
    open_peer();
    start(answer_path);
    memset(value, 'a', sizeof(value));
    block.len = 0;
    put_fields(&block, HEAD_FIELDS("GET", "/"));
    put_field(&block, "x", 1, value, 8000);
    for (int i = 0; i < 6; i++) {
        fds[i] = join();
        out.len = 0;
        put_opening(&out);
        put_frame(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, block.bytes, block.len);
        block.len = 0;
        put_field(&block, "y", 1, value, 15000);
        put_frame(&out, NGHTTP2_CONTINUATION, 0, 1, block.bytes, block.len);
        tell(fds[i], &out);
        CHECK(server->conns.ledger.rows[RD_LEDGER_INPUT].held <= 65536);
        block.len = 0;
        put_fields(&block, HEAD_FIELDS("GET", "/"));
        put_field(&block, "x", 1, value, 8000);
    }
    CHECK(server->conns.ledger.rows[RD_LEDGER_INPUT].held > 0);
    peer_begin(); /* what the last one says */
    put_frame(&out, NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, NULL, 0);
    tell(fds[5], &out);
    CHECK_INT(peer_of(1)->status, 503);
    for (int i = 0; i < 6; i++) close(fds[i]);
    turns(4);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_INPUT].held, 0);
    end();
    peer_end();
}

/* Streams of all connections count together. Those that have ended make room, and a connection
 * that has none may always have one. */
static void test_streams_count_together(void) {
    settings.max_streams = 1;
    const int fd = begin_with(hold);
    put_get(&out, 1, "/");
    tell(fd, &out);
    const int other = join();
    put_opening(&out);
    put_head_with(&out, 1, 0, HEAD_FIELDS("POST", "/"));
    put_get(&out, 3, "/");
    peer_begin();
    tell(other, &out);
    CHECK_INT(peer_of(1)->reset, NO_CODE);
    CHECK_INT(peer_of(3)->reset, NGHTTP2_REFUSED_STREAM);
    CHECK_INT(server->http.http2_counts.streams, 2);
    CHECK_INT(server->http.http2_counts.refused, 1);
    CHECK_INT(server->http.http2_counts.connections, 2);
    app = answer_path;
    put_get(&out, 5, "/still");
    tell(other, &out);
    CHECK_INT(peer_of(5)->reset, NGHTTP2_REFUSED_STREAM);
    put_data(&out, 1, "", true);
    close(fd);
    turns(2);
    tell(other, &out);
    put_get(&out, 7, "/again");
    tell(other, &out);
    CHECK_STR(peer_of(7)->body, "/again");
    close(other);
    turns(2);
    CHECK_INT(server->http.http2_counts.streams, 0);
    CHECK_INT(server->http.http2_counts.connections, 0);
    end();
    peer_end();
}

static char seen_fields[1024];

static void answer_fields(rd_request *request) {
    seen_fields[0] = '\0';
    for (unsigned i = 0; i < request->head.header_count; i++) {
        const rd_header *header = &request->head.headers[i];
        const rd_slice name = rd_request_header_name(request, header),
                       value = rd_request_header_value(request, header);
        const size_t used = strlen(seen_fields);
        snprintf(seen_fields + used, sizeof(seen_fields) - used, "%.*s=%.*s|", (int)name.len,
                 name.ptr, (int)value.len, value.ptr);
    }
    CHECK_INT(request->head.version, RD_HTTP_2);
    answer_path(request);
}

static void test_cookies_are_joined(void) {
    const int fd = begin_with(answer_fields);
    put_head_with(&out, 1, NGHTTP2_FLAG_END_STREAM,
                  HEAD_FIELDS("GET", "/") "\ncookie a=1\nx-y z\ncookie b=2");
    tell(fd, &out);
    CHECK_STR(seen_fields, "host=a|x-y=z|cookie=a=1; b=2|");
    finish(fd);
}

/* ---- clients that leave ---- */

static void test_reset_by_the_client(void) {
    const int fd = begin_with(hold);
    put_get(&out, 1, "/");
    tell(fd, &out);
    CHECK(held != NULL && !held->gone);
    put_reset(&out, 1, NGHTTP2_CANCEL);
    tell(fd, &out);
    CHECK(held != NULL && held->gone);
    CHECK_INT(peer_of(1)->status, 0);
    finish(fd);
}

static void test_connection_that_closes(void) {
    const int fd = begin_with(hold);
    put_get(&out, 1, "/");
    tell(fd, &out);
    CHECK(held != NULL && !held->gone);
    close(fd);
    turns(3);
    CHECK(held->gone);
    end();
    peer_end();
}

/* A client that has said all still gets its answers. */
static void test_half_closed(void) {
    const int fd = begin_with(hold);
    put_get(&out, 1, "/late");
    tell(fd, &out);
    shutdown(fd, SHUT_WR);
    turns(3);
    CHECK(held != NULL && !held->gone);
    rd_loop_lock(&server->loop);
    answer_path(held);
    rd_loop_unlock(&server->loop);
    tell(fd, &out);
    CHECK_STR(peer_of(1)->body, "/late");
    CHECK(server_said.closed);
    finish(fd);
}

static void abort_answer(rd_request *request) {
    const rd_response_head head = {.status = 200, .length = 10};
    request->responder->start(request, &head);
    request->responder->write(request, "abc", 3);
    request->responder->abort(request);
}

static void answer_short(rd_request *request) {
    const rd_response_head head = {.status = 200, .length = 10};
    request->responder->start(request, &head);
    request->responder->write(request, "abc", 3);
    request->responder->finish(request);
}

static void check_cut(void (*application)(rd_request *)) {
    const int fd = begin_with(application);
    put_get(&out, 1, "/");
    tell(fd, &out);
    CHECK(!peer_of(1)->ended);
    CHECK_STR(peer_of(1)->body, "abc");
    CHECK_INT(peer_of(1)->reset, NGHTTP2_INTERNAL_ERROR);
    CHECK(!server_said.closed);
    finish(fd);
}

static void test_cut_answers(void) {
    check_cut(abort_answer);
    check_cut(answer_short);
}

/* ---- the end ---- */

/* The first GOAWAY asks for no more streams, the second one says which was the last. */
static void test_stop(void) {
    const int fd = begin_with(hold);
    put_get(&out, 1, "/");
    tell(fd, &out);
    rd_server_stop(server, RD_STOP_DRAIN);
    tell(fd, &out);
    CHECK_INT(server_said.goaways, 1);
    CHECK_INT(server_said.goaway_last, 0x7fffffff);
    app = answer_path;
    put_get(&out, 3, "/on-its-way");
    tell(fd, &out);
    CHECK_STR(peer_of(3)->body, "/on-its-way");
    pass_ms(300);
    tell(fd, &out);
    CHECK_INT(server_said.goaways, 2);
    CHECK_INT(server_said.goaway_last, 3);
    CHECK(!server_said.closed);
    rd_loop_lock(&server->loop);
    answer_path(held);
    rd_loop_unlock(&server->loop);
    tell(fd, &out);
    CHECK_STR(peer_of(1)->body, "/");
    CHECK(server_said.closed);
    CHECK_INT(server_said.goaway, NGHTTP2_NO_ERROR);
    finish(fd);
}

static void test_idle(void) {
    settings.linger_timeout_ms = 0;
    const int fd = begin_with(answer_path);
    put_get(&out, 1, "/");
    tell(fd, &out);
    later(64000);
    peer_hear(fd);
    CHECK(!server_said.closed);
    later(2000);
    peer_hear(fd);
    CHECK(server_said.closed);
    CHECK_INT(server_said.goaway, NGHTTP2_NO_ERROR);
    finish(fd);
}

/* A head that does not end, and a client that says nothing after the preface. */
static void test_slow_heads(void) {
    settings.linger_timeout_ms = 0;
    for (int silent = 0; silent < 2; silent++) {
        const int fd = begin_with(answer_path);
        if (!silent) put_frame(&out, NGHTTP2_HEADERS, 0, 1, "\x82", 1);
        tell(fd, &out);
        later(29000);
        peer_hear(fd);
        CHECK(!server_said.closed);
        later(2000);
        peer_hear(fd);
        CHECK(server_said.closed);
        finish(fd);
    }
}

/* A connection that has served as many requests as it may, or one without keep-alive, serves those
 * that are on their way, and ends. */
static void test_last_request(void) {
    for (int64_t most = 1; most <= 3; most++) {
        settings.linger_timeout_ms = 0;
        settings.keep_alive = most > 1;
        settings.max_keep_alive = most > 1 ? most : 0;
        const int fd = begin_with(answer_path);
        for (uint32_t i = 0; i < most; i++) {
            CHECK_INT(server_said.goaways, 0);
            put_get(&out, 2 * i + 1, "/");
            tell(fd, &out);
        }
        CHECK_INT(server_said.goaway_last, 0x7fffffff);
        CHECK_INT(server_said.pings, 1);
        put_get(&out, 9, "/on-its-way");
        put_frame(&out, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, server_said.ping, 8);
        put_get(&out, 11, "/too-late");
        tell(fd, &out);
        CHECK_STR(peer_of(9)->body, "/on-its-way");
        CHECK_INT(peer_of(11)->status, 0);
        CHECK_INT(server_said.goaway_last, 9);
        CHECK_INT(server_said.goaway, NGHTTP2_NO_ERROR);
        CHECK(server_said.closed);
        finish(fd);
    }
}

static void answer_with_blanks(rd_request *request) {
    const rd_field fields[] = {{RD_SLICE_INIT("X-Blank"), RD_SLICE_INIT(" \ta b\t ")},
                               {RD_SLICE_INIT("x-empty"), RD_SLICE_INIT("  ")},
                               {RD_SLICE_INIT("Connection"), RD_SLICE_INIT("close")}};
    const rd_response_head head = {.status = 200, .fields = fields, .count = 3, .length = 0};
    request->responder->start(request, &head);
    request->responder->finish(request);
}

static void test_fields_of_answers(void) {
    const int fd = begin_with(answer_with_blanks);
    put_get(&out, 1, "/");
    tell(fd, &out);
    CHECK(strstr(peer_of(1)->fields, "\nx-blank: a b\nx-empty: \ncontent-length: 0\ndate: ") !=
          NULL);
    finish(fd);
}

/* A hundred streams are open when the client breaks a rule. */
static void keep_all(rd_request *request) {
    rd_request_ref(request);
    inside[inside_count++] = request;
}

static void test_breaking_with_many_streams(void) {
    settings.http2_seats = 100;
    settings.linger_timeout_ms = 0;
    const int fd = begin_with(keep_all);
    inside_count = 0;
    for (uint32_t i = 0; i < 100; i++) put_get(&out, 2 * i + 1, "/");
    for (int i = 0; i < 20; i++) tell(fd, &out);
    CHECK_INT(inside_count, 100);
    put_hex(&out, "000000040000000001");
    tell(fd, &out);
    CHECK_INT(server_said.goaway, NGHTTP2_PROTOCOL_ERROR);
    CHECK(server_said.closed);
    for (unsigned i = 0; i < inside_count; i++) {
        CHECK(inside[i]->gone);
        rd_request_unref(inside[i]);
    }
    finish(fd);
}

/* ---- floods ---- */

static void flood(const char *hex, int count) {
    settings.linger_timeout_ms = 0;
    const int fd = begin_with(answer_path);
    put_hex(&out, OPEN_1);
    for (int i = 0; i < count; i++) put_hex(&out, hex);
    tell(fd, &out);
    CHECK_SAYS(server_said.goaway == NGHTTP2_ENHANCE_YOUR_CALM, "%s", hex);
    CHECK(server_said.closed);
    finish(fd);
}

static void test_floods(void) {
    flood("000000000000000001", 1100); /* empty DATA */
    flood("000005020000000001"
          "0000000010",
          1100);                                       /* PRIORITY */
    flood("000000ee0000000001", 1100);                 /* unknown */
    flood("000000040000000000", 1100);                 /* SETTINGS */
    flood("0000080600000000000102030405060708", 1100); /* PING */
    flood("00000408000000000000000001", 1100);         /* WINDOW_UPDATE */
}

/* Empty pieces of a head that does not end. */
static void test_continuations(void) {
    settings.linger_timeout_ms = 0;
    const int fd = begin_with(answer_path);
    put_hex(&out, "000003010100000001828486");
    for (int i = 0; i < 1100; i++) put_hex(&out, "000000090000000001");
    tell(fd, &out);
    CHECK_INT(server_said.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
    CHECK(server_said.closed);
    finish(fd);
}

static void test_rapid_reset(void) {
    settings.linger_timeout_ms = 0;
    const int fd = begin_with(answer_path);
    for (uint32_t i = 0; i < 1200; i++) {
        put_get(&out, 2 * i + 1, "/");
        put_reset(&out, 2 * i + 1, NGHTTP2_CANCEL);
    }
    tell(fd, &out);
    CHECK_INT(server_said.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
    CHECK(server_said.closed);
    CHECK(server->counts.requests < 50);
    finish(fd);
}

static void test_all(void) {
    test_rows();
    test_websockets_switched_off();
    test_wrong_prefaces();
    test_many_at_once();
    test_windows();
    test_stalled_streams();
    test_streams_that_wait_for_others();
    test_a_client_that_takes_answers_to_pings_alone();
    test_a_slow_client_is_not_late();
    test_a_stream_beside_answers_without_bodies();
    test_bodies();
    test_expectation();
    test_too_large();
    test_long_heads();
    test_streams_count_together();
    test_heads_count_together();
    test_cookies_are_joined();
    test_reset_by_the_client();
    test_connection_that_closes();
    test_half_closed();
    test_cut_answers();
    test_stop();
    test_idle();
    test_slow_heads();
    test_last_request();
    test_fields_of_answers();
    test_breaking_with_many_streams();
    test_floods();
    test_continuations();
    test_rapid_reset();
}

int main(void) {
    return test_both_pollers(test_all);
}
