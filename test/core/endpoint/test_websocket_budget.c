/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket: many clients whose messages never end, or are never taken. Together they
 * hold no more than total_message_bytes; small messages of others are taken all the same. A message
 * that has begun has a deadline.
 */
#include "serving.h"

#include <zlib.h>

#include "client_frames.h"
#include "endpoint/websocket.h"
#include "server/events.h"

#define HANDSHAKE                                                                                  \
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                   \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"                 \
    "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"

enum { CROWD = 40, TOTAL = 1 << 20, LARGE = 200000 };

static rd_endpoint *endpoints[CROWD + 1];
static int fds[CROWD + 1];
static unsigned count;
static char large[LARGE];

static rd_ledger_row *row(void) {
    return &server->conns.ledger.rows[RD_LEDGER_MESSAGES];
}

static void upgrade(rd_request *request) {
    endpoints[count] = rd_websocket_upgrade(request, NULL, 0);
    CHECK(endpoints[count] != NULL);
}

static int open_websocket(void) {
    fds[count] = join();
    CHECK(!ask(fds[count], HANDSHAKE));
    return fds[count++];
}

static void send_frame(int fd, unsigned first, const char *payload, size_t len) {
    static char frame[LARGE + CLIENT_HEADER_MAX];
    const size_t frame_len = client_frame(frame, first, 0x01020304, payload, len, len);
    for (size_t sent = 0; sent < frame_len;) {
        ssize_t part = send(fd, frame + sent, frame_len - sent, MSG_NOSIGNAL);
        if (part > 0) sent += (size_t)part;
        turns(1);
    }
    turns(2);
}

/* Sends many bytes, deflated to a few hundred. */
static void send_packed(int fd, unsigned first) {
    static char packed[LARGE];
    z_stream stream = {.next_in = (unsigned char *)large,
                       .avail_in = sizeof(large),
                       .next_out = (unsigned char *)packed,
                       .avail_out = sizeof(packed)};
    deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
    deflate(&stream, Z_SYNC_FLUSH);
    deflateEnd(&stream);
    send_frame(fd, first | RSV1, packed, stream.total_out - 4);
}

/* Returns the code of its Close; 0: no Close came. */
static unsigned close_code(int fd) {
    hear(fd);
    for (size_t i = 0; i + 3 < got_len; i++) {
        if ((unsigned char)got[i] != (FIN | CLOSE)) continue;
        return (unsigned)(unsigned char)got[i + 2] << 8 | (unsigned char)got[i + 3];
    }
    return 0;
}

static unsigned tell_some(void) {
    rd_event event = {.source = NULL};
    unsigned messages = 0;
    rd_loop_lock(&server->loop);
    while (rd_server_next_event(server, &event, true))
        messages += event.kind == RD_ENDPOINT_MESSAGE;
    rd_loop_unlock(&server->loop);
    turns(2);
    return messages;
}

/* Delivers all events to the application; returns how many were messages. */
static unsigned tell_all(void) {
    unsigned all = 0;
    for (unsigned some = 1; some > 0; all += some) some = tell_some();
    return all;
}

static void leave_all(void) {
    for (unsigned i = 0; i < count; i++) close(fds[i]);
    turns(3);
    tell_all();
    for (unsigned i = 0; i < count; i++) rd_endpoint_unref(endpoints[i]);
    count = 0;
    CHECK_INT(row()->held, 0);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_INPUT].held, 0);
    end();
}

static void check_bystander(void) {
    int fd = open_websocket();
    tell_all();
    send_frame(fd, FIN | TEXT, "hello", 5);
    CHECK_INT(tell_all(), 1);
    CHECK_INT(close_code(fd), 0);
}

static void gather(void (*fill)(int fd)) {
    settings.total_message_bytes = TOTAL;
    start(upgrade);
    for (int i = 0; i < CROWD; i++) {
        fill(open_websocket());
        CHECK(row()->held <= TOTAL);
    }
}

/* How many were closed because there was no room. */
static unsigned count_refused(void) {
    unsigned refused = 0;
    tell_all(); /* the Close is sent after the application has got the events before it */
    for (int i = 0; i < CROWD; i++) {
        const unsigned code = close_code(fds[i]);
        CHECK(code == 0 || code == 1013);
        refused += code == 1013;
    }
    return refused;
}

static void begin_packed(int fd) {
    send_packed(fd, BINARY);
}

static void begin_plain(int fd) {
    send_frame(fd, BINARY, large, 60000);
}

static void begin_small(int fd) {
    send_frame(fd, BINARY, large, 10000);
}

