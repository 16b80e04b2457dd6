/* SPDX-License-Identifier: MIT
 *
 * A connection that was upgraded: what it tells the application, event by event, and what the
 * application sends, whatever the protocol below (WebSocket, later Server-Sent Events). Counted:
 * the protocol holds one reference until the connection is closed, the side of the application
 * another until the last event was told. Under the loop lock.
 *
 *   OPEN ─▶ MESSAGE, DRAINED, SHUTDOWN in any number ─▶ CLOSE
 *
 * One event at a time: whoever takes one gives it back before the next one comes (server/events.h).
 */
#ifndef RD_HTTP_PUSH_H
#define RD_HTTP_PUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/list.h"
#include "base/slice.h"

typedef struct rd_conn rd_conn;
typedef struct rd_push rd_push;

enum { RD_PUSH_REASON_MAX = 123, RD_PUSH_ABNORMAL = 1006 };

typedef enum rd_push_event {
    RD_PUSH_NOTHING,
    RD_PUSH_OPEN,
    RD_PUSH_MESSAGE,
    RD_PUSH_DRAINED,
    RD_PUSH_SHUTDOWN,
    RD_PUSH_CLOSE,
} rd_push_event;

/* What a protocol does for an open one; never called once it is closed. */
typedef struct rd_push_ops {
    const char *name;
    /* Queues one message; it leaves with the next flush. */
    void (*write)(rd_push *push, const char *bytes, size_t len, bool is_text);
    /* Closes after what is queued. */
    void (*close)(rd_push *push, unsigned code, rd_slice reason);
    /* The application has been told of an event. */
    void (*told)(rd_push *push);
    void (*free)(rd_push *push);
} rd_push_ops;

struct rd_push {
    rd_list in_queue; /* of the server, while events wait and none is being told */
    rd_list messages; /* not told yet */
    const rd_push_ops *ops;
    rd_conn *conn;        /* NULL once closed */
    size_t message_bytes; /* memory of `messages` */
    uint32_t refs;
    uint16_t close_code; /* RD_PUSH_ABNORMAL: the connection ended without one */
    uint8_t reason_len;
    char reason[RD_PUSH_REASON_MAX];
    bool open_due : 1;
    bool drained_due : 1;
    bool shutdown_due : 1;
    bool close_due : 1;
    bool is_told : 1; /* an event is with the application just now */
    bool closing : 1; /* nothing more can be sent */
};

typedef struct rd_push_message {
    rd_list node;
    rd_buffer payload;
    bool is_text;
} rd_push_message;

void rd_push_init(rd_push *push, const rd_push_ops *ops, rd_conn *conn);
void rd_push_ref(rd_push *push);
void rd_push_unref(rd_push *push);

/* Takes the payload over; its buffer is empty afterwards. */
void rd_push_add_message(rd_push *push, rd_buffer *payload, bool is_text);

/* The connection ends with this code and reason; only the first one counts. */
void rd_push_set_close(rd_push *push, unsigned code, rd_slice reason);

/* What comes next. */
rd_push_event rd_push_next(const rd_push *push);

/* Takes it. The message of RD_PUSH_MESSAGE, to be given to rd_push_free_message(), else NULL. */
rd_push_message *rd_push_take(rd_push *push);
void rd_push_free_message(rd_push_message *message);

#endif
