/* SPDX-License-Identifier: MIT
 *
 * A reader of event streams by the letter of WHATWG HTML, section 9.2.6, written apart from the
 * server's writer, so that the two check each other. Takes a stream in pieces of any size; the text
 * has to be UTF-8 already.
 */
#ifndef EVENT_STREAM_H
#define EVENT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

typedef struct event_stream {
    void (*on_event)(struct event_stream *stream); /* `type` (empty: message), `data`, `last_id` */
    void *with;
    rd_buffer line, data, type, id, last_id;
    int64_t retry_ms; /* -1: the stream never set it */
    unsigned events, comments;
    bool begun, after_cr;
} event_stream;

static inline rd_slice stream_text(const rd_buffer *buffer) {
    return rd_slice_of(rd_buffer_len(buffer) ? rd_buffer_ptr(buffer) : "", rd_buffer_len(buffer));
}

static inline void stream_set(rd_buffer *buffer, rd_slice text) {
    rd_buffer_clear(buffer);
    rd_buffer_append(buffer, text.ptr, text.len);
}

static inline void stream_dispatch(event_stream *stream) {
    stream_set(&stream->last_id, stream_text(&stream->id));
    if (rd_buffer_len(&stream->data) > 0) {
        rd_buffer_truncate(&stream->data, rd_buffer_len(&stream->data) - 1);
        stream->events++;
        if (stream->on_event) stream->on_event(stream);
    }
    rd_buffer_clear(&stream->data);
    rd_buffer_clear(&stream->type);
}

static inline void stream_retry(event_stream *stream, rd_slice value) {
    int64_t number = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9' || number > INT64_MAX / 10 - 9) return;
        number = number * 10 + (value.ptr[i] - '0');
    }
    if (value.len > 0) stream->retry_ms = number;
}

static inline void stream_field(event_stream *stream, rd_slice name, rd_slice value) {
    if (rd_slice_equal(name, RD_SLICE("event"))) {
        stream_set(&stream->type, value);
    } else if (rd_slice_equal(name, RD_SLICE("data"))) {
        rd_buffer_append(&stream->data, value.ptr, value.len);
        rd_buffer_append(&stream->data, "\n", 1);
    } else if (rd_slice_equal(name, RD_SLICE("id"))) {
        if (!value.len || !memchr(value.ptr, 0, value.len)) stream_set(&stream->id, value);
    } else if (rd_slice_equal(name, RD_SLICE("retry"))) {
        stream_retry(stream, value);
    }
}

static inline void stream_line(event_stream *stream) {
    const rd_slice line = stream_text(&stream->line);
    const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
    if (line.len == 0) {
        stream_dispatch(stream);
    } else if (colon == line.ptr) {
        stream->comments++;
    } else if (colon == NULL) {
        stream_field(stream, line, RD_SLICE(""));
    } else {
        const size_t name_len = (size_t)(colon - line.ptr);
        rd_slice value = rd_slice_of(colon + 1, line.len - name_len - 1);
        if (value.len > 0 && value.ptr[0] == ' ') value.ptr++, value.len--;
        stream_field(stream, rd_slice_of(line.ptr, name_len), value);
    }
    rd_buffer_clear(&stream->line);
}

static inline void stream_byte(event_stream *stream, char byte) {
    const bool second = stream->after_cr && byte == '\n';
    stream->after_cr = byte == '\r';
    if (second) return;
    if (byte == '\r' || byte == '\n') {
        stream_line(stream);
        stream->begun = true;
        return;
    }
    rd_buffer_append(&stream->line, &byte, 1);
    if (stream->begun || rd_buffer_len(&stream->line) < 3) return;
    stream->begun = true; /* a byte order mark at the very beginning does not belong to the text */
    if (memcmp(rd_buffer_ptr(&stream->line), "\xef\xbb\xbf", 3) == 0)
        rd_buffer_consume(&stream->line, 3);
}

static inline void stream_feed(event_stream *stream, const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) stream_byte(stream, bytes[i]);
}

static inline void stream_clear(event_stream *stream) {
    rd_buffer *buffers[] = {&stream->line, &stream->data, &stream->type, &stream->id,
                            &stream->last_id};
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) rd_buffer_clear(buffers[i]);
}

#endif
