/* SPDX-License-Identifier: MIT
 *
 * Events of a stream. First four bytes: which fields there are, how many bytes at a time, how long
 * name and id are. Holds: whatever the fields hold, a reader by the letter of the standard gets
 * exactly this one event and the next, in whatever pieces; the size said before is the size.
 */
#include "event_stream.h"
#include "fuzz.h"
#include "endpoint/sse_field.h"

#include "base/utf8.h"

enum { HAS_TYPE = 1, HAS_ID = 2, HAS_RETRY = 4, HAS_DATA = 8 };

typedef struct expectation {
    const rd_named_event *event;
    rd_slice data;
} expectation;

static void append(void *to, const char *bytes, size_t len) {
    rd_buffer_append(to, bytes, len);
}

static int is_same(const rd_buffer *actual, rd_slice expected) {
    return rd_slice_equal(stream_text(actual), expected.ptr ? expected : RD_SLICE(""));
}

static void check_event(event_stream *stream) {
    const expectation *expected = stream->with;
    if (stream->events == 1 && expected->data.ptr) {
        FUZZ_CHECK(is_same(&stream->data, expected->data));
        FUZZ_CHECK(is_same(&stream->type, expected->event->type));
    } else {
        FUZZ_CHECK(is_same(&stream->data, RD_SLICE("next")) && !rd_buffer_len(&stream->type));
    }
    FUZZ_CHECK(is_same(&stream->last_id, expected->event->id));
}

/* With LF for every end of a line; the same block, since it gets no longer. */
static size_t unify(char *text, size_t len) {
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) {
        const char byte = text[i];
        if (byte == '\r' && i + 1 < len && text[i + 1] == '\n') i++;
        text[kept++] = byte == '\r' ? '\n' : byte;
    }
    return kept;
}

static void read_in_pieces(const rd_buffer *bytes, size_t step, expectation *expected) {
    event_stream stream = {.on_event = check_event, .with = expected, .retry_ms = -1};
    const size_t len = rd_buffer_len(bytes);
    for (size_t at = 0; at < len; at += step) {
        stream_feed(&stream, rd_buffer_ptr(bytes) + at, len - at < step ? len - at : step);
    }
    FUZZ_CHECK(stream.events == (expected->data.ptr ? 2 : 1) && stream.comments == 0);
    FUZZ_CHECK(stream.retry_ms == expected->event->retry_ms);
    stream_clear(&stream);
}

static void check_round_trip(const rd_named_event *event, size_t step) {
    const rd_named_event next = {.data = RD_SLICE("next"), .retry_ms = -1};
    rd_buffer bytes = {0};
    char *data = fuzz_copy(event->data.ptr, event->data.len);
    expectation expected = {event, {event->data.ptr ? data : NULL, unify(data, event->data.len)}};
    rd_sse_write(event, append, &bytes);
    FUZZ_CHECK(rd_buffer_len(&bytes) == rd_sse_size(event));
    rd_sse_write(&next, append, &bytes);
    read_in_pieces(&bytes, rd_buffer_len(&bytes), &expected);
    read_in_pieces(&bytes, step, &expected);
    rd_buffer_clear(&bytes);
    free(data);
}

/* A line as the writer wants it, else none. */
static rd_slice line_of(const char *text, size_t len, int wanted) {
    const rd_slice line = rd_slice_of(text, len);
    const int has_end = memchr(text, '\r', len) || memchr(text, '\n', len) || memchr(text, 0, len);
    FUZZ_CHECK(!rd_utf8_is_line(line) || !has_end);
    return wanted && rd_utf8_is_line(line) ? line : rd_slice_of(NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (len < 4 || len > 4096) return 0;
    const uint8_t *head = bytes;
    bytes += 4;
    len -= 4;
    const size_t type_len = head[2] < len ? head[2] : len;
    const size_t id_len = head[3] < len - type_len ? head[3] : len - type_len;
    char *type = fuzz_copy(bytes, type_len);
    char *id = fuzz_copy(bytes + type_len, id_len);
    char *data = fuzz_copy(bytes + type_len + id_len, len - type_len - id_len);
    rd_named_event event = {
        .type = line_of(type, type_len, head[0] & HAS_TYPE),
        .id = line_of(id, id_len, head[0] & HAS_ID),
        .retry_ms = head[0] & HAS_RETRY ? head[1] * 1000003 : -1,
    };
    if (head[0] & HAS_DATA) event.data = rd_slice_of(data, len - type_len - id_len);
    if (rd_utf8_is_text(event.data)) check_round_trip(&event, head[1] % 24 + 1u);
    free(type);
    free(id);
    free(data);
    return 0;
}
