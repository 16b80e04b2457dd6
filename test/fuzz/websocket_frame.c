/* SPDX-License-Identifier: MIT
 *
 * One frame header. First byte: how many bytes at a time, whether permessage-deflate is on. Holds:
 * any cutting gives the same answer at the same byte; an accepted header is the only one that says
 * what it says, so writing it again gives the same bytes; a mask put on twice is none.
 */
#include "fuzz.h"
#include "endpoint/websocket_frame.h"

static int read_header(rd_ws_frame *frame, int deflate, const char *bytes, size_t len, size_t step,
                       size_t *taken) {
    size_t used;
    int rc = 0;

    *frame = (rd_ws_frame){0};
    for (*taken = 0; rc == 0 && *taken < len; *taken += used) {
        const size_t left = len - *taken, piece = left < step ? left : step;
        char *copy = fuzz_copy(bytes + *taken, piece);

        rc = rd_ws_frame_read(frame, deflate, copy, piece, &used);
        free(copy);
        FUZZ_CHECK(rc == 0 ? used == piece : used <= piece);
    }
    return rc;
}

/* What a server writes is what the client wrote, but for the mask; and FIN is always set. */
static void check_written(const rd_ws_frame *frame, const char *bytes, size_t len) {
    char header[RD_WS_HEADER_MAX];
    const size_t written = rd_ws_header_write(header, frame->opcode, frame->rsv1, frame->length);

    FUZZ_CHECK(written + sizeof frame->mask == len);
    FUZZ_CHECK((uint8_t)header[0] == ((uint8_t)bytes[0] | 0x80));
    FUZZ_CHECK((uint8_t)header[1] == ((uint8_t)bytes[1] & 0x7f));
    FUZZ_CHECK(memcmp(header + 2, bytes + 2, written - 2) == 0);
    FUZZ_CHECK(memcmp(frame->mask, bytes + written, sizeof frame->mask) == 0);
    FUZZ_CHECK(frame->fin || !rd_ws_is_control(frame->opcode));
}

static void check_mask(const rd_ws_frame *frame, const char *bytes, size_t len, size_t step) {
    char *whole = fuzz_copy(bytes, len), *pieces = fuzz_copy(bytes, len);

    rd_ws_mask(whole, len, frame->mask, 0);
    for (size_t at = 0; at < len; at += step)
        rd_ws_mask(pieces + at, len - at < step ? len - at : step, frame->mask, at);
    FUZZ_CHECK(memcmp(whole, pieces, len) == 0);
    rd_ws_mask(whole, len, frame->mask, 0);
    FUZZ_CHECK(memcmp(whole, bytes, len) == 0);
    free(whole);
    free(pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    const uint8_t choice = len ? bytes[0] : 0;
    const size_t step = (choice & 0x0f) + 1u;
    const int deflate = (choice & 0x40) != 0;
    const char *buf = (const char *)bytes + 1;
    rd_ws_frame whole, pieces;
    size_t taken, again;
    int rc;

    if (len < 2 || len > 1024) return 0;
    len--;
    rc = read_header(&whole, deflate, buf, len, len, &taken);
    FUZZ_CHECK(read_header(&pieces, deflate, buf, len, step, &again) == rc && again == taken);
    if (rc < 0) FUZZ_CHECK(rd_error_status(rc) == 1002);
    if (rc <= 0) return 0;
    FUZZ_CHECK(whole.length == pieces.length && whole.opcode == pieces.opcode);
    FUZZ_CHECK(whole.fin == pieces.fin && whole.rsv1 == pieces.rsv1);
    check_written(&whole, buf, taken);
    check_mask(&whole, buf + taken, len - taken, step);
    return 0;
}