static void test_messages_that_never_end(void) {
    gather(begin_packed); /* 256 KiB and an inflater, less the free part */
    CHECK_INT(count_refused(), CROWD - 3);
    CHECK_INT(row()->refused, CROWD - 3);
    CHECK_INT(server->incidents.count, 1); /* one line */
    CHECK_INT(server->incidents.kept[0].code, RD_ERR_WS_MESSAGES_FULL);
    check_bystander();
    leave_all();
    gather(begin_plain); /* 64 KiB less 16 */
    CHECK_INT(count_refused(), CROWD - 21);
    check_bystander();
    leave_all();
}

static void test_small_parts_are_free(void) {
    gather(begin_small);
    CHECK_INT(row()->held, 0);
    CHECK_INT(count_refused(), 0);
    leave_all();
}

static void send_whole(int fd) {
    send_frame(fd, FIN | BINARY, large, 60000);
}

/* A client that sends a second message while the budget is nearly full waits until the first one is
 * taken. */
static void send_some(int fd) {
    for (int i = 0; i < 12; i++) send_frame(fd, FIN | BINARY, large, 3000);
}

static void test_messages_that_nobody_takes(void) {
    gather(send_whole);
    CHECK_INT(row()->held > 0, 1);
    const unsigned refused = (unsigned)row()->refused;
    CHECK(refused > 0 && refused < CROWD);
    CHECK_INT(tell_all(), CROWD - refused);
    CHECK_INT(row()->held, 0);
    leave_all();
    gather(send_some);
    CHECK_INT(row()->refused, 0);
    CHECK_INT(tell_all(), 12 * CROWD);
    CHECK_INT(count_refused(), 0);
    leave_all();
}

static void test_a_message_in_pieces_that_fit(void) {
    settings.total_message_bytes = TOTAL;
    start(upgrade);
    int fd = open_websocket();
    tell_all();
    for (int i = 0; i < 4; i++) send_frame(fd, i == 0 ? TEXT : CONTINUATION, large, 30000);
    CHECK(row()->held > 100000 && row()->held < 300000);
    send_frame(fd, FIN | CONTINUATION, large, 30000);
    CHECK_INT(tell_all(), 1);
    CHECK_INT(row()->held, 0);
    leave_all();
}

/* Pings and further fragments do not move the deadline, and it is not the deadline for silence. */
static void test_the_deadline_of_a_message(void) {
    settings.message_timeout_ms = 10000;
    settings.ping_interval_ms = 4000;
    start(upgrade);
    int late = open_websocket(), good = open_websocket();
    tell_all();
    send_frame(late, TEXT, "be", 2);
    for (int i = 0; i < 4; i++) {
        later(2400);
        send_frame(late, i % 2 == 0 ? FIN | PING : CONTINUATION, "gun", 3);
        send_frame(good, TEXT, "a", 1);
        send_frame(good, FIN | CONTINUATION, "b", 1);
        CHECK_INT(close_code(late), 0);
    }
    CHECK_INT(tell_all(), 4);
    later(500);
    tell_all();
    CHECK_INT(close_code(late), 1008);
    CHECK_INT(close_code(good), 0);
    CHECK_INT(server->incidents.kept[0].code, RD_ERR_WS_MESSAGE_TIMEOUT);
    leave_all();
}

static void test_no_deadline(void) {
    settings.message_timeout_ms = 0;
    settings.ping_interval_ms = 0;
    start(upgrade);
    int fd = open_websocket();
    tell_all();
    send_frame(fd, TEXT, "be", 2);
    later(86400000);
    CHECK_INT(close_code(fd), 0);
    send_frame(fd, FIN | CONTINUATION, "end", 3);
    CHECK_INT(tell_all(), 1);
    leave_all();
}

/* The server causes the pause, so its time does not count against the client. */
static void test_the_deadline_waits_for_the_application(void) {
    settings.message_timeout_ms = 10000;
    settings.ping_interval_ms = 0;
    start(upgrade);
    int fd = open_websocket();
    tell_all();
    send_frame(fd, FIN | BINARY, large, 40000);
    send_frame(fd, FIN | BINARY, large, 40000); /* no more is read */
    send_frame(fd, TEXT, "be", 2);
    later(60000);
    CHECK_INT(tell_all(), 2);
    later(9000);
    CHECK_INT(close_code(fd), 0);
    later(1500);
    tell_all();
    CHECK_INT(close_code(fd), 1008);
    leave_all();
}

static void test_all(void) {
    test_messages_that_never_end();
    test_small_parts_are_free();
    test_messages_that_nobody_takes();
    test_a_message_in_pieces_that_fit();
    test_the_deadline_of_a_message();
    test_no_deadline();
    test_the_deadline_waits_for_the_application();
}

int main(void) {
    return test_both_pollers(test_all);
}
