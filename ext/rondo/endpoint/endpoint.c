/* SPDX-License-Identifier: MIT
 *
 * The order of events; see endpoint.h. Messages that came before the end are delivered before it.
 */
#include "endpoint/endpoint.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/apart.h"
#include "base/prefetch.h"
#include "request/handler.h"
#include "transport/conn.h"
#include "transport/layer.h"

static void on_message(rd_subscriber *subscriber, rd_subscription *subscription,
                       rd_message *message) {
    rd_endpoint *endpoint = RD_CONTAINER(subscriber, rd_endpoint, subscriber);
    rd_endpoint_deliver(endpoint, message, subscription->as, (uintptr_t)subscription->with);
}

static void on_served(rd_subscriber *subscriber) {
    rd_conn *conn = RD_CONTAINER(subscriber, rd_endpoint, subscriber)->conn;
    if (conn != NULL && rd_list_is_linked(&conn->in_dirty)) rd_conn_flush(conn);
}

static void on_near(const rd_subscriber *subscriber) {
    const rd_conn *conn = RD_CONTAINER(subscriber, const rd_endpoint, subscriber)->conn;
    if (conn != NULL) rd_prefetch(conn, sizeof(*conn));
}

/* Of the application's own subscribers. */
static const rd_subscriber_kind own_kind = {
    .on_message = on_message, .on_served = on_served, .limit = UINT32_MAX};

/* Of those that have ended their part. */
static const rd_subscriber_kind ended_kind = {.limit = 0};

void rd_endpoint_set_limits(rd_http_shared *shared) {
    shared->subscribers = (rd_subscriber_kind){
        .on_message = on_message,
        .on_served = on_served,
        .on_near = on_near,
        .limit = (uint32_t)shared->settings->max_subscriptions,
        .name_limit = (uint32_t)shared->settings->max_subscription_bytes,
        .ledger = shared->ledger,
    };
}

/* ---- as a source of events ---- */

unsigned rd_endpoint_source_next(const rd_event_source *source) {
    return rd_endpoint_next(RD_CONTAINER(source, const rd_endpoint, source));
}

void rd_endpoint_source_take(rd_event_source *source, rd_event *event) {
    event->message = rd_endpoint_take(rd_endpoint_of_source(source), &event->kind);
}

/* The registry of these codes says of 1012 (Service Restart) that a client comes back after a
 * random delay. */
static void close_for_stop(rd_endpoint *endpoint) {
    const rd_endpoint_ops *ops = rd_endpoint_ops_of(endpoint);
    if (endpoint->shared->settings->drain_spread_ms > 0 && !endpoint->is_outgoing) {
        ops->close(endpoint, 1012, RD_SLICE("service restart"));
    } else {
        ops->close(endpoint, 1001, RD_SLICE("going away"));
    }
}

/* What every event changes in the connection once the application has handled it. */
bool rd_endpoint_source_handled(rd_event_source *source, const rd_event *event) {
    rd_endpoint *endpoint = rd_endpoint_of_source(source);
    const rd_endpoint_ops *ops = rd_endpoint_ops_of(endpoint);
    if (endpoint->conn != NULL && event->kind == RD_ENDPOINT_SHUTDOWN) close_for_stop(endpoint);
    if (endpoint->conn != NULL || rd_endpoint_is_own(endpoint)) ops->handled(endpoint);
    return event->kind == RD_ENDPOINT_CLOSE;
}

void rd_endpoint_source_release(rd_event_source *source, void *message) {
    rd_endpoint *endpoint = rd_endpoint_of_source(source);
    if (message != NULL) rd_endpoint_message_free(endpoint->shared, message);
    rd_endpoint_unref(endpoint);
}

/* ---- life ---- */

static void init(rd_endpoint *endpoint, const rd_endpoint_ops *ops, rd_http_shared *shared) {
    const bool is_connection = ops->events.family == RD_EVENTS_OF_CONNECTION;
    memset(endpoint, 0, sizeof(*endpoint));
    rd_event_source_init(&endpoint->source, &ops->events, is_connection);
    rd_subscriber_init(&endpoint->subscriber, is_connection ? &shared->subscribers : &own_kind);
    endpoint->shared = shared;
    endpoint->ping_interval_ms = (uint32_t)shared->settings->ping_interval_ms;
    endpoint->close_code = RD_ENDPOINT_ABNORMAL;
}

