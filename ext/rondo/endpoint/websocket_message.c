/* SPDX-License-Identifier: MIT
 *
 * Messages out of frames; see websocket_message.h.
 *
 *   HEADER ─▶ PAYLOAD ─▶ HEADER        a complete frame gives an event, or is a fragment
 *      │         ├─▶ ENDED             a close
 *      ╰─────────┴─▶ ENDED             an error
 *
 * A payload that is fed in one piece is returned in place. The buffer holds other payloads, and
 * inflated ones: first the bytes of the open message, behind them those of a control frame that was
 * cut.
 */
#include "endpoint/websocket_message.h"

#include <assert.h>

#include "endpoint/endpoint.h"

enum { HEADER, PAYLOAD, ENDED };

_Static_assert(sizeof(rd_ws_reader) <= 64, "there are many idle connections");

void rd_ws_reader_init(rd_ws_reader *reader) {
    *reader = (rd_ws_reader){0};
}

static void end_inflating(rd_ws_reader *reader) {
    rd_ws_inflater_give(reader->inflater);
    reader->inflater = NULL;
}

void rd_ws_reader_clear(rd_ws_reader *reader) {
    end_inflating(reader);
    rd_buffer_clear(&reader->buffer);
    rd_ws_reader_init(reader);
}

static bool is_control(const rd_ws_reader *reader) {
    return rd_ws_is_control(reader->frame.opcode);
}

/* The next frame may begin. */
static void end_frame(rd_ws_reader *reader) {
    reader->frame = (rd_ws_frame){0};
    reader->done = 0;
    reader->state = HEADER;
}

/* Ignores all that follows. The buffer is freed at the next call, because an event may point into
 * it. */
static void end(rd_ws_reader *reader) {
    end_frame(reader);
    end_inflating(reader);
    reader->opcode = 0;
    reader->message = 0;
    reader->state = ENDED;
}

static uint32_t message_limit(const rd_ws_limits *limits) {
    return limits->message_bytes < RD_WS_MESSAGE_MAX ? limits->message_bytes : RD_WS_MESSAGE_MAX;
}

/*
 * How many more bytes the frames of the open message may have. Deflating makes some messages
 * longer, by an eighth at most in the worst encoder. The limit also applies to the inflated
 * message.
 */
static uint32_t bytes_left(const rd_ws_reader *reader, const rd_ws_limits *limits) {
    uint32_t limit = message_limit(limits), taken = reader->message;

    if (reader->compressed) {
        limit += limit / 8 + 64;
        taken = rd_ws_inflater_taken(reader->inflater);
    }
    return limit > taken ? limit - taken : 0;
}

static int begin_message(rd_ws_reader *reader) {
    if (reader->opcode != 0) return RD_ERR_WS_INTERLEAVED;
    reader->opcode = reader->frame.opcode & 0xfU;
    reader->compressed = reader->frame.rsv1;
    reader->fragments = 0;
    reader->utf8 = (rd_utf8){0};
    return 0;
}

/* Checks a data frame's header. A wrong frame, or one too many, fails before its payload is
 * there. */
static int begin_data(rd_ws_reader *reader, const rd_ws_limits *limits) {
    int rc = 0;

    if (reader->frame.opcode != RD_WS_CONTINUATION)
        rc = begin_message(reader);
    else if (reader->opcode == 0)
        rc = RD_ERR_WS_CONTINUATION;
    if (rc < 0) return rc;
    if (reader->fragments > 0 && reader->fragments >= limits->fragments) return RD_ERR_WS_FRAGMENTS;
    reader->fragments++;
    return reader->frame.length > bytes_left(reader, limits) ? RD_ERR_WS_MESSAGE_TOO_LARGE : 0;
}

static int begin_frame(rd_ws_reader *reader, const rd_ws_limits *limits) {
    reader->state = PAYLOAD;
    if (!is_control(reader)) return begin_data(reader, limits);
    if (reader->frame.opcode != RD_WS_CLOSE) return 0;
    reader->utf8 = (rd_utf8){0}; /* an open text is never finished now */
    return reader->frame.length == 1 ? RD_ERR_WS_CLOSE_LENGTH : 0;
}

static unsigned close_code(const char *payload) {
    return (unsigned)(uint8_t)payload[0] << 8 | (uint8_t)payload[1];
}

