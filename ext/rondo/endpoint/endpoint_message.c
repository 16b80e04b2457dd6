/* SPDX-License-Identifier: MIT
 *
 * Messages on their way to the application, and the blocks of small ones; see endpoint_message.h.
 */
#include "endpoint/endpoint_message.h"

#include "base/alloc.h"
#include "request/handler.h"

static bool is_inside(const rd_endpoint_message *message) {
    return message->payload.bytes == message->room;
}

static rd_endpoint_message *new_with_room(rd_http_shared *shared) {
    rd_list *kept = rd_ring_shift(&shared->spare_messages);
    rd_endpoint_message *message;
    if (kept != NULL) {
        message = RD_CONTAINER(kept, rd_endpoint_message, node);
        shared->spare_message_count--;
    } else {
        message = rd_alloc(sizeof(*message) + RD_ENDPOINT_MESSAGE_ROOM);
    }
    *message = (rd_endpoint_message){.has_room = true};
    message->payload.bytes = message->room;
    message->payload.capacity = RD_ENDPOINT_MESSAGE_ROOM;
    return message;
}

rd_endpoint_message *rd_endpoint_message_new(rd_http_shared *shared, const char *bytes,
                                             size_t len) {
    rd_endpoint_message *message =
        len <= RD_ENDPOINT_MESSAGE_ROOM ? new_with_room(shared) : rd_alloc_zero(sizeof(*message));
    rd_buffer_append(&message->payload, bytes, len);
    return message;
}

void rd_endpoint_message_append(rd_endpoint_message *message, const char *bytes, size_t len) {
    rd_buffer *payload = &message->payload;
    if (is_inside(message) && len > RD_ENDPOINT_MESSAGE_ROOM - payload->end) {
        const rd_buffer inside = *payload;
        *payload = (rd_buffer){0};
        rd_buffer_append(payload, inside.bytes, inside.end);
    }
    rd_buffer_append(payload, bytes, len);
}

size_t rd_endpoint_message_memory(const rd_endpoint_message *message) {
    const size_t own = sizeof(*message) + (message->has_room ? RD_ENDPOINT_MESSAGE_ROOM : 0);
    if (is_inside(message)) return own;
    return own + (message->published != NULL ? message->published->payload_len
                                             : message->payload.capacity);
}

/* The block that was used last comes first, because it is in the processor's cache. */
static void keep(rd_http_shared *shared, rd_endpoint_message *message) {
    rd_ring_append(&shared->spare_messages, &message->node);
    shared->spare_messages = &message->node;
    shared->spare_message_count++;
}

void rd_endpoint_message_free(rd_http_shared *shared, rd_endpoint_message *message) {
    if (message->published != NULL) rd_message_unref(message->published);
    if (!is_inside(message)) rd_buffer_clear(&message->payload);
    if (message->has_room && shared->spare_message_count < RD_ENDPOINT_MESSAGES_KEPT) {
        keep(shared, message);
    } else {
        rd_free(message);
    }
}

void rd_endpoint_messages_clear(rd_http_shared *shared) {
    for (rd_list *node; (node = rd_ring_shift(&shared->spare_messages)) != NULL;) {
        rd_free(RD_CONTAINER(node, rd_endpoint_message, node));
    }
    shared->spare_message_count = 0;
}