void rd_endpoint_init(rd_endpoint *endpoint, const rd_endpoint_ops *ops, rd_http_shared *shared,
                      rd_conn *conn) {
    init(endpoint, ops, shared);
    endpoint->conn = conn;
    if (conn != NULL) rd_endpoint_set_due(endpoint, RD_ENDPOINT_OPEN);
}

void rd_endpoint_init_dialing(rd_endpoint *endpoint, const rd_endpoint_ops *ops,
                              rd_http_shared *shared) {
    init(endpoint, ops, shared);
    endpoint->is_dialing = endpoint->is_outgoing = true;
}

void rd_endpoint_unref(rd_endpoint *endpoint) {
    assert(endpoint->source.refs > 0);
    if (--endpoint->source.refs > 0) return;
    for (rd_list *node; (node = rd_ring_shift(&endpoint->messages)) != NULL;) {
        rd_endpoint_message_free(endpoint->shared, RD_CONTAINER(node, rd_endpoint_message, node));
    }
    rd_free(endpoint->reason);
    rd_endpoint_ops_of(endpoint)->free(endpoint);
}

static size_t max_pending(const rd_http_shared *shared) {
    return (size_t)shared->settings->max_pending_bytes;
}

/* ---- messages for the application ---- */

/* The sum is below 4 GiB: a message of the client is at most 1 GiB in a buffer of twice that, one
 * at a time beyond the backlog, and those of channels are at most max_pending_bytes, 1 GiB. */
static void count(rd_endpoint *endpoint, const rd_endpoint_message *message) {
    endpoint->message_bytes += (uint32_t)rd_endpoint_message_memory(message);
}

static void uncount(rd_endpoint *endpoint, const rd_endpoint_message *message) {
    endpoint->message_bytes -= (uint32_t)rd_endpoint_message_memory(message);
}

static void add(rd_endpoint *endpoint, rd_endpoint_message *message) {
    count(endpoint, message);
    rd_ring_append(&endpoint->messages, &message->node);
    rd_endpoint_set_due(endpoint, RD_ENDPOINT_MESSAGE);
}

static void add_copy(rd_endpoint *endpoint, const rd_endpoint_message *message) {
    rd_endpoint_message *copy = rd_alloc(sizeof(*copy));
    *copy = *message;
    add(endpoint, copy);
}

void rd_endpoint_add_message(rd_endpoint *endpoint, rd_endpoint_message *message) {
    if (endpoint->is_deaf) {
        rd_buffer_clear(&message->payload);
        return;
    }
    add_copy(endpoint, message);
    message->payload = (rd_buffer){0};
}

void rd_endpoint_add_copy(rd_endpoint *endpoint, rd_slice bytes, const rd_endpoint_message *kind) {
    if (endpoint->is_deaf) return;
    rd_endpoint_message *message = rd_endpoint_message_new(endpoint->shared, bytes.ptr, bytes.len);
    message->is_text = kind->is_text;
    message->is_ascii = kind->is_ascii;
    add(endpoint, message);
}

/* The last message, if bytes of the same stream can join it. */
static rd_endpoint_message *open_message(const rd_endpoint *endpoint, size_t most) {
    if (endpoint->messages == NULL) return NULL;
    rd_endpoint_message *last = RD_CONTAINER(endpoint->messages->prev, rd_endpoint_message, node);
    if (last->is_gap) return NULL;
    return last->published == NULL && rd_buffer_len(&last->payload) < most ? last : NULL;
}

void rd_endpoint_add_bytes(rd_endpoint *endpoint, const char *bytes, size_t len, size_t most) {
    while (len > 0 && !endpoint->is_deaf) {
        rd_endpoint_message *last = open_message(endpoint, most);
        const size_t room = last != NULL ? most - rd_buffer_len(&last->payload) : most;
        const size_t part = len < room ? len : room;
        if (last != NULL) {
            uncount(endpoint, last);
            rd_endpoint_message_append(last, bytes, part);
            count(endpoint, last);
        } else {
            add(endpoint, rd_endpoint_message_new(endpoint->shared, bytes, part));
        }
        bytes += part;
        len -= part;
    }
}

