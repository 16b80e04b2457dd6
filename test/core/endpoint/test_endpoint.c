/* SPDX-License-Identifier: MIT
 *
 * endpoint/endpoint: published messages for clients that do not read, one that is longer than all
 * that may wait, and a channel that goes on while a client leaves. A WebSocket of a whole server
 * turned by hand; the application is the test.
 */
#include "client_frames.h"
#include "serving.h"

#include "endpoint/websocket.h"

#define HANDSHAKE                                                                                  \
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"                   \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static rd_endpoint *endpoint; /* of the client; a reference */
static rd_event event;
static int client;

static void upgrade(rd_request *request) {
    endpoint = rd_websocket_upgrade(request, NULL, 0);
    CHECK(endpoint != NULL);
}

static void upgrade_with_a_broken_poller(rd_request *request) {
    const rd_poller_ops *before = break_poller();
    upgrade(request);
    rd_conn_set_flush(&server->conns);
    server->loop.ops = before;
}

/* Takes the next event, after it has released the one before; returns its kind. */
static rd_endpoint_event next_event(void) {
    rd_loop_lock(&server->loop);
    bool is_one = rd_server_next_event(server, &event, true);
    rd_loop_unlock(&server->loop);
    return is_one ? (rd_endpoint_event)event.kind : RD_ENDPOINT_NOTHING;
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
    if (endpoint->conn != NULL) rd_endpoint_ops_of(endpoint)->write(endpoint, text, len, true);
    rd_loop_unlock(&server->loop);
}

/* A WebSocket whose on_open was delivered, subscribed to "news". */
static void open_one(uintptr_t block) {
    const rd_pubsub_terms terms = {.block = block};
    start(upgrade);
    client = join();
    say(client, HANDSHAKE);
    turns(3);
    CHECK(!hear(client));
    CHECK_INT(next_event(), RD_ENDPOINT_OPEN);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    rd_loop_lock(&server->loop);
    CHECK_INT(rd_pubsub_subscribe(&server->pubsub, endpoint, RD_SLICE("news"), false, &terms), 1);
    rd_loop_unlock(&server->loop);
}

static void end_one(void) {
    close(client);
    turns(3);
    CHECK_INT(next_event(), RD_ENDPOINT_CLOSE);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    rd_loop_lock(&server->loop);
    rd_endpoint_unref(endpoint);
    rd_loop_unlock(&server->loop);
    end();
}

/* What the queue takes, measured from outside. */
static size_t memory_of(const rd_outq *queue) {
    size_t memory = 0;
    for (const rd_chunk *chunk = rd_outq_first(queue); chunk != NULL;
         chunk = rd_outq_after(queue, chunk)) {
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
    CHECK_INT(joined->out.memory, memory_of(&joined->out));
    CHECK(server->http.messages_dropped > 0);
    end_one();
}

/* Each answer begins a new block, after a message that is not copied. */
static void test_small_answers_between_messages(void) {
    settings.max_pending_bytes = 65536;
    open_one(0);
    for (int i = 0; i < 20000 && endpoint->conn != NULL; i++) {
        publish("x", 1);
        write_text("y", 1);
        if (endpoint->conn != NULL) {
            CHECK(memory_of(&endpoint->conn->out) <= 65536 + 2 * RD_CHUNK_BLOCK_BYTES);
        }
    }
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, 1013);
    end_one();
}

/* The flush that makes room closes the connection. */
static void test_a_client_that_resets_while_much_waits(void) {
    static char text[70000];
    const struct linger now = {.l_onoff = 1};
    settings.max_pending_bytes = 65536;
    open_one(0);
    write_text(text, sizeof(text));
    setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(client);
    write_text("x", 1);
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, RD_ENDPOINT_ABNORMAL);
    client = join();
    end_one();
}

static void test_one_message_longer_than_the_limit(void) {
    static char large[900000];
    size_t heard = 0;
    settings.max_pending_bytes = 65536;
    open_one(0);
    publish(large, sizeof(large));
    for (int i = 0; i < 1000 && endpoint->conn != NULL && heard < sizeof(large) + 10; i++) {
        turn();
        CHECK(!hear(client));
        heard += got_len;
    }
    CHECK_INT(heard, sizeof(large) + 10);
    publish(large, sizeof(large));
    publish("x", 1);
    CHECK(endpoint->conn == NULL);
    CHECK_INT(endpoint->close_code, 1013);
    end_one();
}

static size_t swallowed;

static ssize_t swallow(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    size_t len = 0;
    (void)conn, (void)more;
    for (int i = 0; i < count; i++) len += iov[i].iov_len;
    swallowed += len;
    return (ssize_t)len;
}

/* A message that the socket takes does not wait, however large it is. */
static void test_large_messages_for_a_socket_that_takes_them(void) {
    static const char large[900000];
    static rd_transport thirsty;
    const size_t frame = sizeof(large) + 10;
    open_one(0);
    const rd_transport *before = joined->transport;
    thirsty = *before;
    thirsty.write = swallow;
    joined->transport = &thirsty;
    for (int i = 0; i < 3; i++) publish(large, sizeof(large));
    CHECK(endpoint->conn != NULL);
    turns(20);
    CHECK_INT(swallowed, 3 * frame);
    write_text(large, sizeof(large));
    for (int i = 0; i < 3; i++) write_text(large, sizeof(large));
    CHECK(endpoint->conn != NULL);
    turns(20);
    CHECK_INT(swallowed, 7 * frame);
    if (endpoint->conn != NULL) joined->transport = before;
    end_one();
}

