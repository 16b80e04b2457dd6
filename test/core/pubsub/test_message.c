/* SPDX-License-Identifier: MIT
 *
 * Messages: what was put in is there, encodings are made once, output queues borrow their bytes and
 * keep the message alive until they are sent. Leaks and double frees are the sanitizers' to see.
 */
#include "check.h"
#include "pubsub/message.h"

static unsigned encoded;

static int bracket(const rd_message *message, void *with, rd_buffer *out) {
    const rd_slice payload = rd_message_payload(message);
    encoded++;
    rd_buffer_append(out, with, 1);
    rd_buffer_append(out, payload.ptr, payload.len);
    rd_buffer_append(out, "]", 1);
    return 0;
}

static int refuse(const rd_message *message, void *with, rd_buffer *out) {
    (void)message, (void)with;
    encoded++;
    rd_buffer_append(out, "half", 4);
    return -1;
}

static int nothing(const rd_message *message, void *with, rd_buffer *out) {
    (void)message, (void)with, (void)out;
    return 0;
}

static char square[] = "[", angle[] = "<";

static void test_parts(void) {
    rd_message *message = rd_message_new(RD_SLICE("news"), RD_SLICE("a\0b"), true, 7);
    CHECK_BYTES(rd_message_channel(message).ptr, rd_message_channel(message).len, "news");
    CHECK_INT(rd_message_payload(message).len, 3);
    CHECK(memcmp(rd_message_payload(message).ptr, "a\0b", 3) == 0);
    CHECK(message->is_text && message->id == 7 && message->refs == 1);
    rd_message_unref(message);
    message = rd_message_new(rd_slice_of(NULL, 0), rd_slice_of(NULL, 0), false, 0);
    CHECK(rd_message_channel(message).len == 0 && rd_message_payload(message).len == 0);
    rd_message_unref(message);
}

static void test_encoded_once(void) {
    rd_message *message = rd_message_new(RD_SLICE("news"), RD_SLICE("hello"), true, 1);
    encoded = 0;
    for (int i = 0; i < 3; i++) {
        rd_encoding *text = rd_message_encoding(message, RD_ENCODING_WS_TEXT, bracket, square);
        rd_encoding *event = rd_message_encoding(message, RD_ENCODING_SSE, bracket, angle);
        CHECK_BYTES(rd_encoding_bytes(text).ptr, rd_encoding_bytes(text).len, "[hello]");
        CHECK_BYTES(rd_encoding_bytes(event).ptr, rd_encoding_bytes(event).len, "<hello]");
    }
    CHECK_INT(encoded, 2);
    rd_message_unref(message);
}

static void test_refused_once(void) {
    rd_message *message = rd_message_new(RD_SLICE("news"), RD_SLICE("hello"), true, 1);
    encoded = 0;
    for (int i = 0; i < 3; i++) {
        CHECK(rd_message_encoding(message, RD_ENCODING_WS_TEXT_DEFLATED, refuse, NULL) == NULL);
    }
    CHECK_INT(encoded, 1);
    rd_message_unref(message);
}

/* Two queues hold the bytes after the publisher has released the message. One sends them in parts,
 * the other is dropped. */
static void test_borrowed(void) {
    rd_chunk_pool pool = {0};
    rd_outq sent = {0}, dropped = {0};
    struct iovec iov[4];
    rd_message *message = rd_message_new(RD_SLICE("news"), RD_SLICE("hello"), true, 1);
    rd_encoding *encoding = rd_message_encoding(message, RD_ENCODING_WS_TEXT, bracket, square);
    rd_encoding_borrow(encoding, &sent, &pool);
    rd_outq_copy(&sent, &pool, "|", 1);
    rd_encoding_borrow(encoding, &sent, &pool);
    rd_encoding_borrow(encoding, &dropped, &pool);
    CHECK_INT(message->refs, 4);
    rd_message_unref(message);
    CHECK_INT(sent.bytes, 15);
    CHECK_INT(rd_outq_gather(&sent, iov, 4, 100), 3);
    CHECK(iov[0].iov_base == iov[2].iov_base);
    CHECK_BYTES((char *)iov[2].iov_base, iov[2].iov_len, "[hello]");
    rd_outq_advance(&sent, &pool, 3);
    CHECK_INT(message->refs, 3);
    rd_outq_advance(&sent, &pool, 4);
    CHECK_INT(message->refs, 2);
    rd_outq_clear(&dropped, &pool);
    CHECK_INT(message->refs, 1);
    rd_outq_advance(&sent, &pool, 8);
    CHECK(sent.last == NULL);
    rd_chunk_pool_clear(&pool);
}

