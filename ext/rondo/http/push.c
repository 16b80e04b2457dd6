/* SPDX-License-Identifier: MIT
 *
 * The order of events; see push.h. Messages that came before the end are delivered before it.
 */
#include "http/push.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/prefetch.h"
#include "http/handler.h"
#include "transport/conn.h"

static void on_message(rd_subscriber *subscriber, rd_subscription *subscription,
                       rd_message *message) {
    rd_push *push = RD_CONTAINER(subscriber, rd_push, subscriber);
    rd_push_publish(push, message, subscription->as, (uintptr_t)subscription->with);
}

static void on_served(rd_subscriber *subscriber) {
    rd_conn *conn = RD_CONTAINER(subscriber, rd_push, subscriber)->conn;
    if (conn != NULL && rd_list_is_linked(&conn->in_dirty)) rd_conn_flush(conn);
}

static void on_near(const rd_subscriber *subscriber) {
    const rd_conn *conn = RD_CONTAINER(subscriber, const rd_push, subscriber)->conn;
    if (conn != NULL) rd_prefetch(conn, sizeof(*conn));
}

static const rd_subscriber_ops subscriber_ops = {
    .on_message = on_message, .on_served = on_served, .on_near = on_near};

/* ---- as a source of events ---- */

static unsigned source_next(const rd_event_source *source) {
    return rd_push_next(RD_CONTAINER(source, const rd_push, source));
}

static void source_take(rd_event_source *source, rd_event *event) {
    event->message = rd_push_take(rd_push_of_source(source), &event->kind);
}

/* What every event changes in the connection once the application has handled it. */
static bool connection_told(rd_event_source *source, const rd_event *event) {
    rd_push *push = rd_push_of_source(source);
    if (push->conn != NULL && event->kind == RD_PUSH_SHUTDOWN) {
        push->ops->close(push, 1001, RD_SLICE("going away"));
    }
    if (push->conn != NULL) push->ops->told(push);
    return event->kind == RD_PUSH_CLOSE;
}

static bool subscriber_told(rd_event_source *source, const rd_event *event) {
    rd_push *push = rd_push_of_source(source);
    (void)event;
    push->ops->told(push);
    return false;
}

static void source_ref(rd_event_source *source) {
    rd_push_ref(rd_push_of_source(source));
}

static void source_release(rd_event_source *source, void *message) {
    if (message != NULL) rd_push_free_message(message);
    rd_push_unref(rd_push_of_source(source));
}

static const rd_event_ops connection_source = {
    .family = RD_EVENTS_OF_CONNECTION,
    .next = source_next,
    .take = source_take,
    .told = connection_told,
    .ref = source_ref,
    .release = source_release,
};

static const rd_event_ops subscriber_source = {
    .family = RD_EVENTS_OF_SUBSCRIBER,
    .next = source_next,
    .take = source_take,
    .told = subscriber_told,
    .ref = source_ref,
    .release = source_release,
};

/* ---- life ---- */

void rd_push_init(rd_push *push, const rd_push_ops *ops, rd_http_shared *shared, rd_conn *conn) {
    memset(push, 0, sizeof(*push));
    rd_event_source_init(&push->source, conn != NULL ? &connection_source : &subscriber_source,
                         conn != NULL);
    rd_subscriber_init(&push->subscriber, &subscriber_ops,
                       (uint32_t)shared->settings->max_subscriptions);
    push->shared = shared;
    if (conn != NULL) {
        push->subscriber.ledger = shared->ledger;
        push->subscriber.name_limit = (size_t)shared->settings->max_subscription_bytes;
    }
    rd_list_init(&push->messages);
    rd_list_init(&push->replays);
    push->ops = ops;
    push->conn = conn;
    push->ping_interval_ms = (uint32_t)shared->settings->ping_interval_ms;
    push->refs = 1;
    push->close_code = RD_PUSH_ABNORMAL;
    if (conn != NULL) rd_push_set_due(push, RD_PUSH_OPEN);
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
    rd_free(push->reason);
    push->ops->free(push);
}

static size_t max_pending(const rd_http_shared *shared) {
    return (size_t)shared->settings->max_pending_bytes;
}

static size_t memory_of(const rd_push_message *message) {
    size_t payload =
        message->published != NULL ? message->published->payload_len : message->payload.capacity;
    return payload + sizeof(*message);
}

static void add(rd_push *push, const rd_push_message *message) {
    rd_push_message *copy = rd_alloc(sizeof(*copy));
    *copy = *message;
    push->message_bytes += memory_of(copy);
    rd_list_append(&push->messages, &copy->node);
    rd_push_set_due(push, RD_PUSH_MESSAGE);
}

void rd_push_add_message(rd_push *push, rd_buffer *payload, bool is_text) {
    if (push->is_deaf) {
        rd_buffer_clear(payload);
        return;
    }
    add(push, &(rd_push_message){.payload = *payload, .is_text = is_text});
    *payload = (rd_buffer){0};
}

void rd_push_publish(rd_push *push, rd_message *message, rd_receive_as as, uintptr_t block) {
    if (push->closing) return;
    if (block == 0) {
        push->ops->publish(push, message, as);
    } else if (push->message_bytes + message->payload_len > max_pending(push->shared)) {
        push->ops->overflow(push);
    } else {
        bool is_text = as == RD_AS_SENT ? message->is_text : as == RD_AS_TEXT;
        add(push, &(rd_push_message){
                      .published = rd_message_ref(message), .block = block, .is_text = is_text});
        rd_push_tell(push);
    }
}