static void send_frame(unsigned first, const char *payload, size_t len) {
    char frame[CLIENT_HEADER_MAX + 128];
    size_t size = client_frame(frame, first, 0x12345678, payload, len, len);
    CHECK_INT(send(client, frame, size, MSG_NOSIGNAL), size);
}

/* Messages that are published while the application is busy do not delay the answer to a Close. */
static void test_the_end_of_a_block_with_a_busy_channel(void) {
    const rd_pubsub_terms terms = {.block = 2};
    open_one(1);
    publish("before", 6);
    send_frame(FIN | CLOSE, "\x03\xe8", 2);
    turns(2);
    publish("behind", 6);
    CHECK_INT(next_event(), RD_ENDPOINT_PUBLISHED);
    CHECK_BYTES(rd_endpoint_message_of(&event)->published->bytes + 4, 6, "before");
    rd_loop_lock(&server->loop);
    CHECK_INT(rd_pubsub_subscribe(&server->pubsub, endpoint, RD_SLICE("more"), false, &terms),
              RD_ERR_CHANNEL_LIMIT);
    rd_loop_unlock(&server->loop);
    publish("behind", 6);
    CHECK_INT(next_event(), RD_ENDPOINT_NOTHING);
    turns(2);
    CHECK(hear(client));
    CHECK(got_len == 4 && memcmp(got, "\x88\x02\x03\xe8", 4) == 0);
    end_one();
}

/* Even the smallest message takes half a KiB while it waits. */
static void test_many_small_messages_of_a_client(void) {
    static char frames[2000 * (CLIENT_HEADER_MAX + 1)];
    unsigned told = 0;
    size_t len = 0;
    open_one(0);
    for (int i = 0; i < 2000; i++) len += client_frame(frames + len, FIN | TEXT, 1, "x", 1, 1);
    CHECK_INT(send(client, frames, len, MSG_NOSIGNAL), len);
    turns(3);
    CHECK(joined->read_paused);
    size_t waiting = 0;
    for (rd_list *node = endpoint->messages; node != NULL;
         node = rd_ring_next(endpoint->messages, node)) {
        const rd_endpoint_message *message = RD_CONTAINER(node, rd_endpoint_message, node);
        waiting += sizeof(*message) + message->payload.capacity;
    }
    CHECK_INT(endpoint->message_bytes, waiting);
    CHECK_SAYS(waiting <= 65536 + 1024, "%zu bytes wait", waiting);
    while (next_event() == RD_ENDPOINT_MESSAGE) told++;
    CHECK_INT(told, 2000);
    CHECK_INT(endpoint->message_bytes, 0);
    end_one();
}

/* Between the client's Close and its answer. */
static void test_a_poller_that_fails_at_the_end(void) {
    open_one(1);
    publish("before", 6);
    const rd_poller_ops *before = break_poller();
    send_frame(FIN | CLOSE, "\x03\xe8", 2);
    turns(2);
    server->loop.ops = before;
    CHECK(endpoint->conn == NULL);
    CHECK_INT(next_event(), RD_ENDPOINT_PUBLISHED);
    CHECK_INT(endpoint->close_code, 1000);
    end_one();
}

static void test_a_poller_that_fails_at_the_upgrade(void) {
    start(upgrade_with_a_broken_poller);
    client = join();
    turns(2); /* it waits for the request, so the poller knows it */
    say(client, HANDSHAKE);
    turns(3);
    CHECK_INT(next_event(), RD_ENDPOINT_OPEN);
    end_one();
}

/* The leader computes and the watch thread is in its poll: the publishing thread sends the message
 * itself, and ends the poll if there is more to do. */
static void test_publishing_beside_a_busy_leader(void) {
    struct pollfd woken;
    open_one(0);
    rd_server_lock(server);
    server->lead.watch_owns = server->lead.watch_waits = true;
    CHECK_INT(rd_pubsub_publish(&server->pubsub, RD_SLICE("news"), RD_SLICE("now"), true,
                                RD_REACH_PROCESS),
              1);
    rd_server_unlock(server);
    CHECK(!hear(client));
    CHECK(got_len == 5 && memcmp(got, "\x81\x03now", 5) == 0);
    woken = (struct pollfd){.fd = server->loop.wakeup.fd, .events = POLLIN};
    CHECK_INT(poll(&woken, 1, 0), settings.poll_only);
    server->lead.watch_owns = server->lead.watch_waits = false;
    end_one();
}

int main(void) {
    rd_settings_init(&settings);
    for (settings.poll_only = 0; settings.poll_only < 2; settings.poll_only++) {
        test_publishing_beside_a_busy_leader();
    }
    settings.poll_only = 0;
    test_small_messages_cost_what_they_take(RD_SLOW_DROP_OLDEST);
    test_small_messages_cost_what_they_take(RD_SLOW_DROP_NEWEST);
    test_small_answers_between_messages();
    test_a_client_that_resets_while_much_waits();
    test_one_message_longer_than_the_limit();
    test_large_messages_for_a_socket_that_takes_them();
    test_the_end_of_a_block_with_a_busy_channel();
    test_many_small_messages_of_a_client();
    test_a_poller_that_fails_at_the_end();
    test_a_poller_that_fails_at_the_upgrade();
    return check_summary();
}
