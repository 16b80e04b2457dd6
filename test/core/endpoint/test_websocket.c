/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket: what time does to a connection, how it ends, and what it does with a client
 * or an application that is slow. A whole server turned by hand, a clock by hand; the application
 * is the test, which takes the events one by one. What frames mean: test_websocket_message.c.
 */
#include "client_frames.h"
#include "serving.h"

#include "endpoint/websocket.h"

#define HANDSHAKE                                                                                  \
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"                   \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

/* 64 KiB, and the bytes that one read of the socket can add. */
enum { MOST_WAITING = 65536 + sizeof(((rd_loop *)0)->receive) + 8192 };

static rd_endpoint *endpoint; /* of the client; a reference */
static rd_event event;
static int client;

static void upgrade(rd_request *request) {
    endpoint = rd_websocket_upgrade(request, NULL, 0);
    CHECK(endpoint != NULL);
    endpoint->wants_drained = true;
}

/* Takes the next event, after it has released the one before; returns its kind. */
static rd_endpoint_event next_event(void) {
    rd_loop_lock(&server->loop);
    bool is_one = rd_server_next_event(server, &event, true);
    rd_loop_unlock(&server->loop);
    return is_one ? (rd_endpoint_event)event.kind : RD_ENDPOINT_NOTHING;
}

static void give_back(void) {
    rd_loop_lock(&server->loop);
    rd_server_next_event(server, &event, false);
    rd_loop_unlock(&server->loop);
}

static void write_text(const char *text, size_t len) {
    rd_loop_lock(&server->loop);
    if (endpoint->conn != NULL) rd_endpoint_ops_of(endpoint)->write(endpoint, text, len, true);
    rd_loop_unlock(&server->loop);
}

static void close_with(unsigned code, const char *reason) {
    rd_loop_lock(&server->loop);
    rd_endpoint_ops_of(endpoint)->close(endpoint, code, rd_slice_of(reason, strlen(reason)));
    rd_loop_unlock(&server->loop);
}

static void send_frame(unsigned first, const char *payload, size_t len) {
    char frame[CLIENT_HEADER_MAX + 4096];
    size_t size = client_frame(frame, first, 0x12345678, payload, len, len);
    CHECK_INT(send(client, frame, size, MSG_NOSIGNAL), size);
}

static void send_close(void) {
    send_frame(FIN | CLOSE, "\x03\xe8", 2);
}

/* What the client got since the last call; returns whether the end has come, too. */
#define CHECK_HEARD(bytes) check_heard(bytes, sizeof(bytes) - 1, __LINE__)

static bool check_heard(const char *bytes, size_t len, int line) {
    bool ended = hear(client);
    CHECK_SAYS(got_len == len && memcmp(got, bytes, len) == 0, "line %d: %zu bytes", line, got_len);
    return ended;
}

/* A WebSocket whose on_open was delivered. */
static void open_one(void) {
    start(upgrade);
    client = join();
    say(client, HANDSHAKE);
    turns(3);
    CHECK(!hear(client));
    CHECK(begins(got, "HTTP/1.1 101 "));
    CHECK_INT(next_event(), RD_ENDPOINT_OPEN);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    turn();
}

/* What the application hears of the end, and that this is its last event. */
static void check_closed(unsigned code, const char *reason) {
    CHECK_INT(next_event(), RD_ENDPOINT_CLOSE);
    CHECK_INT(endpoint->close_code, code);
    CHECK_BYTES(rd_endpoint_reason_of(endpoint).ptr, rd_endpoint_reason_of(endpoint).len, reason);
    CHECK(endpoint->conn == NULL);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    CHECK(!rd_events_live(server));
}

static void end_one(void) {
    rd_loop_lock(&server->loop);
    rd_endpoint_unref(endpoint);
    rd_loop_unlock(&server->loop);
    close(client);
    end();
}

/* ---- silence ---- */

