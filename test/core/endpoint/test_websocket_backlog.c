/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket: one read of deflated messages may be a thousand times as large as it came.
 * An application that is slow gets all of them, in order, but the server never holds more inflated
 * than its backlog and one message; a Close behind them is seen in its turn.
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

enum { COUNT = 150, MESSAGE_BYTES = 100000, BACKLOG_BYTES = 65536 };

static rd_endpoint *endpoint;

static void upgrade(rd_request *request) {
    endpoint = rd_websocket_upgrade(request, NULL, 0);
    CHECK(endpoint != NULL);
}

/* A message of zeros that begins with its number. */
static size_t write_message(char *bytes, uint32_t number) {
    static char message[MESSAGE_BYTES], packed[MESSAGE_BYTES];
    z_stream stream = {0};

    memcpy(message, &number, sizeof number);
    deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
    stream.next_in = (unsigned char *)message;
    stream.avail_in = sizeof message;
    stream.next_out = (unsigned char *)packed;
    stream.avail_out = sizeof packed;
    deflate(&stream, Z_SYNC_FLUSH);
    deflateEnd(&stream);
    const size_t len = stream.total_out - 4;
    return client_frame(bytes, FIN | RSV1 | BINARY, 0x12345678, packed, len, len);
}

static int open_websocket(void) {
    start(upgrade);
    int fd = join();
    CHECK(!ask(fd, HANDSHAKE));
    CHECK(strstr(got, "\r\nsec-websocket-extensions: permessage-deflate;") != NULL);
    return fd;
}

static void send_messages(int fd, bool and_close) {
    static char bytes[COUNT * 400];
    size_t len = 0;

    for (uint32_t i = 0; i < COUNT; i++) len += write_message(bytes + len, i);
    if (and_close) len += client_frame(bytes + len, FIN | CLOSE, 1, "\x03\xe8", 2, 2);
    CHECK(len < RD_LOOP_RECEIVE_BYTES);
    CHECK_INT(send(fd, bytes, len, MSG_NOSIGNAL), len);
    turns(2);
}

/* Takes the events one by one, and releases each one before the next. Returns how many messages
 * were among them. It stops at the message `until`, and keeps its event. */
static uint32_t hear_events(rd_event *event, uint32_t until) {
    uint32_t count = 0, number;

    rd_loop_lock(&server->loop);
    while (rd_server_next_event(server, event, true)) {
        CHECK(endpoint->message_bytes <= BACKLOG_BYTES + 2 * MESSAGE_BYTES);
        if (event->kind != RD_ENDPOINT_MESSAGE) continue;
        CHECK_INT(rd_buffer_len(&rd_endpoint_message_of(event)->payload), MESSAGE_BYTES);
        memcpy(&number, rd_buffer_ptr(&rd_endpoint_message_of(event)->payload), sizeof number);
        CHECK_INT(number, count);
        if (++count == until) break;
    }
    rd_loop_unlock(&server->loop);
    return count;
}

static void leave(int fd) {
    rd_event event = {.source = NULL};

    close(fd);
    turns(2);
    hear_events(&event, COUNT + 1);
    rd_endpoint_unref(endpoint);
    end();
}

static void test_backlog(void) {
    rd_event event = {.source = NULL};
    int fd = open_websocket();

    send_messages(fd, false);
    CHECK(endpoint->message_bytes > 0 &&
          endpoint->message_bytes <= BACKLOG_BYTES + 2 * MESSAGE_BYTES);
    CHECK(endpoint->conn->read_paused);
    CHECK_INT(hear_events(&event, COUNT + 1), COUNT);
    CHECK(!endpoint->conn->read_paused);
    CHECK(endpoint->conn->input.bytes == NULL);
    leave(fd);
}

static int fail_to_modify(rd_poller *poller, rd_source *source) {
    (void)poller, (void)source;
    errno = ENOMEM;
    return -1;
}

/* Reading cannot continue when there is room again. Then the connection is over, but earlier
 * messages are still delivered. */
static void test_poller_that_fails(void) {
    rd_event event = {.source = NULL};
    int fd = open_websocket();
    const rd_poller_ops *whole = server->loop.ops;
    rd_poller_ops broken = *whole;

    send_messages(fd, false);
    CHECK(endpoint->conn->read_paused);
    broken.modify = fail_to_modify;
    server->loop.ops = &broken;
    const uint32_t heard = hear_events(&event, COUNT + 1);
    CHECK(heard > 0 && heard < COUNT);
    CHECK(endpoint->conn == NULL);
    server->loop.ops = whole;
    leave(fd);
}

static void test_close_behind(void) {
    rd_event event = {.source = NULL};
    int fd = open_websocket();

    send_messages(fd, true);
    CHECK_INT(hear_events(&event, COUNT + 1), COUNT);
    turns(2);
    hear(fd);
    CHECK(got_len == 4 && memcmp(got, "\x88\x02\x03\xe8", 4) == 0);
    leave(fd);
}

/* The application closes while messages wait: they are read up to the peer's Close, and dropped. */
static void test_close_before(void) {
    rd_event event = {.source = NULL};
    int fd = open_websocket();

    send_messages(fd, true);
    CHECK_INT(hear_events(&event, 1), 1);
    rd_loop_lock(&server->loop);
    rd_endpoint_ops_of(endpoint)->close(endpoint, 4000, RD_SLICE("enough"));
    rd_loop_unlock(&server->loop);
    turns(2);
    hear(fd);
    CHECK(got_len == 10 && memcmp(got,
                                  "\x88\x08\x0f\xa0"
                                  "enough",
                                  10) == 0);
    CHECK(endpoint->conn == NULL || !rd_conn_is_open(endpoint->conn));
    hear_events(&event, COUNT + 1);
    leave(fd);
}

/* Messages are deflated by the one packer of the server, and only from the threshold on. */
static void test_written(void) {
    static char text[5000];
    int fd = open_websocket();

    memset(text, 'a', sizeof text);
    rd_loop_lock(&server->loop);
    rd_endpoint_ops_of(endpoint)->write(endpoint, text, sizeof text, true);
    rd_endpoint_ops_of(endpoint)->write(endpoint, text, 1000, true);
    rd_loop_unlock(&server->loop);
    turns(2);
    hear(fd);
    CHECK(got_len < 1100 && (uint8_t)got[0] == (FIN | RSV1 | TEXT));
    CHECK((uint8_t)got[got_len - 1004] == (FIN | TEXT));
    leave(fd);
}

int main(void) {
    rd_settings_init(&settings);
    test_backlog();
    test_poller_that_fails();
    test_close_behind();
    test_close_before();
    test_written();
    return check_summary();
}