static bool is_text(rd_utf8 *utf8, const char *bytes, size_t len) {
    return rd_utf8_feed(utf8, bytes, len) == len;
}

/* Checks the payload of a close as far as it has been received. The bytes up to `checked` were
 * checked before. */
static int check_close(rd_ws_reader *reader, rd_slice payload, size_t checked) {
    if (payload.len < 2) return 0;
    if (checked < 2) {
        if (!rd_endpoint_is_close_code(close_code(payload.ptr))) return RD_ERR_WS_CLOSE_CODE;
        checked = 2;
    }
    return is_text(&reader->utf8, payload.ptr + checked, payload.len - checked)
               ? 0
               : RD_ERR_WS_NOT_UTF8;
}

static bool may_be_message(rd_ws_reader *reader, const char *bytes, size_t len) {
    return reader->opcode != RD_WS_TEXT || is_text(&reader->utf8, bytes, len);
}

/* Keeps inflated bytes. A byte above the limit only counts if the bytes before it are valid. */
static int keep_inflated(rd_ws_reader *reader, rd_slice bytes, uint32_t room) {
    const size_t len = bytes.len < room ? bytes.len : room;

    if (!may_be_message(reader, bytes.ptr, len)) return RD_ERR_WS_NOT_UTF8;
    if (bytes.len > room) return RD_ERR_WS_MESSAGE_TOO_LARGE;
    rd_buffer_append(&reader->buffer, bytes.ptr, len);
    reader->message += (uint32_t)len;
    return 0;
}

static int inflate_bytes(rd_ws_reader *reader, const rd_ws_limits *limits, rd_slice bytes) {
    rd_slice out;
    int rc, kept = 0;

    do {
        const uint32_t room = message_limit(limits) - reader->message;

        rc = rd_ws_inflate(reader->inflater, &bytes, (size_t)room + 1, &out);
        if (rc > 0) kept = keep_inflated(reader, out, room);
    } while (rc > 0 && kept == 0);
    return rc < 0 ? rc : kept;
}

/* The next piece of a compressed message. */
static int take_compressed(rd_ws_reader *reader, const rd_ws_limits *limits, rd_slice piece,
                           bool last, rd_slice *payload) {
    int rc;

    if (!reader->inflater) reader->inflater = rd_ws_inflater_take(limits->deflate);
    rc = inflate_bytes(reader, limits, piece);
    if (rc < 0 || !last) return rc;
    if (!rd_ws_inflater_is_complete(reader->inflater))
        rc = inflate_bytes(reader, limits, rd_ws_inflate_tail);
    if (rc < 0) return rc;
    if (!rd_ws_inflater_is_complete(reader->inflater)) return RD_ERR_WS_DEFLATE;
    end_inflating(reader);
    if (reader->message > 0)
        *payload = rd_slice_of(rd_buffer_ptr(&reader->buffer), reader->message);
    return 0;
}

/*
 * Takes the next piece of the frame's payload. Sets `payload` to all of the payload so far: in the
 * bytes fed if nothing came before, in the buffer otherwise.
 */
static int take_piece(rd_ws_reader *reader, const rd_ws_limits *limits, char *bytes, size_t len,
                      rd_slice *payload) {
    const bool control = is_control(reader), whole = reader->done + len == reader->frame.length;
    const size_t before = reader->done;
    size_t kept = control ? before : reader->message;

    if (!reader->frame.is_bare) rd_ws_mask(bytes, len, reader->frame.mask, before);
    reader->done += (uint32_t)len;
    if (!control && reader->compressed)
        return take_compressed(reader, limits, rd_slice_of(bytes, len), whole && reader->frame.fin,
                               payload);
    if (!control && !may_be_message(reader, bytes, len)) return RD_ERR_WS_NOT_UTF8;
    if (kept == 0 && whole && reader->frame.fin) {
        *payload = rd_slice_of(bytes, len);
    } else {
        rd_buffer_append(&reader->buffer, bytes, len);
        if (!control) reader->message += (uint32_t)len;
        kept += len;
        *payload = rd_slice_of(rd_buffer_ptr(&reader->buffer), rd_buffer_len(&reader->buffer));
        if (control) *payload = rd_slice_of(payload->ptr + (payload->len - kept), kept);
    }
    return reader->frame.opcode == RD_WS_CLOSE ? check_close(reader, *payload, before) : 0;
}