static void test_a_silent_client_is_pinged_and_then_closed(void) {
    open_one();
    later(39000);
    CHECK(!CHECK_HEARD(""));
    later(2000);
    CHECK(!CHECK_HEARD("\x89\0"));
    later(39000);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    later(2000);
    CHECK(CHECK_HEARD(""));
    check_closed(1006, "");
    end_one();
}

static void test_whatever_is_heard_puts_the_ping_off(void) {
    open_one();
    for (int i = 0; i < 3; i++) {
        later(41000);
        CHECK(!CHECK_HEARD("\x89\0"));
        send_frame(FIN | PONG, "", 0);
        turns(2);
    }
    later(39000);
    send_frame(FIN | PING, "?", 1);
    turns(2);
    CHECK(!CHECK_HEARD("\x8a\x01?"));
    later(39000);
    CHECK(!CHECK_HEARD(""));
    send_close();
    turns(3);
    later(30000);
    check_closed(1000, "");
    end_one();
}

/* Nothing is read while the application has enough to do. The client is not silent then. */
static void test_an_application_that_is_slow_is_no_silence(void) {
    static const char large[4096];
    open_one();
    for (int i = 0; i < 20; i++) {
        send_frame(FIN | BINARY, large, sizeof(large));
        turns(2);
    }
    CHECK(joined->read_paused);
    later(41000);
    later(41000);
    later(41000);
    if (!CHECK(endpoint->conn != NULL)) return;
    for (int i = 0; i < 20; i++) {
        CHECK_INT(next_event(), RD_ENDPOINT_MESSAGE);
        CHECK_INT(rd_buffer_len(&rd_endpoint_message_of(&event)->payload), sizeof(large));
        turns(2);
    }
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    CHECK(!joined->read_paused);
    later(41000);
    CHECK(!CHECK_HEARD("\x89\0"));
    send_close();
    turns(3);
    later(30000);
    check_closed(1000, "");
    end_one();
}

/* ---- the two ends ---- */

static void test_our_close_waits_for_theirs_until_its_deadline(void) {
    open_one();
    write_text("bye", 3);
    close_with(3001, "why");
    write_text("late", 4);
    turns(2);
    CHECK(!CHECK_HEARD("\x81\x03"
                       "bye\x88\x05\x0b\xb9why"));
    send_frame(FIN | TEXT, "ignored", 7); /* it does not postpone the deadline, either */
    later(4000);
    CHECK(endpoint->conn != NULL);
    later(1500);
    CHECK(hear(client));
    check_closed(3001, "why");
    end_one();
}

static void test_our_close_and_theirs(void) {
    open_one();
    close_with(1000, "");
    turns(2);
    send_close();
    turns(3);
    CHECK(CHECK_HEARD("\x88\x02\x03\xe8"));
    later(30000); /* it lingers for bytes that are still on their way */
    check_closed(1000, "");
    end_one();
}

static void test_their_close_is_answered_behind_the_last_answer(void) {
    open_one();
    send_frame(FIN | TEXT, "a", 1);
    send_close();
    send_frame(FIN | TEXT, "b", 1);
    turns(2);
    CHECK(!CHECK_HEARD(""));
    later(100000); /* for as long as the application takes */
    CHECK_INT(next_event(), RD_ENDPOINT_MESSAGE);
    write_text("A", 1);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    turns(2);
    CHECK(CHECK_HEARD("\x81\x01"
                      "A\x88\x02\x03\xe8"));
    later(30000);
    check_closed(1000, "");
    end_one();
}

static void test_an_end_without_a_close_comes_behind_the_messages(void) {
    open_one();
    send_frame(FIN | TEXT, "a", 1);
    CHECK_INT(shutdown(client, SHUT_WR), 0);
    turns(4);
    CHECK_INT(next_event(), RD_ENDPOINT_MESSAGE);
    check_closed(1006, "");
    end_one();
}

