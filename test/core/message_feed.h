/* SPDX-License-Identifier: MIT
 *
 * Frames of a client as rows, and the events that a reader makes of them as text, however they are
 * cut: for the tests of messages, plain and deflated.
 */
#ifndef MESSAGE_FEED_H
#define MESSAGE_FEED_H

#include <stdlib.h>

#include "base/text.h"
#include "check.h"
#include "client_frames.h"
#include "error_name.h"
#include "endpoint/websocket_message.h"

enum { FRAMES_MAX = 8 };

static const rd_ws_limits roomy = {.message_bytes = 1 << 24, .fragments = 1 << 20};

typedef struct frame {
    unsigned first;
    const char *payload; /* NULL: no frame */
    size_t len;
    uint64_t announced;
} frame;

#define F(first, payload)                                                                          \
    { (first), (payload), sizeof(payload) - 1, sizeof(payload) - 1 }

/* A frame that is cut: the reader must be able to decide with the bytes that are there. */
#define CUT(first, announced, payload)                                                             \
    { (first), (payload), sizeof(payload) - 1, (announced) }

/* Events as text: text(..) binary(..) ping(..) pong(..) close(code:..) !ERROR. */
typedef struct row {
    const char *events;
    frame frames[FRAMES_MAX];
} row;

/* A reader fed piece by piece, and the events that came out of it as text. */
typedef struct feed {
    rd_ws_reader reader;
    rd_ws_limits limits;
    rd_buffer events;
    int rc;
    bool sound; /* every answer so far fits its own parts */
} feed;

__attribute__((unused)) static void feed_start(feed *feed, const rd_ws_limits *limits) {
    memset(feed, 0, sizeof *feed);
    rd_ws_reader_init(&feed->reader);
    feed->limits = *limits;
    feed->sound = true;
}

__attribute__((unused)) static void feed_end(feed *feed) {
    rd_ws_reader_clear(&feed->reader);
    rd_buffer_clear(&feed->events);
}

__attribute__((unused)) static void note_event(feed *feed, const rd_ws_event *event) {
    rd_buffer *out = &feed->events;

    if (rd_buffer_len(out) > 0) rd_buffer_append(out, " ", 1);
    if (feed->rc < 0) {
        rd_text_add(out, "!%s", error_name(feed->rc));
        return;
    }
    if (feed->rc == RD_WS_EVENT_MESSAGE)
        rd_text_add(out, event->opcode == RD_WS_TEXT ? "text(" : "binary(");
    if (feed->rc == RD_WS_EVENT_PING) rd_text_add(out, "ping(");
    if (feed->rc == RD_WS_EVENT_PONG) rd_text_add(out, "pong(");
    if (feed->rc == RD_WS_EVENT_CLOSE) rd_text_add(out, "close(%u:", event->code);
    rd_buffer_append(out, event->payload.ptr, event->payload.len);
    rd_buffer_append(out, ")", 1);
}

__attribute__((unused)) static void feed_bytes(feed *feed, const char *bytes, size_t len) {
    char *copy = malloc(len ? len : 1);
    size_t at = 0, used;
    rd_ws_event event;

    memcpy(copy, bytes, len);
    do {
        feed->rc = rd_ws_feed(&feed->reader, &feed->limits, copy + at, len - at, &used, &event);
        feed->sound &= used <= len - at && (feed->rc != RD_WS_EVENT_NONE || used == len - at);
        at += used;
        if (feed->rc < 0) feed->sound &= feed->reader.buffer.bytes == NULL;
        if (feed->rc != RD_WS_EVENT_NONE) note_event(feed, &event);
    } while (feed->rc != RD_WS_EVENT_NONE);
    if (feed->reader.opcode == 0 && feed->reader.frame.at == 0)
        feed->sound &= feed->reader.buffer.bytes == NULL;
    free(copy);
}

__attribute__((unused)) static void feed_pieces(feed *feed, const char *bytes, size_t len,
                                                size_t step) {
    for (size_t at = 0; at < len; at += step)
        feed_bytes(feed, bytes + at, len - at < step ? len - at : step);
}

__attribute__((unused)) static void check_events(feed *feed, const char *events) {
    CHECK_BYTES(rd_buffer_ptr(&feed->events), rd_buffer_len(&feed->events), events);
    CHECK(feed->sound);
    feed_end(feed);
}

__attribute__((unused)) static void check_stream(const char *bytes, size_t len,
                                                 const rd_ws_limits *limits, const char *events) {
    feed feed;

    for (size_t cut = 0; cut < len; cut++) {
        feed_start(&feed, limits);
        feed_bytes(&feed, bytes, cut);
        feed_bytes(&feed, bytes + cut, len - cut);
        check_events(&feed, events);
    }
    for (size_t step = 1; step < 8; step++) {
        feed_start(&feed, limits);
        feed_pieces(&feed, bytes, len, step);
        check_events(&feed, events);
    }
}

__attribute__((unused)) static size_t write_frames(char *bytes, const frame *frames, size_t count) {
    size_t len = 0;

    for (size_t i = 0; i < count && frames[i].payload; i++)
        len += client_frame(bytes + len, frames[i].first, 0x37fa213d * (uint32_t)(i + 1),
                            frames[i].payload, frames[i].len, frames[i].announced);
    return len;
}

__attribute__((unused)) static void check_row(const row *row, const rd_ws_limits *limits) {
    char bytes[1024];

    check_stream(bytes, write_frames(bytes, row->frames, FRAMES_MAX), limits, row->events);
}

#endif
