/* SPDX-License-Identifier: MIT
 *
 * The payload of a compressed message. First byte: how many bytes at a time, text or binary;
 * second: the limit. Holds: any cutting gives the same message, or the same error at the same byte;
 * never more comes out than the limit; text is UTF-8; packed and inflated again it is the same.
 */
#include "fuzz.h"
#include "base/alloc.h"
#include "endpoint/websocket_deflate.h"
#include "endpoint/websocket_message.h"

static rd_ws_deflate *shared;

typedef struct outcome {
    rd_buffer message;
    size_t fed; /* bytes up to the end of the fragment that ended it */
    int rc;
    bool early; /* before its end */
} outcome;

static int feed(rd_ws_reader *reader, const rd_ws_limits *limits, unsigned first,
                const uint8_t *payload, size_t len, rd_buffer *message) {
    const size_t extended = len < 126 ? 0 : 2;
    uint8_t *frame = rd_alloc_zero(6 + extended + len);
    rd_ws_event event;
    size_t used;
    int rc;

    frame[0] = (uint8_t)first;
    frame[1] = (uint8_t)(0x80 | (extended ? 126 : len));
    if (extended) frame[2] = (uint8_t)(len >> 8), frame[3] = (uint8_t)len;
    memcpy(frame + 6 + extended, payload, len);
    rc = rd_ws_feed(reader, limits, (char *)frame, 6 + extended + len, &used, &event);
    if (rc == RD_WS_EVENT_MESSAGE && !rd_ws_reader_take(reader, &event, message))
        rd_buffer_append(message, event.payload.ptr, event.payload.len);
    rd_free(frame);
    return rc;
}

/* The message in fragments of `step` bytes, then, if nothing is wrong, its end. */
static void inflate_in(outcome *out, const rd_ws_limits *limits, unsigned opcode,
                       const uint8_t *bytes, size_t len, size_t step, bool end) {
    rd_ws_reader reader;

    memset(out, 0, sizeof *out);
    rd_ws_reader_init(&reader);
    while (out->fed < len && out->rc == 0) {
        const size_t piece = len - out->fed < step ? len - out->fed : step;

        out->rc = feed(&reader, limits, out->fed ? 0 : 0x40 | opcode, bytes + out->fed, piece,
                       &out->message);
        out->fed += piece;
        FUZZ_CHECK(reader.message <= limits->message_bytes);
        FUZZ_CHECK(reader.buffer.capacity <= 2 * limits->message_bytes + 512);
    }
    out->early = out->rc != 0;
    if (end && out->rc == 0) {
        out->rc = feed(&reader, limits, len ? 0x80 : 0xc0 | opcode, bytes, 0, &out->message);
        FUZZ_CHECK(out->rc != 0);
    }
    if (out->rc != 0) FUZZ_CHECK(reader.inflater == NULL && reader.buffer.bytes == NULL);
    rd_ws_reader_clear(&reader);
}

static bool is_same(const rd_buffer *a, const char *bytes, size_t len) {
    return rd_buffer_len(a) == len && (len == 0 || memcmp(rd_buffer_ptr(a), bytes, len) == 0);
}

static void check_same(const outcome *a, const outcome *b) {
    FUZZ_CHECK(a->rc == b->rc);
    FUZZ_CHECK(is_same(&a->message, rd_buffer_ptr(&b->message), rd_buffer_len(&b->message)));
}

/* It fails at that byte and not at an earlier one, whole as well. */
static void check_early(const outcome *single, const rd_ws_limits *limits, unsigned opcode,
                        const uint8_t *bytes) {
    outcome whole;

    inflate_in(&whole, limits, opcode, bytes, single->fed - 1, single->fed, false);
    FUZZ_CHECK(whole.rc == 0);
    inflate_in(&whole, limits, opcode, bytes, single->fed, single->fed, false);
    FUZZ_CHECK(whole.rc == single->rc);
}

static void check_message(const outcome *out, const rd_ws_limits *limits, unsigned opcode) {
    const rd_slice bytes = rd_slice_of(rd_buffer_ptr(&out->message), rd_buffer_len(&out->message));
    rd_utf8 utf8 = {0};
    outcome again;
    rd_slice packed;

    if (out->rc < 0) {
        FUZZ_CHECK(rd_error_class(out->rc) == RD_ERROR_FRAME && bytes.len == 0);
        return;
    }
    FUZZ_CHECK(bytes.len <= limits->message_bytes);
    if (opcode == RD_WS_TEXT) {
        FUZZ_CHECK(rd_utf8_feed(&utf8, bytes.ptr, bytes.len) == bytes.len);
        FUZZ_CHECK(rd_utf8_is_boundary(&utf8));
    }
    for (unsigned bits = RD_WS_WINDOW_MIN; bits <= RD_WS_WINDOW_MAX; bits++) {
        packed = rd_ws_deflate_pack(shared, bits, bytes);
        if (!packed.ptr) continue;
        FUZZ_CHECK(packed.len < bytes.len);
        inflate_in(&again, limits, opcode, (const uint8_t *)packed.ptr, packed.len, 1000, true);
        check_same(out, &again);
        rd_buffer_clear(&again.message);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    const unsigned opcode = len && bytes[0] & 0x80 ? RD_WS_BINARY : RD_WS_TEXT;
    rd_ws_limits limits = {.fragments = UINT32_MAX};
    outcome whole, pieces, single;

    if (len < 2 || len > 4096) return 0;
    limits.message_bytes = bytes[1] < 0xf0 ? 16U * bytes[1] : 65536;
    limits.deflate = shared = rd_ws_deflate_new(0);
    inflate_in(&whole, &limits, opcode, bytes + 2, len - 2, len, true);
    inflate_in(&pieces, &limits, opcode, bytes + 2, len - 2, (bytes[0] & 0x7fU) + 2, true);
    inflate_in(&single, &limits, opcode, bytes + 2, len - 2, 1, true);
    /* A frame longer than the limit allows is refused by its header, before its bytes are seen. */
    if (len - 2 <= limits.message_bytes) {
        check_same(&whole, &single);
        check_same(&pieces, &single);
        if (single.early) check_early(&single, &limits, opcode, bytes + 2);
    }
    rd_buffer_clear(&whole.message);
    rd_buffer_clear(&pieces.message);
    check_message(&single, &limits, opcode);
    rd_buffer_clear(&single.message);
    rd_ws_deflate_free(shared);
    return 0;
}
