/* SPDX-License-Identifier: MIT
 *
 * Published messages (pubsub/fanout.c) for clients of both versions: a WebSocket of HTTP/1.1 and
 * one that is a stream of HTTP/2 send the same bytes from the same memory.
 */
#include "http2_serving.h"

#include "endpoint/endpoint.h"
#include "endpoint/endpoint_message.h"
#include "http2/http2_session.h"
#include "transport/parting.h"

#define UPGRADE                                                                                    \
    "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"               \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define CONNECT                                                                                    \
    ":method CONNECT\n:protocol websocket\n:scheme http\n:path /chat\n:authority a\n"              \
    "sec-websocket-version 13"

enum { LONG = 400000, HEADER = 10 /* of its frame */ };

static rd_endpoint *endpoints[2];
static unsigned upgraded;

static void upgrade(rd_request *request) {
    const rd_pubsub_terms terms = {.as = RD_AS_SENT};
    rd_endpoint *endpoint = rd_upgrade_asked(request)->begin(request, NULL, 0);
    endpoints[upgraded++] = endpoint;
    CHECK_INT(rd_pubsub_subscribe(&server->pubsub, endpoint, RD_SLICE("room"), false, &terms), 1);
}

static void publish(rd_slice payload) {
    rd_loop_lock(&server->loop);
    CHECK_INT(rd_pubsub_publish(&server->pubsub, RD_SLICE("room"), payload, true, RD_REACH_PROCESS),
              1);
    rd_loop_unlock(&server->loop);
    turns(3);
}

static void release_endpoints(void) {
    rd_loop_lock(&server->loop);
    rd_event event = {0};
    while (rd_server_next_event(server, &event, true)) continue;
    for (int i = 0; i < 2; i++) rd_endpoint_unref(endpoints[i]);
    rd_loop_unlock(&server->loop);
}

/* What its connection sends next. */
static const rd_chunk *queued(const rd_endpoint *endpoint) {
    const rd_chunk *chunk = rd_outq_first(&endpoint->conn->out);
    CHECK(chunk != NULL && chunk->kind == RD_CHUNK_BORROWED && chunk->is_shared);
    return chunk;
}

/* Both are too slow for the long one, so their queues have the rest of it. */
static void test_a_message_is_encoded_once(void) {
    static char text[LONG];
    memset(text, 'x', sizeof(text));
    upgraded = 0;
    settings.max_publish_bytes = LONG;
    const int fd = begin_with(upgrade), plain = join();
    ask(plain, UPGRADE);
    CHECK(begins(got, "HTTP/1.1 101 "));
    put_head_with(&out, 1, 0, CONNECT);
    tell(fd, &out);
    CHECK_INT(upgraded, 2);
    CHECK_INT(peer_of(1)->status, 200);

    publish(rd_slice_of(text, sizeof(text)));
    const rd_chunk *one = queued(endpoints[0]), *other = queued(endpoints[1]);
    CHECK(one->release == other->release);
    CHECK(one->ptr + one->len == other->ptr + other->len);
    CHECK_INT(server->conns.ledger.rows[RD_LEDGER_OUTPUT].held < 2 * LONG, 1);

    size_t heard = 0;
    for (int i = 0; i < 200; i++) {
        hear(plain);
        heard += got_len;
        turns(1);
    }
    CHECK_INT(heard, LONG + HEADER);
    put_window(&out, 0, 1 << 20);
    put_window(&out, 1, 1 << 20);
    for (int i = 0; i < 200; i++) tell(fd, &out);
    CHECK_INT(peer_of(1)->body_len, LONG + HEADER);
    CHECK(memcmp(peer_of(1)->body, "\x81\x7f\0\0\0\0\0\x06\x1a\x80xxx", 13) == 0);

    close(plain);
    close(fd);
    turns(3);
    release_endpoints();
    end();
    peer_end();
}

/* ---- the server stops ---- */