static int finish_message(rd_ws_reader *reader, rd_ws_event *event) {
    if (reader->opcode == RD_WS_TEXT && !rd_utf8_is_boundary(&reader->utf8))
        return RD_ERR_WS_NOT_UTF8;
    event->opcode = reader->opcode;
    event->is_ascii = reader->opcode == RD_WS_TEXT && !reader->utf8.has_more;
    reader->opcode = 0;
    reader->message = 0;
    return RD_WS_EVENT_MESSAGE;
}

static int finish_close(rd_ws_reader *reader, rd_ws_event *event) {
    if (!rd_utf8_is_boundary(&reader->utf8)) return RD_ERR_WS_NOT_UTF8;
    event->code = RD_WS_NO_CODE;
    if (event->payload.len >= 2) {
        event->code = (uint16_t)close_code(event->payload.ptr);
        event->payload = rd_slice_of(event->payload.ptr + 2, event->payload.len - 2);
    }
    end(reader);
    return RD_WS_EVENT_CLOSE;
}

/* The payload is complete: returns the event that it makes, if any. */
static int finish_frame(rd_ws_reader *reader, rd_ws_event *event) {
    const rd_ws_frame frame = reader->frame;

    if (frame.opcode == RD_WS_CLOSE) return finish_close(reader, event);
    end_frame(reader);
    if (frame.opcode == RD_WS_PING) return RD_WS_EVENT_PING;
    if (frame.opcode == RD_WS_PONG) return RD_WS_EVENT_PONG;
    return frame.fin ? finish_message(reader, event) : RD_WS_EVENT_NONE;
}

static int read_payload(rd_ws_reader *reader, const rd_ws_limits *limits, char *bytes, size_t len,
                        size_t *used, rd_ws_event *event) {
    const uint64_t left = reader->frame.length - reader->done;
    int rc;

    *used = left < len ? (size_t)left : len;
    rc = take_piece(reader, limits, bytes, *used, &event->payload);
    if (rc < 0 || reader->done < reader->frame.length) return rc;
    return finish_frame(reader, event);
}

static int read_header(rd_ws_reader *reader, const rd_ws_limits *limits, const char *bytes,
                       size_t len, size_t *used) {
    reader->frame.is_bare = limits->from_server;
    const int rc = rd_ws_frame_read(&reader->frame, limits->deflate != NULL, bytes, len, used);

    return rc > 0 ? begin_frame(reader, limits) : rc;
}

/* One step: to the end of a header, or of the present part of a payload. */
static int read_some(rd_ws_reader *reader, const rd_ws_limits *limits, char *bytes, size_t len,
                     size_t *used, rd_ws_event *event) {
    if (reader->state == HEADER) {
        const int rc = read_header(reader, limits, bytes, len, used);

        if (rc < 0 || reader->state == HEADER || reader->frame.length > 0) return rc;
        return read_payload(reader, limits, bytes + *used, 0, &(size_t){0}, event);
    }
    if (reader->state == PAYLOAD) return read_payload(reader, limits, bytes, len, used, event);
    *used = len;
    return RD_WS_EVENT_NONE;
}

int rd_ws_feed(rd_ws_reader *reader, const rd_ws_limits *limits, char *bytes, size_t len,
               size_t *used, rd_ws_event *event) {
    int rc = RD_WS_EVENT_NONE;
    size_t at = 0, step = 0;

    if (reader->state != PAYLOAD) rd_buffer_truncate(&reader->buffer, reader->message);
    while (rc == RD_WS_EVENT_NONE && at < len) {
        *event = (rd_ws_event){.payload = {bytes, 0}};
        rc = read_some(reader, limits, bytes + at, len - at, &step, event);
        at += step;
    }
    *used = at;
    if (rc < 0) {
        end(reader);
        rd_buffer_clear(&reader->buffer);
    }
    return rc;
}

bool rd_ws_reader_take(rd_ws_reader *reader, const rd_ws_event *event, rd_buffer *payload) {
    assert(reader->message == 0);
    if (reader->buffer.bytes == NULL || rd_buffer_ptr(&reader->buffer) != event->payload.ptr)
        return false;
    *payload = reader->buffer;
    reader->buffer = (rd_buffer){0};
    return true;
}
