/* SPDX-License-Identifier: MIT
 *
 * http/push: published messages for clients that do not read, one that is longer than all that may
 * wait, and a channel that goes on while a client leaves. A WebSocket of a whole server turned by
 * hand; the application is the test.
 */
#include "client_frames.h"
#include "serving.h"

#include "protocol/websocket.h"

#define HANDSHAKE                                                                                  \
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"                   \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static rd_push *push; /* of the client; a reference */
static rd_event event;
static int client;

static void upgrade(rd_request *request) {
    push = rd_websocket_upgrade(request, NULL, 0);
    CHECK(push != NULL);
}

/* Takes the next event, after the one before is given back; its kind. */
static rd_push_event next_event(void) {
    rd_loop_lock(&server->loop);
    bool is_one = rd_server_tell(server, &event, true);
    rd_loop_unlock(&server->loop);
    return is_one ? event.kind : RD_PUSH_NOTHING;
}

static void publish(const char *payload, size_t len) {
    rd_loop_lock(&server->loop);
    CHECK_INT(rd_pubsub_publish(&server->pubsub, RD_SLICE("news"), rd_slice_of(payload, len), true,
                                RD_REACH_PROCESS),
              1);
    while (rd_pubsub_waits(&server->pubsub)) rd_pubsub_run(&server->pubsub);
    rd_loop_unlock(&server->loop);
}

static void write_text(const char *text, size_t len) {
    rd_loop_lock(&server->loop);
    if (push->conn != NULL) push->ops->write(push, text, len, true);
    rd_loop_unlock(&server->loop);
}

/* A WebSocket whose on_open was told, subscribed to "news". */
static void open_one(uintptr_t block) {
    const rd_pubsub_terms terms = {.block = block};
    start(upgrade);
    client = join();
    say(client, HANDSHAKE);
    turns(3);
    CHECK(!hear(client));
    CHECK_INT(next_event(), RD_PUSH_OPEN);
    CHECK_INT(next_event(), RD_PUSH_NOTHING);
    rd_loop_lock(&server->loop);
    CHECK_INT(rd_pubsub_subscribe(&server->pubsub, push, RD_SLICE("news"), false, &terms), 1);
    rd_loop_unlock(&server->loop);
}

static void end_one(void) {
    close(client);
    turns(3);
    CHECK_INT(next_event(), RD_PUSH_CLOSE);
    CHECK_INT(next_event(), RD_PUSH_NOTHING);
    rd_loop_lock(&server->loop);
    rd_push_unref(push);
    rd_loop_unlock(&server->loop);
    end();
}

/* What the queue takes, looked at from outside. */
static size_t memory_of(const rd_outq *queue) {
    size_t memory = 0;
    for (const rd_chunk *chunk = queue->first; chunk != NULL; chunk = chunk->next) {
        memory += sizeof(*chunk) + (chunk->kind == RD_CHUNK_COPIED ? chunk->capacity : chunk->len);
    }
    return memory;
}

static void test_small_messages_cost_what_they_take(int64_t policy) {
    settings.max_pending_bytes = 65536;
    settings.slow_client = policy;
    open_one(0);
    for (int i = 0; i < 20000; i++) {
        publish("x", 1);
        if (i % 100 == 0) CHECK(memory_of(&joined->out) <= 65536 + RD_CHUNK_BLOCK_BYTES);
    }
    CHECK(memory_of(&joined->out) <= 65536 + RD_CHUNK_BLOCK_BYTES);
    CHECK_INT(rd_outq_memory(&joined->out), memory_of(&joined->out));
    CHECK(server->http.messages_dropped > 0);
    end_one();
}

/* Each answer begins a block behind a message that is not copied. */
static void test_small_answers_between_messages(void) {
    settings.max_pending_bytes = 65536;
    open_one(0);
    for (int i = 0; i < 20000 && push->conn != NULL; i++) {
        publish("x", 1);
        write_text("y", 1);
        if (push->conn != NULL) {
            CHECK(memory_of(&push->conn->out) <= 65536 + 2 * RD_CHUNK_BLOCK_BYTES);
        }
    }
    CHECK(push->conn == NULL);
    CHECK_INT(push->close_code, 1013);
    end_one();
}

static void test_one_message_longer_than_the_limit(void) {
    static char large[900000];
    size_t heard = 0;
    settings.max_pending_bytes = 65536;
    open_one(0);
    publish(large, sizeof(large));
    for (int i = 0; i < 1000 && push->conn != NULL && heard < sizeof(large) + 10; i++) {
        turn();
        CHECK(!hear(client));
        heard += got_len;
    }
    CHECK_INT(heard, sizeof(large) + 10);
    publish(large, sizeof(large));
    publish("x", 1);
    CHECK(push->conn == NULL);
    CHECK_INT(push->close_code, 1013);
    end_one();
}

int main(void) {
    rd_settings_init(&settings);
    test_small_messages_cost_what_they_take(RD_SLOW_DROP_OLDEST);
    test_small_messages_cost_what_they_take(RD_SLOW_DROP_NEWEST);
    test_small_answers_between_messages();
    test_one_message_longer_than_the_limit();
    return check_summary();
}