/* A stream of events gets one that says so; a handler with on_gap learns of it in any case. */
RD_APART static void deliver_gap(rd_endpoint *endpoint, rd_message *message, rd_receive_as as) {
    if (endpoint->conn == NULL) return;
    if (rd_endpoint_ops_of(endpoint)->has_ids) {
        rd_endpoint_ops_of(endpoint)->deliver(endpoint, message, as);
    }
    if (endpoint->is_deaf || endpoint->is_closing) return;
    const rd_slice channel = rd_message_channel(message);
    rd_endpoint_message told = {.is_gap = true};
    rd_buffer_append(&told.payload, channel.ptr, channel.len);
    add_copy(endpoint, &told);
    rd_endpoint_notify(endpoint);
}

void rd_endpoint_deliver(rd_endpoint *endpoint, rd_message *message, rd_receive_as as,
                         uintptr_t block) {
    if (endpoint->is_closing) return;
    if (message->is_gap) {
        deliver_gap(endpoint, message, as);
    } else if (block == 0) {
        rd_endpoint_ops_of(endpoint)->deliver(endpoint, message, as);
    } else if (endpoint->message_bytes + message->payload_len > max_pending(endpoint->shared)) {
        rd_endpoint_ops_of(endpoint)->overflow(endpoint);
    } else {
        bool is_text = as == RD_AS_SENT ? message->is_text : as == RD_AS_TEXT;
        add_copy(endpoint, &(rd_endpoint_message){.published = rd_message_ref(message),
                                                  .block = block,
                                                  .is_text = is_text});
        rd_endpoint_notify(endpoint);
    }
}

size_t rd_endpoint_room(const rd_endpoint *endpoint, uintptr_t block) {
    const size_t most = max_pending(endpoint->shared);
    const bool to_client = block == 0 && endpoint->conn != NULL;
    const size_t queued = to_client ? endpoint->conn->out.memory : endpoint->message_bytes;
    const size_t waits = queued + (endpoint->hold != NULL ? endpoint->hold->bytes : 0);
    return waits < most ? most - waits : 0;
}

/* Loops because one flush sends no more than a slice. */
void rd_endpoint_relieve(rd_endpoint *endpoint, size_t memory) {
    const rd_outq *queue = &endpoint->conn->out;
    size_t before;
    do {
        before = queue->bytes;
        rd_conn_flush_through(endpoint->conn);
    } while (endpoint->conn != NULL && queue->bytes < before && queue->memory > memory);
}

/* A single message may be longer than the limit. */
static bool has_room(const rd_outq *queue, size_t len, size_t most) {
    return queue->bytes == 0 || queue->memory + len <= most;
}

/* Whether there is room for `len` more bytes. Drops queued messages for them where the policy says
 * so. */
static bool make_room(rd_endpoint *endpoint, size_t len) {
    rd_http_shared *shared = endpoint->shared;
    rd_outq *queue = &endpoint->conn->out;
    const size_t most = max_pending(shared);
    if (has_room(queue, len, most)) return true;
    rd_endpoint_relieve(endpoint, len < most ? most - len : 0);
    if (endpoint->conn == NULL) return false;
    if (has_room(queue, len, most)) return true;
    if (shared->settings->slow_client == RD_SLOW_CLOSE) {
        rd_endpoint_ops_of(endpoint)->overflow(endpoint);
        return false;
    }
    if (shared->settings->slow_client == RD_SLOW_DROP_OLDEST && len <= most) {
        shared->messages_dropped +=
            rd_encoding_drop_oldest(queue, &endpoint->conn->set->chunks, most - len);
        if (has_room(queue, len, most)) return true;
    }
    shared->messages_dropped++;
    return false;
}

void rd_endpoint_queue(rd_endpoint *endpoint, rd_encoding *encoding) {
    rd_conn *conn = endpoint->conn;
    if (!make_room(endpoint, rd_buffer_len(&encoding->bytes))) return;
    encoding->ledger = &conn->set->ledger;
    rd_encoding_borrow(encoding, &conn->out, &conn->set->chunks);
    conn->notify_drained = endpoint->wants_drained;
    rd_conn_mark_dirty(conn);
}

void rd_endpoint_expect(rd_endpoint *endpoint) {
    const uint64_t now_ms = endpoint->conn->set->loop->now_ms;
    const uint32_t ms = endpoint->ping_interval_ms;
    rd_conn_set_deadline(endpoint->conn, ms > 0 ? now_ms + ms : UINT64_MAX);
}

