/* SPDX-License-Identifier: MIT
 *
 * An upgraded or raw connection: its events for the application, and what the application sends,
 * independent of the protocol below (WebSocket, Server-Sent Events, none). It may subscribe to
 * channels.
 * A message published there goes straight to its client, or, for a subscription with a block, to
 * the application as an event. Counted: the protocol holds one reference until the connection is
 * closed, the side of the application another until the last event was handled. Under the loop
 * lock.
 *
 *   OPEN ─▶ MESSAGE, PUBLISHED, DRAINED, SHUTDOWN, PING in any number ─▶ CLOSE
 *
 * endpoint_events.def lists all events. They are handled one at a time (request/event.h). Without a
 * connection it is the application's own subscriber, which has no events but PUBLISHED.
 */
#ifndef RD_ENDPOINT_ENDPOINT_H
#define RD_ENDPOINT_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "endpoint/endpoint_message.h"
#include "request/event.h"
#include "pubsub/channel.h"

typedef struct rd_conn rd_conn;
typedef struct rd_endpoint rd_endpoint;
struct rd_http_shared;

enum { RD_ENDPOINT_REASON_MAX = 123, RD_ENDPOINT_NO_CODE = 1005, RD_ENDPOINT_ABNORMAL = 1006 };

#define RD_ENDPOINT_NOBODY UINT32_MAX /* `index`: the application has no object for it */

typedef enum rd_endpoint_event {
    RD_ENDPOINT_NOTHING,
#define RD_ENDPOINT_EVENT(name, callback) RD_ENDPOINT_##name,
#define RD_ENDPOINT_STEP(name)            RD_ENDPOINT_##name,
#include "endpoint/endpoint_events.def"
#undef RD_ENDPOINT_EVENT
#undef RD_ENDPOINT_STEP
    RD_ENDPOINT_EVENT_COUNT,
} rd_endpoint_event;

