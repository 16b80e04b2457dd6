/* SPDX-License-Identifier: MIT
 *
 * The order of events: messages that came before the end are told before it; see push.h.
 */
#include "http/push.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

void rd_push_init(rd_push *push, const rd_push_ops *ops, rd_conn *conn) {
    memset(push, 0, sizeof(*push));
    rd_list_init(&push->in_queue);
    rd_list_init(&push->messages);
    push->ops = ops;
    push->conn = conn;
    push->refs = 1;
    push->close_code = RD_PUSH_ABNORMAL;
    push->open_due = true;
}

void rd_push_ref(rd_push *push) {
    push->refs++;
}

void rd_push_unref(rd_push *push) {
    assert(push->refs > 0);
    if (--push->refs > 0) return;
    for (rd_list *node; (node = rd_list_shift(&push->messages)) != NULL;) {
        rd_push_free_message(RD_CONTAINER(node, rd_push_message, node));
    }
    push->ops->free(push);
}

void rd_push_add_message(rd_push *push, rd_buffer *payload, bool is_text) {
    rd_push_message *message = rd_alloc(sizeof(*message));
    *message = (rd_push_message){.payload = *payload, .is_text = is_text};
    *payload = (rd_buffer){0};
    push->message_bytes += rd_buffer_len(&message->payload) + sizeof(*message);
    rd_list_append(&push->messages, &message->node);
}

void rd_push_set_close(rd_push *push, unsigned code, rd_slice reason) {
    if (push->close_code != RD_PUSH_ABNORMAL) return;
    push->close_code = (uint16_t)code;
    push->reason_len = (uint8_t)(reason.len > RD_PUSH_REASON_MAX ? RD_PUSH_REASON_MAX : reason.len);
    if (reason.len > 0) memcpy(push->reason, reason.ptr, push->reason_len);
}

rd_push_event rd_push_next(const rd_push *push) {
    if (push->open_due) return RD_PUSH_OPEN;
    if (!rd_list_is_empty(&push->messages)) return RD_PUSH_MESSAGE;
    if (push->close_due) return RD_PUSH_CLOSE;
    if (push->drained_due) return RD_PUSH_DRAINED;
    return push->shutdown_due ? RD_PUSH_SHUTDOWN : RD_PUSH_NOTHING;
}

rd_push_message *rd_push_take(rd_push *push) {
    rd_push_message *message = NULL;
    switch (rd_push_next(push)) {
    case RD_PUSH_OPEN:
        push->open_due = false;
        break;
    case RD_PUSH_MESSAGE:
        message = RD_CONTAINER(rd_list_shift(&push->messages), rd_push_message, node);
        push->message_bytes -= rd_buffer_len(&message->payload) + sizeof(*message);
        break;
    case RD_PUSH_DRAINED:
        push->drained_due = false;
        break;
    case RD_PUSH_SHUTDOWN:
        push->shutdown_due = false;
        break;
    case RD_PUSH_CLOSE:
        push->close_due = push->drained_due = push->shutdown_due = false;
        break;
    case RD_PUSH_NOTHING:
        break;
    }
    return message;
}

void rd_push_free_message(rd_push_message *message) {
    rd_buffer_clear(&message->payload);
    rd_free(message);
}
