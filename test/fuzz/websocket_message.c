/* SPDX-License-Identifier: MIT
 *
 * Frames of a client. First byte: how many bytes at a time, whether permessage-deflate is on,
 * tight limits or wide ones. Holds: no crash; any cutting gives the same events, and an error at
 * the same byte; texts are UTF-8; a reader without an open message holds no memory, one with an
 * open message about what came of it.
 */
#include "fuzz.h"
#include "base/text.h"
#include "error_name.h"
#include "endpoint/websocket_message.h"
#include "endpoint/endpoint.h"

static const rd_ws_limits wide = {.message_bytes = 1 << 20, .fragments = 1000};
static const rd_ws_limits tight = {.message_bytes = 40, .fragments = 4};

typedef struct outcome {
    rd_buffer events;
    size_t fed; /* bytes up to the end of the piece that ended it */
    int ended;
} outcome;

static void check_text(rd_slice text) {
    rd_utf8 utf8 = {0};

    FUZZ_CHECK(rd_utf8_feed(&utf8, text.ptr, text.len) == text.len);
    FUZZ_CHECK(rd_utf8_is_boundary(&utf8));
}

static void check_event(int rc, const rd_ws_event *event, const rd_ws_limits *limits) {
    const size_t len = event->payload.len;

    switch (rc) {
    case RD_WS_EVENT_MESSAGE:
        FUZZ_CHECK(event->opcode == RD_WS_TEXT || event->opcode == RD_WS_BINARY);
        FUZZ_CHECK(len <= limits->message_bytes);
        if (event->opcode == RD_WS_TEXT) check_text(event->payload);
        break;
    case RD_WS_EVENT_CLOSE:
        FUZZ_CHECK(event->code == RD_WS_NO_CODE ? len == 0
                                                : rd_endpoint_is_close_code(event->code));
        FUZZ_CHECK(len <= RD_WS_REASON_MAX);
        check_text(event->payload);
        break;
    case RD_WS_EVENT_PING:
    case RD_WS_EVENT_PONG:
        FUZZ_CHECK(len <= RD_WS_CONTROL_MAX);
        break;
    default:
        FUZZ_CHECK(rd_error_class(rc) == RD_ERROR_FRAME);
    }
}

static void note(outcome *out, int rc, const rd_ws_event *event) {
    if (rc < 0) {
        rd_text_add(&out->events, "!%s\n", error_name(rc));
        return;
    }
    rd_text_add(&out->events, "%d %d %d %zu ", rc, rc == RD_WS_EVENT_MESSAGE ? event->opcode : 0,
                rc == RD_WS_EVENT_CLOSE ? event->code : 0, event->payload.len);
    rd_buffer_append(&out->events, event->payload.ptr, event->payload.len);
}

static void feed_piece(outcome *out, rd_ws_reader *reader, const rd_ws_limits *limits,
                       const char *bytes, size_t len) {
    char *copy = fuzz_copy(bytes, len);
    size_t at = 0, used;
    rd_ws_event event;
    int rc;

    do {
        rc = rd_ws_feed(reader, limits, copy + at, len - at, &used, &event);
        FUZZ_CHECK(used <= len - at);
        at += used;
        if (rc == RD_WS_EVENT_NONE) break;
        check_event(rc, &event, limits);
        note(out, rc, &event);
        out->ended |= rc < 0 || rc == RD_WS_EVENT_CLOSE;
    } while (1);
    FUZZ_CHECK(at == len);
    FUZZ_CHECK(reader->opcode != 0 || reader->frame.at > 0 || reader->buffer.bytes == NULL);
    free(copy);
}

static void feed_all(outcome *out, const rd_ws_limits *limits, const char *bytes, size_t len,
                     size_t step) {
    rd_ws_reader reader;

    memset(out, 0, sizeof *out);
    rd_ws_reader_init(&reader);
    while (out->fed < len && !out->ended) {
        const size_t left = len - out->fed, piece = left < step ? left : step;

        feed_piece(out, &reader, limits, bytes + out->fed, piece);
        out->fed += piece;
        FUZZ_CHECK(reader.buffer.capacity <=
                   2 * (limits->deflate ? limits->message_bytes : out->fed) + 512);
    }
    rd_ws_reader_clear(&reader);
}

static void check_same(const outcome *a, const outcome *b) {
    const size_t len = rd_buffer_len(&a->events);

    FUZZ_CHECK(a->ended == b->ended && len == rd_buffer_len(&b->events));
    FUZZ_CHECK(len == 0 || memcmp(rd_buffer_ptr(&a->events), rd_buffer_ptr(&b->events), len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    const uint8_t choice = len ? bytes[0] : 0;
    rd_ws_limits limits = choice & 0x80 ? tight : wide;
    const char *buf = (const char *)bytes + 1;
    outcome whole, pieces, single;

    if (len < 2 || len > 8192) return 0;
    len--;
    if (choice & 0x40) limits.deflate = rd_ws_deflate_new(0);
    feed_all(&whole, &limits, buf, len, len);
    feed_all(&pieces, &limits, buf, len, (choice & 0x1f) + 2u);
    feed_all(&single, &limits, buf, len, 1);
    check_same(&whole, &pieces);
    check_same(&whole, &single);
    rd_buffer_clear(&pieces.events);
    if (single.ended) { /* it ends there and not a byte earlier, whole as well */
        feed_all(&pieces, &limits, buf, single.fed - 1, len);
        FUZZ_CHECK(!pieces.ended);
        rd_buffer_clear(&pieces.events);
        feed_all(&pieces, &limits, buf, single.fed, len);
        check_same(&whole, &pieces);
        rd_buffer_clear(&pieces.events);
    }
    rd_buffer_clear(&whole.events);
    rd_buffer_clear(&single.events);
    rd_ws_deflate_free(limits.deflate);
    return 0;
}
