/* SPDX-License-Identifier: MIT
 *
 * What a protocol reports to the server, and what all HTTP connections of a server share. Under the
 * loop lock. These functions must not call the application: they queue.
 */
#ifndef RD_REQUEST_HANDLER_H
#define RD_REQUEST_HANDLER_H

#include "base/settings.h"
#include "http/date.h"
#include "request/event.h"
#include "http/head.h"
#include "pubsub/channel.h"
#include "request/request.h"
#include "http/sections.h"

typedef struct rd_handler rd_handler;

struct rd_handler {
    /* A request is ready for the application. The handler takes its own reference. */
    void (*on_request)(rd_handler *handler, rd_request *request);
    /* A request was refused with RD_ERR_* before the application saw it, or a WebSocket message or
     * a subscription was refused. */
    void (*on_refused)(rd_handler *handler, rd_conn *conn, int code);
    /* A source has an event for the application, which is not handling another one of it. */
    void (*on_event)(rd_handler *handler, rd_event_source *source);
    /* The protocol lets go of a request that has a place (rd_place): it is answered, or its client
     * has gone. The request leaves that place. Only called after on_request() has returned. */
    void (*on_left)(rd_handler *handler, rd_request *request);
    /* The client of a connection that carries others takes nothing of the answers that it has: no
     * more of its requests are taken. Or it takes them again. */
    void (*on_held)(rd_handler *handler, rd_lines *lines, bool is_held);
    /* A source of which the application has taken no event will have none. */
    void (*on_withdrawn)(rd_handler *handler, rd_event_source *source);
};

/* The setting slow_client: what happens to a published message above max_pending_bytes. */
typedef enum rd_slow_policy {
    RD_SLOW_CLOSE,
    RD_SLOW_DROP_OLDEST,
    RD_SLOW_DROP_NEWEST,
} rd_slow_policy;

/* How long the body of a request may be, once its head is there; 0: any length. */
typedef struct rd_body_limit {
    int64_t (*most)(void *owner, const rd_request *request); /* NULL: max_body_bytes for all */
    void *owner;
} rd_body_limit;

/* rd_conn_set.shared points to it in the set that serves HTTP. */
typedef struct rd_http_shared {
    rd_handler *handler;
    rd_head_limits limits;
    rd_date date;
    rd_request_pool requests;
    rd_ledger *ledger;             /* what all clients hold together */
    rd_sections sections;          /* header sections that were seen before */
    struct rd_ws_deflate *deflate; /* of endpoint/; created for the first client that deflates */
    const rd_network *proxies;     /* peers that must open with the PROXY protocol */
    size_t proxy_count;
    const rd_network *trusted; /* peers that bring requests of many clients: trusted_proxies */
    size_t trusted_count;
    const rd_protocol *http2; /* for clients that begin with it on a plain port, or NULL */
    bool proxy_optional;      /* these peers may also open without it */
    struct {
        uint32_t connections;
        uint32_t streams; /* of all connections */
        bool any;         /* there was a connection */
        uint64_t refused; /* streams: the connection or all together had as many as they may */
    } http2_counts;
    struct rd_http2_spare *http2_spare; /* of http2/; while there are connections */
    uint32_t early_calls; /* requests with the application whose bodies are still arriving */
    const rd_settings *settings;
    rd_body_limit body_limit;
    rd_channels *channels;          /* of upgraded connections */
    rd_subscriber_kind subscribers; /* upgraded connections as subscribers */
    rd_list *spare_messages;        /* of endpoint/: a ring, see endpoint_message.h */
    uint32_t spare_message_count;
    uint64_t messages_dropped; /* that slow clients did not get */
} rd_http_shared;

static inline rd_http_shared *rd_http_shared_of(const rd_conn *conn) {
    return conn->set->shared;
}

static inline int64_t rd_body_limit_of(const rd_conn *conn, const rd_request *request) {
    const rd_http_shared *shared = rd_http_shared_of(conn);
    const rd_body_limit *limit = &shared->body_limit;
    return limit->most == NULL ? shared->settings->max_body_bytes
                               : limit->most(limit->owner, request);
}

/* A protocol lets go of the request, and drops its reference: it is answered, or its client has
 * gone. The waiters of the request are woken, because another thread may have ended the answer. */
static inline void rd_request_leave(rd_request *request) {
    const rd_conn *conn = request->conn; /* NULL while the head is incomplete */
    request->conn = NULL;
    if (request->queued.place != RD_PLACE_NONE) {
        rd_handler *handler = rd_http_shared_of(conn)->handler;
        handler->on_left(handler, request);
    }
    rd_request_wake(request);
    rd_request_unref(request);
}

#endif
