/* SPDX-License-Identifier: MIT
 *
 * An upgraded connection: its events for the application, and what the application sends,
 * independent of the protocol below (WebSocket, Server-Sent Events). It may subscribe to channels.
 * A message published there goes straight to its client, or, for a subscription with a block, to
 * the application as an event. Counted: the protocol holds one reference until the connection is
 * closed, the side of the application another until the last event was handled. Under the loop
 * lock.
 *
 *   OPEN ─▶ MESSAGE, PUBLISHED, DRAINED, SHUTDOWN in any number ─▶ CLOSE
 *
 * push_events.def lists all events. They are handled one at a time (http/event.h). Without a
 * connection it is the application's own subscriber, which has no events but PUBLISHED.
 */
#ifndef RD_HTTP_PUSH_H
#define RD_HTTP_PUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/list.h"
#include "base/slice.h"
#include "http/event.h"
#include "pubsub/channel.h"

typedef struct rd_conn rd_conn;
typedef struct rd_push rd_push;
struct rd_http_shared;

enum { RD_PUSH_REASON_MAX = 123, RD_PUSH_ABNORMAL = 1006 };

typedef enum rd_push_event {
    RD_PUSH_NOTHING,
#define RD_PUSH_EVENT(name, callback) RD_PUSH_##name,
#define RD_PUSH_STEP(name)            RD_PUSH_##name,
#include "http/push_events.def"
#undef RD_PUSH_EVENT
#undef RD_PUSH_STEP
    RD_PUSH_EVENT_COUNT,
} rd_push_event;

/* An event of a stream. A field whose `ptr` is NULL is missing. Without data it only sets the id
 * and the reconnection time. */
typedef struct rd_named_event {
    rd_slice type; /* both must be rd_utf8_is_line() */
    rd_slice id;
    int64_t retry_ms; /* < 0: none */
    rd_slice data;    /* must be rd_utf8_is_text(), unless `is_text` is false */
    bool is_text;
} rd_named_event;

/* Whether a connection may be closed with this code (RFC 6455, section 7.4, and the codes
 * registered since). */