size_t rd_push_room(const rd_push *push, uintptr_t block) {
    const size_t most = max_pending(push->shared);
    const bool to_client = block == 0 && push->conn != NULL;
    const size_t waits = to_client ? rd_outq_memory(&push->conn->out) : push->message_bytes;
    return waits < most ? most - waits : 0;
}

/* Loops because one flush sends no more than a slice. */
void rd_push_relieve(rd_push *push, size_t memory) {
    const rd_outq *queue = &push->conn->out;
    size_t before;
    do {
        before = queue->bytes;
        rd_conn_flush(push->conn);
    } while (push->conn != NULL && queue->bytes < before && rd_outq_memory(queue) > memory);
}

/* A single message may be longer than the limit. */
static bool has_room(const rd_outq *queue, size_t len, size_t most) {
    return queue->bytes == 0 || rd_outq_memory(queue) + len <= most;
}

/* Whether there is room for `len` more bytes. Drops queued messages for them where the policy says
 * so. */
static bool make_room(rd_push *push, size_t len) {
    rd_http_shared *shared = push->shared;
    rd_outq *queue = &push->conn->out;
    const size_t most = max_pending(shared);
    if (has_room(queue, len, most)) return true;
    rd_push_relieve(push, len < most ? most - len : 0);
    if (push->conn == NULL) return false;
    if (has_room(queue, len, most)) return true;
    if (shared->settings->slow_client == RD_SLOW_CLOSE) {
        push->ops->overflow(push);
        return false;
    }
    if (shared->settings->slow_client == RD_SLOW_DROP_OLDEST && len <= most) {
        shared->messages_dropped +=
            rd_encoding_drop_oldest(queue, &push->conn->set->chunks, most - len);
        if (has_room(queue, len, most)) return true;
    }
    shared->messages_dropped++;
    return false;
}

void rd_push_queue(rd_push *push, rd_encoding *encoding) {
    rd_conn *conn = push->conn;
    if (!make_room(push, rd_buffer_len(&encoding->bytes))) return;
    encoding->ledger = &conn->set->ledger;
    rd_encoding_borrow(encoding, &conn->out);
    conn->tell_empty = push->wants_drained;
    rd_conn_mark_dirty(conn);
}

void rd_push_expect(rd_push *push) {
    const uint64_t now_ms = push->conn->set->loop->now_ms;
    const uint32_t ms = push->ping_interval_ms;
    rd_conn_set_deadline(push->conn, ms > 0 ? now_ms + ms : UINT64_MAX);
}

void rd_push_tell(rd_push *push) {
    if (push->source.is_told || push->due == 0) return;
    push->shared->handler->on_event(push->shared->handler, &push->source);
}

void rd_push_leave_channels(rd_push *push) {
    push->subscriber.limit = 0;
    while (!rd_list_is_empty(&push->replays)) {
        rd_push_replay *replay = RD_CONTAINER(push->replays.next, rd_push_replay, in_push);
        replay->cancel(replay);
    }
    rd_subscriber_clear(push->shared->channels, &push->subscriber);
}

void rd_push_closed(rd_push *push) {
    push->conn = NULL;
    push->closing = true;
    rd_push_set_due(push, RD_PUSH_CLOSE);
    rd_push_leave_channels(push);
    rd_push_tell(push);
    rd_push_unref(push);
}

void rd_push_set_close(rd_push *push, unsigned code, rd_slice reason) {
    if (push->close_code != RD_PUSH_ABNORMAL) return;
    push->close_code = (uint16_t)code;
    push->reason_len = (uint8_t)(reason.len > RD_PUSH_REASON_MAX ? RD_PUSH_REASON_MAX : reason.len);
    if (push->reason_len == 0) return;
    push->reason = rd_alloc(push->reason_len);
    memcpy(push->reason, reason.ptr, push->reason_len);
}

rd_push_event rd_push_next(const rd_push *push) {
    if (push->due == 0) return RD_PUSH_NOTHING;
    const rd_push_event event = (rd_push_event)__builtin_ctz(push->due);
    if (event != RD_PUSH_MESSAGE) return event;
    const rd_push_message *first = RD_CONTAINER(push->messages.next, rd_push_message, node);
    return first->published != NULL ? RD_PUSH_PUBLISHED : RD_PUSH_MESSAGE;
}

static void clear_due(rd_push *push, rd_push_event event) {
    push->due = (uint16_t)(push->due & ~(1u << event));
}

static rd_push_message *take_message(rd_push *push) {
    rd_push_message *message = RD_CONTAINER(rd_list_shift(&push->messages), rd_push_message, node);
    push->message_bytes -= memory_of(message);
    if (rd_list_is_empty(&push->messages)) clear_due(push, RD_PUSH_MESSAGE);
    return message;
}

rd_push_message *rd_push_take(rd_push *push, unsigned *kind) {
    const rd_push_event event = rd_push_next(push);
    *kind = event;
    if (event == RD_PUSH_MESSAGE || event == RD_PUSH_PUBLISHED) return take_message(push);
    clear_due(push, event);
    if (event == RD_PUSH_CLOSE) push->due = 0;
    return NULL;
}

void rd_push_free_message(rd_push_message *message) {
    if (message->published != NULL) rd_message_unref(message->published);
    rd_buffer_clear(&message->payload);
    rd_free(message);
}