static void test_an_end_while_an_event_is_told(void) {
    open_one();
    send_frame(FIN | TEXT, "a", 1);
    turns(2);
    CHECK_INT(next_event(), RD_ENDPOINT_MESSAGE);
    close(client);
    turns(2);
    CHECK(endpoint->conn == NULL);
    rd_loop_lock(&server->loop);
    CHECK(rd_list_is_empty(&server->events.waiting)); /* never two events at once */
    rd_loop_unlock(&server->loop);
    check_closed(1006, "");
    client = dup(0);
    end_one();
}

/* ---- the server stops ---- */

static void test_last_words_at_shutdown(void) {
    open_one();
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(2);
    CHECK_INT(next_event(), RD_ENDPOINT_SHUTDOWN);
    write_text("last", 4);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    turns(2);
    CHECK(!CHECK_HEARD("\x81\x04last\x88\x0c\x03\xe9going away"));
    CHECK(!rd_server_is_done(server));
    send_close();
    turns(3);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    later(30000);
    check_closed(1001, "going away");
    turns(2);
    CHECK(rd_server_is_done(server));
    end_one();
}

/* It goes on until its time has come, and its Close says that the service restarts. */
static void test_shutdown_by_and_by(void) {
    settings.drain_spread_ms = 5000;
    open_one();
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(2);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    CHECK(!rd_server_is_done(server));
    send_frame(FIN | TEXT, "hi", 2);
    turns(2);
    CHECK_INT(next_event(), RD_ENDPOINT_MESSAGE);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    for (int ms = 0; ms < 5000; ms++) later(1);
    CHECK_INT(next_event(), RD_ENDPOINT_SHUTDOWN);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    turns(2);
    CHECK(!CHECK_HEARD("\x88\x11\x03\xf4service restart"));
    send_close();
    turns(3);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    later(30000);
    check_closed(1012, "service restart");
    turns(2);
    CHECK(rd_server_is_done(server));
    end_one();
}

/* A client that keeps sending does not delay the application's shutdown event. */
static void test_shutdown_is_told_in_spite_of_a_busy_client(void) {
    static const char large[4096];
    int messages = 0;
    rd_endpoint_event kind = RD_ENDPOINT_NOTHING;
    open_one();
    send_frame(FIN | BINARY, large, sizeof(large));
    send_frame(FIN | BINARY, large, sizeof(large));
    turns(2);
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(2);
    for (; messages < 100 && kind != RD_ENDPOINT_SHUTDOWN; messages++) {
        send_frame(FIN | BINARY, large, sizeof(large));
        turns(2);
        kind = next_event();
    }
    CHECK_INT(kind, RD_ENDPOINT_SHUTDOWN);
    CHECK_INT(messages, 3);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    send_close();
    turns(3);
    later(30000);
    check_closed(1001, "going away");
    end_one();
}

/* ---- clients that do not read ---- */

static void test_a_stalled_reader_is_closed_at_its_limit(void) {
    static const char page[8192];
    unsigned written = 0;
    open_one();
    while (written < 30000 && endpoint->conn != NULL) {
        write_text(page, sizeof(page));
        if (endpoint->conn != NULL) CHECK(joined->out.bytes <= 1048576 + sizeof(page) + 4);
        if (written++ % 10 == 0) turn();
    }
    CHECK_SAYS(written > 128 && written < 300, "%u pages of 8 KiB", written);
    check_closed(1013, "too slow");
    end_one();
}

/* If a client reads, more bytes than the limit at once do not close its connection. */
static void test_a_burst_for_a_client_that_reads(void) {
    static char large[3000000];
    size_t heard = 0;
    open_one();
    write_text(large, sizeof(large));
    for (int i = 0; i < 1000 && endpoint->conn != NULL && heard < sizeof(large) + 10; i++) {
        CHECK(!hear(client));
        heard += got_len;
        turn();
    }
    CHECK_INT(heard, sizeof(large) + 10);
    for (int i = 0; i < 40 && endpoint->conn != NULL; i++) write_text(large, 30000);
    CHECK(endpoint->conn != NULL);
    CHECK_INT(next_event(), RD_ENDPOINT_DRAINED);
    send_close();
    turns(2);
    CHECK(endpoint->conn != NULL);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    close(client);
    client = dup(0);
    turns(3);
    check_closed(1000, "");
    end_one();
}