static inline bool rd_push_is_close_code(unsigned code) {
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

/* What a protocol does for an open connection. Not called once it is closed. */
typedef struct rd_push_ops {
    bool has_ids; /* clients get the id of a message, and send it back when they return */
    /* Queues one message, which leaves with the next flush. */
    void (*write)(rd_push *push, const char *bytes, size_t len, bool is_text);
    /* Queues an event. A protocol whose messages have no fields queues the data alone. */
    void (*event)(rd_push *push, const rd_named_event *event);
    /* Queues a published message, if the protocol has a form for it. */
    void (*publish)(rd_push *push, rd_message *message, rd_receive_as as);
    /* This message for the application exceeds the limit of waiting bytes. */
    void (*overflow)(rd_push *push);
    /* Closes the connection after what is queued. */
    void (*close)(rd_push *push, unsigned code, rd_slice reason);
    /* The application has handled an event. */
    void (*told)(rd_push *push);
    void (*free)(rd_push *push);
} rd_push_ops;

/* A replay that a push waits for before it is subscribed. Embedded in the part that requested
 * it. */
typedef struct rd_push_replay {
    rd_list in_push;
    void (*cancel)(struct rd_push_replay *replay); /* ends the wait; the struct is not used any
                                                    * more */
} rd_push_replay;

struct rd_push {
    rd_event_source source;
    rd_subscriber subscriber;
    struct rd_http_shared *shared; /* of the server; it outlives the connection */
    rd_list messages;              /* not handled yet */
    rd_list replays;               /* of rd_push_replay */
    const rd_push_ops *ops;
    rd_conn *conn;        /* NULL once closed */
    size_t message_bytes; /* memory of `messages` */
    uint32_t refs;
    uint32_t ping_interval_ms; /* 0: never */
    uint32_t slot;             /* of the application's object */
    uint16_t due;              /* bits: the waiting events; MESSAGE also stands for PUBLISHED */
    uint16_t close_code;       /* RD_PUSH_ABNORMAL: the connection ended without a code */
    uint8_t reason_len;
    bool is_deaf;     /* the application wants no event but the end; read without the lock */
    bool closing : 1; /* nothing more can be sent */
    bool wants_drained : 1;
    char *reason; /* allocated, or NULL */
};

/* A message for the application: from the client, or from a channel. */
typedef struct rd_push_message {
    rd_list node;
    rd_buffer payload;
    rd_message *published; /* a reference; NULL: `payload` came from the client */
    uintptr_t block;       /* of the subscription */
    bool is_text;
} rd_push_message;

/* The message of an event of a push, or NULL. */
static inline const rd_push_message *rd_push_message_of(const rd_event *event) {
    return event->message;
}

/* `conn` NULL: a subscriber of the application itself. */
void rd_push_init(rd_push *push, const rd_push_ops *ops, struct rd_http_shared *shared,
                  rd_conn *conn);

static inline rd_push *rd_push_of_source(rd_event_source *source) {
    return RD_CONTAINER(source, rd_push, source);
}

/* Whether it is a subscriber of the application itself. */
static inline bool rd_push_is_own(const rd_push *push) {
    return push->source.ops->family == RD_EVENTS_OF_SUBSCRIBER;
}

static inline bool rd_push_is_due(const rd_push *push, rd_push_event event) {
    return (push->due >> event & 1) != 0;
}

/* Marks the event as waiting; rd_push_tell() hands it to the application. */
static inline void rd_push_set_due(rd_push *push, rd_push_event event) {
    push->due = (uint16_t)(push->due | 1u << event);
}

void rd_push_ref(rd_push *push);
void rd_push_unref(rd_push *push);

/* Takes the payload over; the buffer is empty afterwards. Dropped if the application is deaf. */
void rd_push_add_message(rd_push *push, rd_buffer *payload, bool is_text);

/* Sets the code and reason with which the connection ends. Only the first call counts. */
void rd_push_set_close(rd_push *push, unsigned code, rd_slice reason);

static inline rd_slice rd_push_reason(const rd_push *push) {
    return rd_slice_of(push->reason, push->reason_len);
}

/* Whether the application is handling the last event. */
static inline bool rd_push_is_ending(const rd_push *push) {
    return push->conn == NULL && push->source.is_told && !rd_push_is_due(push, RD_PUSH_CLOSE);
}

/* Delivers a published message to the client (`block` 0) or to a block of the application. When
 * more than max_pending_bytes wait for blocks already, ops->overflow() refuses it. */
void rd_push_publish(rd_push *push, rd_message *message, rd_receive_as as, uintptr_t block);

/* Sends what the socket takes until at most `memory` bytes are queued. May close the connection. */
void rd_push_relieve(rd_push *push, size_t memory);

/* Queues bytes that many clients share. When max_pending_bytes wait already, the policy for slow
 * clients decides. */
void rd_push_queue(rd_push *push, rd_encoding *encoding);

/* Something was received, or the interval has changed: the next ping is a whole interval away. */
void rd_push_expect(rd_push *push);

/* Hands the next event to the application, if there is one and no other is being handled. */
void rd_push_tell(rd_push *push);

/* How many bytes of published messages there is room for, to the client (`block` 0) or to a
 * block. */
size_t rd_push_room(const rd_push *push, uintptr_t block);

/* Ends its part in pub/sub: it gets no later message and no replay, and cannot subscribe any
 * more. */
void rd_push_leave_channels(rd_push *push);

/* The connection is closed: nothing can be sent, its subscriptions end, the application gets CLOSE.
 * Drops the protocol's reference. */
void rd_push_closed(rd_push *push);

/* The next event. */
rd_push_event rd_push_next(const rd_push *push);

/* Takes the next event, and sets `kind` to it. Returns the message of RD_PUSH_MESSAGE and
 * RD_PUSH_PUBLISHED, which must be freed with rd_push_free_message(), else NULL. */
rd_push_message *rd_push_take(rd_push *push, unsigned *kind);
void rd_push_free_message(rd_push_message *message);

#endif
