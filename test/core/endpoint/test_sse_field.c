/* SPDX-License-Identifier: MIT
 *
 * endpoint/sse_field: the bytes of events, and what a reader makes of them.
 */
#include "check.h"
#include "event_stream.h"
#include "endpoint/sse_field.h"

#include "base/utf8.h"
#include "pubsub/message.h"

#define TEXT(literal) RD_SLICE_INIT(literal)

typedef struct row {
    rd_named_event event;
    rd_slice bytes;
    rd_slice data; /* the event that arrives; NULL: none */
} row;

#define DATA(text, bytes, arrives)                                                                 \
    { {.retry_ms = -1, .data = TEXT(text)}, TEXT(bytes), TEXT(arrives) }

static const row rows[] = {
    DATA("hello", "data: hello\n\n", "hello"),
    DATA("", "data: \n\n", ""),
    DATA("a\nb", "data: a\ndata: b\n\n", "a\nb"),
    DATA("a\rb", "data: a\ndata: b\n\n", "a\nb"),
    DATA("a\r\nb", "data: a\ndata: b\n\n", "a\nb"),
    DATA("a\n\rb", "data: a\ndata: \ndata: b\n\n", "a\n\nb"),
    DATA("\r\r\n\n", "data: \ndata: \ndata: \ndata: \n\n", "\n\n\n"),
    DATA("a\n", "data: a\ndata: \n\n", "a\n"),
    DATA("a\r", "data: a\ndata: \n\n", "a\n"),
    DATA("a\r\n", "data: a\ndata: \n\n", "a\n"),
    DATA(" a", "data:  a\n\n", " a"),
    DATA("id: 7\nevent: x", "data: id: 7\ndata: event: x\n\n", "id: 7\nevent: x"),
    DATA("a\0b", "data: a\0b\n\n", "a\0b"),
    DATA("\xef\xbb\xbf"
         "bom",
         "data: \xef\xbb\xbf"
         "bom\n\n",
         "\xef\xbb\xbf"
         "bom"),
    DATA("h\xc3\xa4llo \xe2\x80\xa8", "data: h\xc3\xa4llo \xe2\x80\xa8\n\n",
         "h\xc3\xa4llo \xe2\x80\xa8"),
    {{.type = TEXT("tick"), .id = TEXT("7"), .retry_ms = 1500, .data = TEXT("x")},
     TEXT("id: 7\nevent: tick\nretry: 1500\ndata: x\n\n"),
     TEXT("x")},
    {{.type = TEXT(""), .id = TEXT(""), .retry_ms = 0, .data = TEXT("x")},
     TEXT("id: \nevent: \nretry: 0\ndata: x\n\n"),
     TEXT("x")},
    {{.type = TEXT(" a:b"), .id = TEXT(" "), .retry_ms = INT64_MAX, .data = TEXT(":")},
     TEXT("id:  \nevent:  a:b\nretry: 9223372036854775807\ndata: :\n\n"),
     TEXT(":")},
    {{.id = TEXT("7"), .retry_ms = 1}, TEXT("id: 7\nretry: 1\n\n"), {NULL, 0}},
    {{.retry_ms = -1}, TEXT("\n"), {NULL, 0}},
};

static void append(void *to, const char *bytes, size_t len) {
    rd_buffer_append(to, bytes, len);
}

static void check_same(rd_slice actual, rd_slice expected) {
    CHECK_SAYS(rd_slice_equal(actual, expected), "\"%.*s\" is not \"%.*s\"", (int)actual.len,
               actual.ptr, (int)expected.len, expected.ptr);
}

static void check_event(event_stream *stream) {
    const row *row = stream->with;
    check_same(stream_text(&stream->data), row->data);
    check_same(stream_text(&stream->type), row->event.type.ptr ? row->event.type : RD_SLICE(""));
}

static void check_row(const row *row) {
    rd_buffer written = {0};
    event_stream stream = {.on_event = check_event, .with = (void *)(uintptr_t)row, .retry_ms = -1};
    rd_sse_write(&row->event, append, &written);
    check_same(stream_text(&written), row->bytes);
    CHECK_INT(rd_sse_size(&row->event), row->bytes.len);
    stream_feed(&stream, rd_buffer_ptr(&written), rd_buffer_len(&written));
    CHECK_INT(stream.events, row->data.ptr ? 1 : 0);
    check_same(stream_text(&stream.last_id), row->event.id.ptr ? row->event.id : RD_SLICE(""));
    if (row->event.retry_ms < INT64_MAX / 10) CHECK_INT(stream.retry_ms, row->event.retry_ms);
    stream_clear(&stream);
    rd_buffer_clear(&written);
}

static void test_what_is_refused(void) {
    CHECK(rd_utf8_is_line(RD_SLICE("")) && rd_utf8_is_line(RD_SLICE("a: \xc3\xa4")));
    CHECK(!rd_utf8_is_line(RD_SLICE("a\r")) && !rd_utf8_is_line(RD_SLICE("\na")));
    CHECK(!rd_utf8_is_line(RD_SLICE("a\0")) && !rd_utf8_is_line(RD_SLICE("a\xff")));
    CHECK(rd_utf8_is_text(RD_SLICE("a\0\r\n\xf0\x9f\x98\x80")) && rd_utf8_is_text(RD_SLICE("")));
    CHECK(!rd_utf8_is_text(RD_SLICE("\xed\xa0\x80")) && !rd_utf8_is_text(RD_SLICE("\xc3")));
}

static void check_message(uint64_t id, bool is_text, const char *bytes) {
    rd_message *message = rd_message_new(RD_SLICE("news"), RD_SLICE("a\nb"), is_text, id);
    rd_encoding *encoding = rd_message_encoding(message, RD_ENCODING_SSE, rd_sse_encode, NULL);
    if (CHECK(encoding != NULL))
        check_same(rd_encoding_bytes(encoding), rd_slice_of(bytes, strlen(bytes)));
    rd_message_unref(message);
}

static void test_messages(void) {
    check_message(0, true, "data: a\ndata: b\n\n");
    check_message(0, false, "data: a\ndata: b\n\n");
    check_message(UINT64_MAX, true, "id: 18446744073709551615\ndata: a\ndata: b\n\n");
    rd_message *message = rd_message_new(RD_SLICE("news"), RD_SLICE("\xff"), false, 1);
    CHECK(rd_message_encoding(message, RD_ENCODING_SSE, rd_sse_encode, NULL) == NULL);
    rd_message_unref(message);
    message = rd_message_new(RD_SLICE("news"), rd_slice_of(NULL, 0), true, 0);
    rd_encoding *encoding = rd_message_encoding(message, RD_ENCODING_SSE, rd_sse_encode, NULL);
    if (CHECK(encoding != NULL)) check_same(rd_encoding_bytes(encoding), RD_SLICE("data: \n\n"));
    rd_message_unref(message);
}

/* An id would be ahead of messages of the client's other channels. */
static void test_what_is_missing_has_no_id(void) {
    rd_message *message = rd_message_new(RD_SLICE("news"), RD_SLICE(""), true, 7);
    message->is_gap = true;
    rd_encoding *encoding = rd_message_encoding(message, RD_ENCODING_SSE, rd_sse_encode, NULL);
    if (CHECK(encoding != NULL))
        check_same(rd_encoding_bytes(encoding), RD_SLICE("event: reset\ndata: news\n\n"));
    rd_message_unref(message);
}

int main(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
    test_what_is_refused();
    test_messages();
    test_what_is_missing_has_no_id();
    return check_summary();
}
