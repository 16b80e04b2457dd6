/* SPDX-License-Identifier: MIT
 *
 * Frames between processes. First byte: how many bytes at a time. Holds: no crash; any cutting
 * gives the same frames and the same end; a frame, written again, is the bytes it was read from;
 * nothing is kept beyond a frame within its limits.
 */
#include "fuzz.h"
#include "pubsub/relay.h"

enum { PAYLOAD_MAX = 300, FRAME_MAX = 16 + 1024 + PAYLOAD_MAX };

typedef struct outcome {
    int rc;
    size_t frames;
    rd_buffer written; /* all frames, written again */
} outcome;

static void read_piece(outcome *out, rd_relay_reader *reader, const uint8_t *bytes, size_t len) {
    char *copy = fuzz_copy(bytes, len);
    size_t at = 0, used;
    rd_relay_frame frame;

    while ((out->rc = rd_relay_read(reader, copy + at, len - at, &used, &frame)) == 1) {
        FUZZ_CHECK(used <= len - at);
        FUZZ_CHECK(rd_relay_write(&frame, PAYLOAD_MAX, &out->written) == 0);
        at += used;
        out->frames++;
    }
    FUZZ_CHECK(out->rc < 0 || at + used == len);
    FUZZ_CHECK(rd_buffer_len(&reader->kept) <= FRAME_MAX);
    free(copy);
}

static void read_all(outcome *out, const uint8_t *bytes, size_t len, size_t step) {
    rd_relay_reader reader;

    *out = (outcome){0};
    rd_relay_reader_init(&reader, PAYLOAD_MAX);
    for (size_t at = 0; at < len && out->rc >= 0; at += step) {
        read_piece(out, &reader, bytes + at, len - at < step ? len - at : step);
    }
    rd_relay_reader_clear(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    outcome whole, pieces;

    if (len < 2 || len > 16384) return 0;
    const size_t step = bytes[0] + 1u;
    bytes++;
    len--;
    read_all(&whole, bytes, len, len);
    read_all(&pieces, bytes, len, step);
    const size_t written = rd_buffer_len(&whole.written);
    FUZZ_CHECK(whole.rc == pieces.rc && whole.frames == pieces.frames);
    FUZZ_CHECK(written == rd_buffer_len(&pieces.written) && written <= len);
    if (written > 0) {
        FUZZ_CHECK(memcmp(rd_buffer_ptr(&whole.written), bytes, written) == 0);
        FUZZ_CHECK(memcmp(rd_buffer_ptr(&pieces.written), bytes, written) == 0);
    }
    rd_buffer_clear(&whole.written);
    rd_buffer_clear(&pieces.written);
    return 0;
}