/* Its pongs are rare, but they come. */
static void test_pings_of_a_client_that_does_not_read(void) {
    static const char large[500000];
    open_one();
    write_text(large, sizeof(large));
    turns(2);
    size_t before = joined->out.bytes;
    CHECK(before > 100000);
    for (int i = 0; i < 1000; i++) {
        send_frame(FIN | PING, "ping", 4);
        turn();
    }
    size_t pongs = joined->out.bytes - before;
    CHECK_SAYS(pongs >= 6 && pongs <= 600, "%zu bytes of pongs", pongs);
    close(client);
    client = dup(0);
    turns(3);
    check_closed(1006, "");
    end_one();
}

/* ---- a slow application ---- */

static void test_reading_stops_while_messages_wait(void) {
    static char large[4096];
    unsigned sent = 0, told = 0;
    open_one();
    while (sent < 200) { /* until the socket is full */
        char frame[CLIENT_HEADER_MAX + sizeof(large)];
        large[0] = (char)sent;
        size_t size = client_frame(frame, FIN | BINARY, 0, large, sizeof(large), sizeof(large));
        ssize_t went = send(client, frame, size, MSG_NOSIGNAL);
        if (went != (ssize_t)size) break;
        sent++;
        turn();
    }
    CHECK(joined->read_paused);
    CHECK_SAYS(endpoint->message_bytes < MOST_WAITING, "%u bytes wait", endpoint->message_bytes);
    for (int i = 0; i < 300 && told < sent; i++) {
        if (next_event() == RD_ENDPOINT_MESSAGE) {
            CHECK_INT((unsigned char)rd_buffer_ptr(&rd_endpoint_message_of(&event)->payload)[0],
                      told);
            told++;
        }
        CHECK(endpoint->message_bytes < MOST_WAITING);
        turn();
    }
    give_back();
    CHECK_INT(told, sent);
    CHECK(!joined->read_paused);
    close(client);
    client = dup(0);
    turns(3);
    check_closed(1006, "");
    end_one();
}

static void test_a_server_that_ends_with_events_untold(void) {
    start(upgrade);
    client = join();
    say(client, HANDSHAKE);
    turns(3);
    send_frame(FIN | TEXT, "nobody hears it", 15);
    turns(2);
    rd_loop_lock(&server->loop);
    rd_endpoint_unref(endpoint);
    rd_loop_unlock(&server->loop);
    rd_server_stop(server, RD_STOP_NOW);
    turns(2);
    CHECK(!rd_server_is_done(server)); /* the event would still be delivered */
    close(client);
    rd_server_free(server); /* LeakSanitizer checks the memory */
}

int main(void) {
    rd_settings_init(&settings);
    for (int poll_only = 0; poll_only < 2; poll_only++) {
        settings.poll_only = poll_only;
        test_a_silent_client_is_pinged_and_then_closed();
        test_whatever_is_heard_puts_the_ping_off();
        test_an_application_that_is_slow_is_no_silence();
        test_our_close_waits_for_theirs_until_its_deadline();
        test_our_close_and_theirs();
        test_their_close_is_answered_behind_the_last_answer();
        test_an_end_without_a_close_comes_behind_the_messages();
        test_an_end_while_an_event_is_told();
        test_last_words_at_shutdown();
        test_shutdown_by_and_by();
        test_shutdown_is_told_in_spite_of_a_busy_client();
        test_a_stalled_reader_is_closed_at_its_limit();
        test_a_burst_for_a_client_that_reads();
        test_pings_of_a_client_that_does_not_read();
        test_reading_stops_while_messages_wait();
        test_a_server_that_ends_with_events_untold();
    }
    return check_summary();
}
