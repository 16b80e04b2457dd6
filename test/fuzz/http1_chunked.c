/* SPDX-License-Identifier: MIT
 *
 * Chunked bodies. First byte: how many bytes at a time. Holds: no crash; any cutting gives the same
 * end at the same byte and the same body; a decoded body, coded again, decodes to the same.
 */
#include "fuzz.h"
#include "default_limits.h"
#include "protocol/http1_chunked.h"

typedef struct outcome {
    int rc;
    size_t taken;
    char *body;
    size_t body_len;
} outcome;

static rd_head_limits limits_for(uint8_t choice) {
    rd_head_limits limits = default_limits;

    if (choice & 0x80) {
        limits.header_name_bytes = 10;
        limits.header_value_bytes = 20;
        limits.header_count = 3;
        limits.trailer_bytes = 60;
        limits.chunk_line_bytes = 20;
        limits.chunk_extension_bytes = 40;
    }
    return limits;
}

/* One piece of input; true while the body goes on. */
static int decode_piece(outcome *out, rd_http1_chunked *chunked, const rd_head_limits *limits,
                        const char *buf, size_t len) {
    char *copy = fuzz_copy(buf, len);
    size_t at = 0, used;
    rd_slice data;

    do {
        out->rc = rd_http1_chunked_next(chunked, limits, copy + at, len - at, &used, &data);
        FUZZ_CHECK(used <= len - at);
        FUZZ_CHECK((out->rc == RD_CHUNKED_DATA) == (data.len > 0));
        FUZZ_CHECK(data.len == 0 || data.ptr + data.len == copy + at + used);
        if (data.len) memcpy(out->body + out->body_len, data.ptr, data.len);
        out->body_len += data.len;
        at += used;
    } while (out->rc == RD_CHUNKED_DATA && at < len);
    FUZZ_CHECK(out->rc < 0 || out->rc == RD_CHUNKED_DONE || at == len);
    out->taken += at;
    free(copy);
    return out->rc == RD_CHUNKED_MORE || out->rc == RD_CHUNKED_DATA;
}

static void decode(outcome *out, const rd_head_limits *limits, const char *buf, size_t len,
                   size_t step) {
    rd_http1_chunked chunked;

    rd_http1_chunked_init(&chunked);
    out->body = fuzz_copy(buf, len);
    out->taken = out->body_len = 0;
    while (out->taken < len) {
        const size_t left = len - out->taken;

        if (!decode_piece(out, &chunked, limits, buf + out->taken, left < step ? left : step))
            break;
    }
    FUZZ_CHECK(chunked.total == out->body_len);
}

static void check_recoded(const outcome *out) {
    char *text = malloc(out->body_len + 64);
    size_t len = 0;
    outcome again;

    FUZZ_CHECK(text);
    if (out->body_len) {
        len = (size_t)sprintf(text, "%zX\r\n", out->body_len);
        memcpy(text + len, out->body, out->body_len);
        len += out->body_len;
        memcpy(text + len, "\r\n", 2);
        len += 2;
    }
    memcpy(text + len, "0\r\n\r\n", 5);
    len += 5;
    decode(&again, &default_limits, text, len, len);
    FUZZ_CHECK(again.rc == RD_CHUNKED_DONE && again.taken == len);
    FUZZ_CHECK(again.body_len == out->body_len);
    FUZZ_CHECK(memcmp(again.body, out->body, out->body_len) == 0);
    free(again.body);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    const uint8_t choice = len ? bytes[0] : 0;
    const rd_head_limits limits = limits_for(choice);
    const char *buf = (const char *)bytes + 1;
    outcome whole, pieces;

    if (len < 2 || len > 8192) return 0;
    len--;
    decode(&whole, &limits, buf, len, len);
    decode(&pieces, &limits, buf, len, (choice & 0x0f) + 1u);
    FUZZ_CHECK(whole.rc == pieces.rc || (whole.rc >= 0 && whole.rc < RD_CHUNKED_DONE &&
                                         pieces.rc >= 0 && pieces.rc < RD_CHUNKED_DONE));
    FUZZ_CHECK(whole.taken == pieces.taken && whole.body_len == pieces.body_len);
    FUZZ_CHECK(memcmp(whole.body, pieces.body, whole.body_len) == 0);
    if (whole.rc == RD_CHUNKED_DONE) check_recoded(&whole);
    free(whole.body);
    free(pieces.body);
    return 0;
}
