/* SPDX-License-Identifier: MIT
 *
 * Messages out of WebSocket frames (RFC 6455, sections 5.4 to 8.1). Fragments are joined and
 * inflated, control frames among them returned at once, text checked as it comes, limits checked
 * before anything is allocated. Knows no connection: bytes in, events out. endpoint/websocket.c
 * drives it and answers pings and closes. Under the loop lock.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_MESSAGE_H
#define RD_ENDPOINT_WEBSOCKET_MESSAGE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/utf8.h"
#include "endpoint/websocket_deflate.h"
#include "endpoint/websocket_frame.h"

/* Must be the same at every call for a reader. */
typedef struct rd_ws_limits {
    uint32_t
        message_bytes;  /* payload of all fragments together; at most RD_WS_MESSAGE_MAX counts */
    uint32_t fragments; /* frames of a message, empty ones included; one is always allowed */
    rd_ws_deflate *deflate; /* NULL: permessage-deflate was not negotiated */
    bool from_server;       /* the peer is one: its frames have no mask */
} rd_ws_limits;

enum { RD_WS_MESSAGE_MAX = 1 << 30 };

/*
 * Allocates only while a message or a control frame is incomplete at the end of what was fed, and
 * never more than about twice what has been received of it, inflated. An announced length reserves
 * nothing.
 */
typedef struct rd_ws_reader {
    rd_buffer buffer;  /* the open message, then the payload of a control frame that is cut */
    rd_ws_frame frame; /* the frame being read */
    rd_ws_inflater *inflater; /* of the open message, from its first bytes on */
    uint32_t done;            /* bytes of the frame's payload that are done */
    uint32_t message;         /* bytes of the open message in the buffer */
    uint32_t fragments;
    rd_utf8 utf8;        /* of the open text, or of the reason of the close */
    uint8_t opcode : 4;  /* of the open message; 0: none */
    bool compressed : 1; /* the open message is compressed */
    uint8_t state : 2;
} rd_ws_reader;

/* Whether a message has begun and is incomplete. */
static inline bool rd_ws_reader_is_open(const rd_ws_reader *reader) {
    return reader->opcode != 0;
}

/* Bytes that it holds between two calls. */
static inline size_t rd_ws_reader_memory(const rd_ws_reader *reader) {
    return reader->buffer.capacity + (reader->inflater != NULL ? RD_WS_INFLATER_BYTES : 0);
}

/* What rd_ws_feed() returns, apart from errors. */
enum {
    RD_WS_EVENT_NONE,    /* everything fed is used */
    RD_WS_EVENT_MESSAGE, /* opcode, payload */
    RD_WS_EVENT_PING,    /* payload: send it back in a pong */
    RD_WS_EVENT_PONG,    /* payload */
    RD_WS_EVENT_CLOSE    /* code; payload is the reason; all that follows is ignored */
};

enum { RD_WS_NO_CODE = 1005 }; /* a close without a code; never sent */

typedef struct rd_ws_event {
    rd_slice payload; /* in the bytes fed or in the reader; valid until the next call of any
                       * function */
    uint16_t code;    /* RD_WS_NO_CODE: the close had none */
    uint8_t opcode;   /* RD_WS_TEXT: valid UTF-8; or RD_WS_BINARY */
    bool is_ascii;    /* a text */
} rd_ws_event;

void rd_ws_reader_init(rd_ws_reader *reader);

void rd_ws_reader_clear(rd_ws_reader *reader);

/*
 * Takes bytes of the peer up to the next event and unmasks them in place. `used` is how many it
 * took. Call again with the rest, even if it is empty, until it returns RD_WS_EVENT_NONE: only then
 * is the memory of the last event freed. A negative error is final: its status is the close code.
 * After an error, as after a close, everything fed later is ignored.
 *
 * Which events come, and at which byte, depends only on the bytes, never on how they were cut.
 */
int rd_ws_feed(rd_ws_reader *reader, const rd_ws_limits *limits, char *bytes, size_t len,
               size_t *used, rd_ws_event *event);

/*
 * Gives the buffer with the payload of the MESSAGE that rd_ws_feed() has just returned to the
 * caller. Returns false when the payload is in the bytes fed. `payload` must be zeroed.
 */
bool rd_ws_reader_take(rd_ws_reader *reader, const rd_ws_event *event, rd_buffer *payload);

#endif