/* `due` of rd_endpoint has a bit for each. */
_Static_assert(RD_ENDPOINT_EVENT_COUNT <= 16, "at most 16 events, NOTHING included");

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
static inline bool rd_endpoint_is_close_code(unsigned code) {
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

/* The protocol that the handshake of its open connection agreed upon; empty: none. At most 255
 * bytes (RFC 7301, section 3.1). Under the lock. */
enum { RD_ENDPOINT_AGREED_MAX = 255 };
rd_slice rd_endpoint_agreed(const rd_endpoint *endpoint);

/* What a protocol does for an open connection. Not called once it is closed. */
typedef struct rd_endpoint_ops {
    rd_event_ops events; /* RD_ENDPOINT_EVENTS(): the endpoint as a source of events */
    bool has_ids;        /* clients get the id of a message, and send it back when they return */
    /* Queues one message, which leaves with the next flush. */
    void (*write)(rd_endpoint *endpoint, const char *bytes, size_t len, bool is_text);
    /* Queues an event of a stream for the client. A protocol whose messages have no fields queues
     * the data alone. */
    void (*event)(rd_endpoint *endpoint, const rd_named_event *event);
    /* Queues a published message, if the protocol has a form for it. */
    void (*deliver)(rd_endpoint *endpoint, rd_message *message, rd_receive_as as);
    /* This message for the application exceeds the limit of waiting bytes. */
    void (*overflow)(rd_endpoint *endpoint);
    /* Closes the connection after what is queued. */
    void (*close)(rd_endpoint *endpoint, unsigned code, rd_slice reason);
    /* The application has handled an event. */
    void (*handled)(rd_endpoint *endpoint);
    void (*free)(rd_endpoint *endpoint);
} rd_endpoint_ops;

/* What came with the code at the end. */
typedef struct rd_endpoint_reason {
    uint8_t len;
    char text[];
} rd_endpoint_reason;

/* What is held back for an endpoint that waits for replays; see messaging/hold.h. Embedded there.
 */
typedef struct rd_endpoint_hold {
    size_t bytes; /* count as pending */
    /* A callback has returned. `is_over`: or the endpoint closes, after what it has. */
    void (*settle)(struct rd_endpoint_hold *hold, bool is_over);
    void (*end)(struct rd_endpoint_hold *hold); /* drops all; the struct is not used any more */
} rd_endpoint_hold;

/* A server has many of them that wait, so this has no gaps. */
struct rd_endpoint {
    rd_event_source
        source; /* with the references; its `ops` are the first part of rd_endpoint_ops */
    rd_subscriber subscriber;
    struct rd_http_shared *shared; /* of the server; it outlives the connection */
    rd_list *messages;             /* not handled yet: a ring of rd_endpoint_message */
    rd_endpoint_hold *hold;        /* NULL: it waits for no replay */
    rd_conn *conn;                 /* NULL once closed */
    rd_endpoint_reason *reason;    /* NULL: none */
    uint32_t message_bytes;        /* memory of `messages` */
    uint32_t counted;              /* for a protocol: of its messages, what the ledger counts */
    uint32_t ping_interval_ms;     /* 0: never */
    uint32_t index;                /* of the application's object */
    uint16_t due;                  /* bits: the waiting events; MESSAGE also stands for PUBLISHED */
    uint16_t close_code;           /* RD_ENDPOINT_ABNORMAL: the connection ended without a code */
    bool is_deaf;        /* the application wants no event but the end; read without the lock */
    bool is_unclaimed;   /* a listener accepted it, `index` is that of what makes its handler, and
                          * the application has not taken OPEN yet; read without the lock */
    bool is_dialing;     /* this process makes the connection, and has none yet: CLOSE means that
                          * there never was one, and `reason` says why; read without the lock */
    bool is_closing : 1; /* nothing more can be sent */
    bool wants_drained : 1;
    bool wants_ping : 1;
    bool has_ended : 1;   /* set by the protocol: the client has ended its side */
    bool is_outgoing : 1; /* this process has made the connection, or tries to */
    bool ends_later : 1;  /* the server stops, and its end was put off; see parting.h */
};

/* The message of an event of an endpoint, or NULL. */
static inline const rd_endpoint_message *rd_endpoint_message_of(const rd_event *event) {
    return event->message;
}

/* As `events` of rd_endpoint_ops. `family`: RD_EVENTS_OF_CONNECTION, or of a subscriber. */
#define RD_ENDPOINT_EVENTS(of_family)                                                              \
    {                                                                                              \
        .family = (of_family), .next = rd_endpoint_source_next, .take = rd_endpoint_source_take,   \
        .handled = rd_endpoint_source_handled, .release = rd_endpoint_source_release               \
    }

unsigned rd_endpoint_source_next(const rd_event_source *source);
void rd_endpoint_source_take(rd_event_source *source, rd_event *event);
bool rd_endpoint_source_handled(rd_event_source *source, const rd_event *event);
void rd_endpoint_source_release(rd_event_source *source, void *message);

/* Sets the limits for subscribers, from the settings and the ledger. Call it before there is an
 * endpoint. */
void rd_endpoint_set_limits(struct rd_http_shared *shared);

/* `conn` NULL: a subscriber of the application itself. */
void rd_endpoint_init(rd_endpoint *endpoint, const rd_endpoint_ops *ops,
                      struct rd_http_shared *shared, rd_conn *conn);

/* For a connection that is still to be made: rd_endpoint_connected() or rd_endpoint_failed() comes
 * later. */
void rd_endpoint_init_dialing(rd_endpoint *endpoint, const rd_endpoint_ops *ops,
                              struct rd_http_shared *shared);

static inline rd_endpoint *rd_endpoint_of_source(rd_event_source *source) {
    return RD_CONTAINER(source, rd_endpoint, source);
}

static inline const rd_endpoint_ops *rd_endpoint_ops_of(const rd_endpoint *endpoint) {
    return RD_CONTAINER(endpoint->source.ops, const rd_endpoint_ops, events);
}

/* Whether it is a subscriber of the application itself. */
static inline bool rd_endpoint_is_own(const rd_endpoint *endpoint) {
    return endpoint->source.ops->family == RD_EVENTS_OF_SUBSCRIBER;
}

static inline bool rd_endpoint_is_due(const rd_endpoint *endpoint, rd_endpoint_event event) {
    return (endpoint->due >> event & 1) != 0;
}

/* Marks the event as waiting; rd_endpoint_notify() hands it to the application. */
static inline void rd_endpoint_set_due(rd_endpoint *endpoint, rd_endpoint_event event) {
    endpoint->due = (uint16_t)(endpoint->due | 1u << event);
}

static inline void rd_endpoint_ref(rd_endpoint *endpoint) {
    endpoint->source.refs++;
}
void rd_endpoint_unref(rd_endpoint *endpoint);

/* Takes the message's payload over, which is empty afterwards. Dropped if the application is deaf.
 */
void rd_endpoint_add_message(rd_endpoint *endpoint, rd_endpoint_message *message);

/* Adds a message with a copy of these bytes; `kind` says what they are. Dropped if the application
 * is deaf. */
void rd_endpoint_add_copy(rd_endpoint *endpoint, rd_slice bytes, const rd_endpoint_message *kind);

/* Adds bytes of a stream: to the last message if that still waits and stays within `most` bytes,
 * else as new messages of at most that. Dropped if the application is deaf. */
void rd_endpoint_add_bytes(rd_endpoint *endpoint, const char *bytes, size_t len, size_t most);

/* Sets the code and reason with which the connection ends. Only the first call counts. */
void rd_endpoint_set_close(rd_endpoint *endpoint, unsigned code, rd_slice reason);

static inline rd_slice rd_endpoint_reason_of(const rd_endpoint *endpoint) {
    const rd_endpoint_reason *reason = endpoint->reason;
    return reason != NULL ? rd_slice_of(reason->text, reason->len) : RD_SLICE("");
}

/* Whether the application is handling the last event. */
static inline bool rd_endpoint_is_ending(const rd_endpoint *endpoint) {
    return endpoint->conn == NULL && endpoint->source.is_handling &&
           !rd_endpoint_is_due(endpoint, RD_ENDPOINT_CLOSE);
}

/* Delivers a published message to the client (`block` 0) or to a block of the application. When
 * more than max_pending_bytes wait for blocks already, ops->overflow() refuses it. */
void rd_endpoint_deliver(rd_endpoint *endpoint, rd_message *message, rd_receive_as as,
                         uintptr_t block);

/* Sends what the socket takes until at most `memory` bytes are queued. May close the connection. */
void rd_endpoint_relieve(rd_endpoint *endpoint, size_t memory);

/* Queues bytes that many clients share. When max_pending_bytes wait already, the policy for slow
 * clients decides. */
void rd_endpoint_queue(rd_endpoint *endpoint, rd_encoding *encoding);

/* Something was received, or the interval has changed: the next ping is a whole interval away. */
void rd_endpoint_expect(rd_endpoint *endpoint);

/* Hands the next event to the application, if there is one and no other is being handled. */
void rd_endpoint_notify(rd_endpoint *endpoint);

/* How many bytes of published messages there is room for, to the client (`block` 0) or to a
 * block. */
size_t rd_endpoint_room(const rd_endpoint *endpoint, uintptr_t block);

/* Ends its part in pub/sub: it gets no later message and no replay, and cannot subscribe any
 * more. */
void rd_endpoint_end_subscriptions(rd_endpoint *endpoint);

/* The connection is closed: nothing can be sent, its subscriptions end, the application gets CLOSE.
 * Drops the protocol's reference. */
void rd_endpoint_closed(rd_endpoint *endpoint);

/* The same for a connection that the application has not claimed: it is never told of it. */
void rd_endpoint_withdrawn(rd_endpoint *endpoint);

/* The connection could not be made: the application gets CLOSE and nothing else. Drops the
 * protocol's reference. */
void rd_endpoint_failed(rd_endpoint *endpoint, rd_slice why);

/* The next event. */
rd_endpoint_event rd_endpoint_next(const rd_endpoint *endpoint);

/* Takes the next event, and sets `kind` to it. Returns the message of RD_ENDPOINT_MESSAGE,
 * RD_ENDPOINT_PUBLISHED and RD_ENDPOINT_GAP, which must be freed with rd_endpoint_message_free(),
 * else NULL. */
rd_endpoint_message *rd_endpoint_take(rd_endpoint *endpoint, unsigned *kind);

#endif