void rd_endpoint_notify(rd_endpoint *endpoint) {
    if (endpoint->source.is_handling || endpoint->due == 0) return;
    endpoint->shared->handler->on_event(endpoint->shared->handler, &endpoint->source);
}

void rd_endpoint_end_subscriptions(rd_endpoint *endpoint) {
    if (endpoint->hold != NULL) endpoint->hold->end(endpoint->hold);
    rd_subscriber_clear(endpoint->shared->channels, &endpoint->subscriber);
    endpoint->subscriber.kind = &ended_kind;
}

void rd_endpoint_withdrawn(rd_endpoint *endpoint) {
    rd_handler *handler = endpoint->shared->handler;
    assert(endpoint->is_unclaimed && !endpoint->source.is_handling);
    endpoint->conn = NULL;
    endpoint->is_closing = true;
    endpoint->due = 0;
    handler->on_withdrawn(handler, &endpoint->source);
    rd_endpoint_unref(endpoint);
}

void rd_endpoint_closed(rd_endpoint *endpoint) {
    endpoint->conn = NULL;
    endpoint->is_closing = true;
    rd_endpoint_set_due(endpoint, RD_ENDPOINT_CLOSE);
    rd_endpoint_end_subscriptions(endpoint);
    rd_endpoint_notify(endpoint);
    rd_endpoint_unref(endpoint);
}

void rd_endpoint_failed(rd_endpoint *endpoint, rd_slice why) {
    assert(endpoint->is_dialing && endpoint->conn == NULL);
    rd_endpoint_set_close(endpoint, RD_ENDPOINT_ABNORMAL, why);
    rd_endpoint_closed(endpoint);
}

void rd_endpoint_set_close(rd_endpoint *endpoint, unsigned code, rd_slice reason) {
    if (endpoint->close_code != RD_ENDPOINT_ABNORMAL) return;
    endpoint->close_code = (uint16_t)code;
    if (reason.len == 0) return;
    const size_t len = reason.len > RD_ENDPOINT_REASON_MAX ? RD_ENDPOINT_REASON_MAX : reason.len;
    endpoint->reason = rd_alloc(sizeof(*endpoint->reason) + len);
    endpoint->reason->len = (uint8_t)len;
    memcpy(endpoint->reason->text, reason.ptr, len);
}

rd_endpoint_event rd_endpoint_next(const rd_endpoint *endpoint) {
    if (endpoint->due == 0) return RD_ENDPOINT_NOTHING;
    const rd_endpoint_event event = (rd_endpoint_event)__builtin_ctz(endpoint->due);
    if (event != RD_ENDPOINT_MESSAGE) return event;
    const rd_endpoint_message *first = RD_CONTAINER(endpoint->messages, rd_endpoint_message, node);
    if (first->is_gap) return RD_ENDPOINT_GAP;
    return first->published != NULL ? RD_ENDPOINT_PUBLISHED : RD_ENDPOINT_MESSAGE;
}

static void clear_due(rd_endpoint *endpoint, rd_endpoint_event event) {
    endpoint->due = (uint16_t)(endpoint->due & ~(1u << event));
}

static rd_endpoint_message *take_message(rd_endpoint *endpoint) {
    rd_endpoint_message *message =
        RD_CONTAINER(rd_ring_shift(&endpoint->messages), rd_endpoint_message, node);
    uncount(endpoint, message);
    if (endpoint->messages == NULL) clear_due(endpoint, RD_ENDPOINT_MESSAGE);
    return message;
}

rd_endpoint_message *rd_endpoint_take(rd_endpoint *endpoint, unsigned *kind) {
    const rd_endpoint_event event = rd_endpoint_next(endpoint);
    *kind = event;
    if (event == RD_ENDPOINT_MESSAGE || event == RD_ENDPOINT_PUBLISHED || event == RD_ENDPOINT_GAP)
        return take_message(endpoint);
    clear_due(endpoint, event);
    if (event == RD_ENDPOINT_CLOSE) endpoint->due = 0;
    return NULL;
}

rd_slice rd_endpoint_agreed(const rd_endpoint *endpoint) {
    return rd_layer_agreed(endpoint->conn);
}