/* Both wait for their time, whether they have a connection of their own or not. */
static void test_ends_are_spread(void) {
    upgraded = 0;
    settings.drain_spread_ms = 5000;
    const int fd = begin_with(upgrade), plain = join();
    ask(plain, UPGRADE);
    put_head_with(&out, 1, 0, CONNECT);
    tell(fd, &out);
    CHECK_INT(upgraded, 2);
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(3);
    for (int i = 0; i < 2; i++) CHECK(endpoints[i]->conn != NULL && !endpoints[i]->is_closing);
    publish(RD_SLICE("still here"));
    CHECK(!hear(plain));
    CHECK_STR(got, "\x81\x0astill here");
    for (int ms = 0; ms < 5000; ms++) {
        pass_ms(1);
        turn();
    }
    rd_loop_lock(&server->loop);
    rd_event event = {0};
    while (rd_server_next_event(server, &event, true)) continue;
    for (int i = 0; i < 2; i++) CHECK_INT(endpoints[i]->close_code, 1012);
    rd_loop_unlock(&server->loop);
    later((uint64_t)settings.close_timeout_ms);
    close(plain);
    close(fd);
    turns(3);
    CHECK(rd_parting_is_in_use(&server->conns) == false);
    release_endpoints();
    end();
    peer_end();
}

/* One leaves before its time; the others are ended at once. */
static void test_ends_before_their_time(void) {
    upgraded = 0;
    settings.drain_spread_ms = 5000;
    const int fd = begin_with(upgrade), plain = join();
    ask(plain, UPGRADE);
    put_head_with(&out, 1, 0, CONNECT);
    tell(fd, &out);
    rd_server_stop(server, RD_STOP_DRAIN);
    turns(3);
    CHECK(rd_parting_is_in_use(&server->conns));
    close(fd);
    turns(3);
    CHECK(endpoints[1]->conn == NULL && endpoints[0]->conn != NULL);
    rd_server_stop(server, RD_STOP_NOW);
    turns(3);
    CHECK(endpoints[0]->conn == NULL);
    close(plain);
    release_endpoints();
    end();
    peer_end();
}

/* ---- what a client sends before it has an answer ---- */

/* A message of one letter. */
static void put_message(char letter, bool last) {
    const char frame[] = {(char)0x81, (char)0x81, 0, 0, 0, 0, letter};
    put_frame(&out, NGHTTP2_DATA, last ? NGHTTP2_FLAG_END_STREAM : 0, 1, frame, sizeof(frame));
}

static char taken[16]; /* the messages of the application */

static void take_messages(void) {
    rd_loop_lock(&server->loop);
    rd_event event = {0};
    while (rd_server_next_event(server, &event, true)) {
        if (event.kind != RD_ENDPOINT_MESSAGE) continue;
        const rd_endpoint_message *message = event.message;
        strncat(taken, rd_buffer_ptr(&message->payload), rd_buffer_len(&message->payload));
    }
    rd_loop_unlock(&server->loop);
}

static int begin_early(void) {
    taken[0] = '\0';
    const int fd = begin_with(hold);
    put_head_with(&out, 1, 0, CONNECT);
    return fd;
}

static void answer_held(void) {
    rd_loop_lock(&server->loop);
    endpoints[0] = rd_upgrade_asked(held)->begin(held, NULL, 0);
    rd_loop_unlock(&server->loop);
    let_go();
}

static void end_early(int fd) {
    close(fd);
    turns(3);
    take_messages();
    rd_loop_lock(&server->loop);
    rd_endpoint_unref(endpoints[0]);
    rd_loop_unlock(&server->loop);
    end();
    peer_end();
}

/* They are read with the answer, in their order, though more comes in the same turn. */
static void test_messages_before_the_answer(void) {
    const int fd = begin_early();
    put_message('a', false);
    tell(fd, &out);
    CHECK(held != NULL);
    answer_held();
    put_message('b', false);
    tell(fd, &out);
    take_messages();
    CHECK_STR(taken, "ab");
    CHECK_INT(peer_of(1)->status, 200);
    CHECK_INT(server_said.goaway, NO_CODE);
    end_early(fd);
}

/* The stream ends, and the messages before it have not been read. */
static void test_the_end_behind_messages_that_wait(void) {
    const int fd = begin_early();
    put_message('a', false);
    tell(fd, &out);
    answer_held();
    put_message('b', true);
    send_part(fd, out.bytes, out.len);
    out.len = 0;
    put_frame(&out, NGHTTP2_PING, 0, 0, "01234567", 8);
    tell(fd, &out);
    take_messages();
    CHECK_STR(taken, "ab");
    CHECK_INT(server_said.pongs, 1);
    CHECK_INT(server_said.goaway, NO_CODE);
    end_early(fd);
}

static void test_all(void) {
    test_messages_before_the_answer();
    test_the_end_behind_messages_that_wait();
    test_a_message_is_encoded_once();
    test_ends_are_spread();
    test_ends_before_their_time();
}

int main(void) {
    return test_both_pollers(test_all);
}