/* However many queues hold the message, its bytes exist once. */
static void test_counted_once(void) {
    rd_chunk_pool pool = {0};
    rd_outq first = {0}, second = {0};
    rd_ledger ledger;
    rd_ledger_init(&ledger);
    const uint64_t *held = &ledger.rows[RD_LEDGER_OUTPUT].held;
    rd_message *message = rd_message_new(RD_SLICE("news"), RD_SLICE("hello"), true, 1);
    rd_encoding *encoding = rd_message_encoding(message, RD_ENCODING_WS_TEXT, bracket, square);
    encoding->ledger = &ledger;
    rd_encoding_borrow(encoding, &first, &pool);
    rd_encoding_borrow(encoding, &second, &pool);
    CHECK_INT(*held, 7);
    CHECK_INT(first.shared, 7);
    CHECK_INT(rd_outq_own(&first), first.memory - first.bytes);
    rd_outq_advance(&first, &pool, 4);
    CHECK_INT(first.shared, 3);
    rd_outq_advance(&first, &pool, 3);
    CHECK_INT(first.shared, 0);
    CHECK_INT(*held, 7);
    rd_outq_clear(&second, &pool);
    CHECK_INT(*held, 0);
    rd_encoding_borrow(encoding, &first, &pool);
    CHECK_INT(*held, 7);
    rd_message_unref(message);
    rd_outq_clear(&first, &pool);
    CHECK_INT(*held, 0);
    rd_chunk_pool_clear(&pool);
}

/* The oldest encodings are dropped first, but not the one that the queue may be sending, and not
 * the queue's own bytes. */
static void test_dropping_the_oldest(void) {
    rd_chunk_pool pool = {0};
    rd_outq queue = {0};
    struct iovec iov[8];
    rd_message *messages[4];
    for (int i = 0; i < 4; i++) {
        const char payload[] = {(char)('a' + i)};
        messages[i] = rd_message_new(RD_SLICE("news"), rd_slice_of(payload, 1), true, 1);
        rd_encoding_borrow(rd_message_encoding(messages[i], RD_ENCODING_WS_TEXT, bracket, square),
                           &queue, &pool);
        if (i == 1) rd_outq_copy(&queue, &pool, "own", 3);
    }
    CHECK_INT(queue.bytes, 15);
    const size_t all = queue.memory;
    CHECK_INT(rd_encoding_drop_oldest(&queue, &pool, all), 0);
    CHECK_INT(rd_encoding_drop_oldest(&queue, &pool, all - sizeof(rd_chunk) - 4), 2);
    CHECK_INT(queue.bytes, 9);
    CHECK_INT(messages[0]->refs, 2);
    CHECK_INT(messages[1]->refs, 1);
    CHECK_INT(messages[2]->refs, 1);
    CHECK_INT(rd_outq_gather(&queue, iov, 8, 100), 3);
    CHECK_BYTES((char *)iov[0].iov_base, iov[0].iov_len, "[a]");
    CHECK_BYTES((char *)iov[1].iov_base, iov[1].iov_len, "own");
    CHECK_BYTES((char *)iov[2].iov_base, iov[2].iov_len, "[d]");
    CHECK_INT(rd_encoding_drop_oldest(&queue, &pool, 0), 1);
    CHECK_INT(rd_encoding_drop_oldest(&queue, &pool, 0), 0);
    CHECK_INT(queue.bytes, 6);
    rd_outq_copy(&queue, &pool, "more", 4);
    rd_outq_clear(&queue, &pool);
    CHECK_INT(rd_encoding_drop_oldest(&queue, &pool, 0), 0);
    for (int i = 0; i < 4; i++) rd_message_unref(messages[i]);
    rd_chunk_pool_clear(&pool);
}

static void test_empty_encoding(void) {
    rd_chunk_pool pool = {0};
    rd_outq queue = {0};
    rd_message *message = rd_message_new(RD_SLICE("news"), RD_SLICE("x"), false, 1);
    rd_encoding *encoding = rd_message_encoding(message, RD_ENCODING_SSE, nothing, NULL);
    CHECK(encoding != NULL && rd_encoding_bytes(encoding).len == 0);
    rd_encoding_borrow(encoding, &queue, &pool);
    CHECK(queue.last == NULL);
    CHECK_INT(message->refs, 1);
    rd_message_unref(message);
}

int main(void) {
    test_parts();
    test_encoded_once();
    test_refused_once();
    test_borrowed();
    test_counted_once();
    test_dropping_the_oldest();
    test_empty_encoding();
    return check_summary();
}
