/* SPDX-License-Identifier: MIT
 *
 * endpoint/endpoint_message.c: pieces of a stream are whole, whether they stand in a block or have
 * outgrown it, and blocks are used again.
 */
#include "base/alloc.h"
#include "check.h"
#include "endpoint/endpoint_message.h"
#include "request/handler.h"

enum { ROOM = RD_ENDPOINT_MESSAGE_ROOM, MANY = RD_ENDPOINT_MESSAGES_KEPT + 10 };

static rd_http_shared shared;
static char text[4 * ROOM];

static rd_endpoint_message *piece(size_t len) {
    return rd_endpoint_message_new(&shared, text, len);
}

static void check_whole(const rd_endpoint_message *message, size_t len) {
    CHECK_INT(rd_buffer_len(&message->payload), len);
    CHECK(memcmp(rd_buffer_ptr(&message->payload), text, len) == 0);
}

/* In each two parts. */
static void test_pieces_of_all_sizes(void) {
    for (size_t len = 1; len <= sizeof text; len++) {
        for (size_t first = 1; first <= len; first += 37) {
            rd_endpoint_message *message = piece(first);
            rd_endpoint_message_append(message, text + first, len - first);
            check_whole(message, len);
            CHECK(rd_endpoint_message_memory(message) >= sizeof(*message) + len);
            rd_endpoint_message_free(&shared, message);
        }
    }
    CHECK(shared.spare_message_count <= 1);
}

/* What has moved out of its block still has the block. */
static void test_memory(void) {
    rd_endpoint_message *message = piece(1);
    const size_t small = rd_endpoint_message_memory(message);
    CHECK_INT(small, sizeof(*message) + ROOM);
    rd_endpoint_message_append(message, text + 1, ROOM - 1);
    CHECK_INT(rd_endpoint_message_memory(message), small);
    rd_endpoint_message_append(message, text + ROOM, 1);
    CHECK_INT(rd_endpoint_message_memory(message), small + message->payload.capacity);
    check_whole(message, ROOM + 1);
    rd_endpoint_message_free(&shared, message);
    message = piece(ROOM + 1);
    CHECK_INT(rd_endpoint_message_memory(message), sizeof(*message) + message->payload.capacity);
    rd_endpoint_message_free(&shared, message);
}

static void test_blocks_are_used_again(void) {
    rd_endpoint_message *all[MANY];
    rd_endpoint_message *last = piece(1);
    rd_endpoint_message_free(&shared, last);
    CHECK(piece(2) == last);
    rd_endpoint_message_free(&shared, last);
    for (int i = 0; i < MANY; i++) all[i] = piece(1);
    CHECK_INT(shared.spare_message_count, 0);
    for (int i = 0; i < MANY; i++) rd_endpoint_message_free(&shared, all[i]);
    CHECK_INT(shared.spare_message_count, RD_ENDPOINT_MESSAGES_KEPT);
    rd_endpoint_messages_clear(&shared);
    CHECK(shared.spare_messages == NULL && shared.spare_message_count == 0);
}

int main(void) {
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i % 23);
    test_pieces_of_all_sizes();
    test_memory();
    test_blocks_are_used_again();
    return check_summary();
}
