/* SPDX-License-Identifier: MIT
 *
 * Headers of frames as they come; see http2_frames.h.
 */
#include "http2/http2_frames.h"

#include <string.h>

#define PREFACE_BYTES 24

/* Types of frames and flags: RFC 9113, section 6. */
enum { DATA = 0, HEADERS = 1, PRIORITY = 2, RST_STREAM = 3, WINDOW_UPDATE = 8, CONTINUATION = 9 };
enum { END_STREAM = 1, END_HEADERS = 4 };

void rd_http2_frames_init(rd_http2_frames *frames) {
    *frames = (rd_http2_frames){.skip = PREFACE_BYTES};
}

static uint32_t length_of(const uint8_t *header) {
    return (uint32_t)header[0] << 16 | (uint32_t)header[1] << 8 | header[2];
}

static uint32_t stream_of(const uint8_t *header) {
    return (uint32_t)(header[5] & 0x7f) << 24 | (uint32_t)header[6] << 16 |
           (uint32_t)header[7] << 8 | header[8];
}

/* ---- frames that carry nothing ---- */

static bool is_forgotten(const rd_http2_frames *frames, uint32_t id) {
    return frames->last - id >= 2 * RD_HTTP2_REMEMBERED;
}

/* The library decodes every head, and does not tell of one that opens no stream. Trailers are worth
 * something. */
static bool is_idle_head(const rd_http2_frames *frames, const uint8_t *header) {
    const uint32_t id = stream_of(header);
    if (id > frames->last) return frames->opens_none;
    return (header[4] & END_STREAM) == 0 || is_forgotten(frames, id);
}

/* A WINDOW_UPDATE is worth something or not by what is in it. A client that has much to say needs a
 * few CONTINUATIONs, but not many. */
static bool carries_nothing(const rd_http2_frames *frames, const uint8_t *header) {
    switch (header[3]) {
    case HEADERS:
        return is_idle_head(frames, header);
    case WINDOW_UPDATE:
        return false;
    case DATA:
        return length_of(header) == 0 && (header[4] & END_STREAM) == 0;
    default:
        return true;
    }
}

/* ---- streams ---- */

static bool is_set(const uint8_t *bits, uint32_t id) {
    const uint32_t at = id / 2 % RD_HTTP2_REMEMBERED;
    return (bits[at / 8] >> at % 8 & 1) != 0;
}

static void set(uint8_t *bits, uint32_t id) {
    const uint32_t at = id / 2 % RD_HTTP2_REMEMBERED;
    bits[at / 8] = (uint8_t)(bits[at / 8] | 1U << at % 8);
}

static void clear(uint8_t *bits, uint32_t id) {
    const uint32_t at = id / 2 % RD_HTTP2_REMEMBERED;
    bits[at / 8] = (uint8_t)(bits[at / 8] & ~(1U << at % 8));
}

/* Those between the last stream and this one will never be opened. */
static void open_stream(rd_http2_frames *frames, uint32_t id) {
    const uint32_t gap = (id - frames->last) / 2;
    for (uint32_t i = 0; i <= gap && i < RD_HTTP2_REMEMBERED; i++) {
        if (id - 2 * i == frames->last) break;
        clear(frames->opened, id - 2 * i);
        clear(frames->ended, id - 2 * i);
    }
    set(frames->opened, id);
    frames->last = id;
}

/* A stream that the server has reset may still get frames that were on their way. */
static rd_http2_fault check_stream(rd_http2_frames *frames, const uint8_t *header) {
    const uint32_t id = stream_of(header);
    const uint8_t type = header[3];
    if (type == PRIORITY) return id == 0 ? RD_HTTP2_MISPLACED : RD_HTTP2_FINE;
    if ((type != DATA && type != HEADERS && type != RST_STREAM) || id % 2 == 0)
        return RD_HTTP2_FINE; /* what is wrong with it the library says */
    if (id > frames->last) {
        if (type != HEADERS) return RD_HTTP2_FINE; /* here too */
        open_stream(frames, id);
    }
    if (is_forgotten(frames, id)) return RD_HTTP2_FINE;
    if (type != RST_STREAM && !is_set(frames->opened, id))
        return type == HEADERS ? RD_HTTP2_MISPLACED : RD_HTTP2_CLOSED;
    if (type != RST_STREAM && is_set(frames->ended, id)) return RD_HTTP2_CLOSED;
    if (type == RST_STREAM || (header[4] & END_STREAM) != 0) set(frames->ended, id);
    return RD_HTTP2_FINE;
}

/* ---- headers ---- */

static rd_http2_fault check(rd_http2_frames *frames, rd_http2_account *account, uint64_t now_ms) {
    const uint8_t *header = frames->header, type = header[3];
    const bool costs = carries_nothing(frames, header); /* before it opens its stream */
    const rd_http2_fault fault = frames->in_block ? RD_HTTP2_FINE : check_stream(frames, header);
    if (type == HEADERS || type == CONTINUATION) {
        frames->in_block = (header[4] & END_HEADERS) == 0;
    }
    if (fault != RD_HTTP2_FINE || !costs) return fault;
    return rd_http2_account_charge(account, now_ms) ? RD_HTTP2_FINE : RD_HTTP2_FLOOD;
}

/* ---- pieces ---- */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* What a body may add to a piece, and what it weighs. */
static size_t payload_of(uint8_t type, size_t left, size_t weight) {
    return type == DATA ? left : least(left, weight < RD_HTTP2_PIECE ? RD_HTTP2_PIECE - weight : 0);
}

size_t rd_http2_frames_piece(const rd_http2_frames *frames, const char *bytes, size_t len) {
    if (frames->header_len > 0) return least(len, RD_HTTP2_PIECE);
    size_t left = frames->skip;
    size_t at = least(len, payload_of(frames->header[3], left, 0));
    size_t weight = frames->header[3] == DATA ? 0 : at;
    while (at >= left && at < len && weight < RD_HTTP2_PIECE) {
        if (len - at < RD_HTTP2_HEADER_LEN) return len;
        const uint8_t *header = (const uint8_t *)bytes + at;
        const size_t length = length_of(header);
        at += RD_HTTP2_HEADER_LEN;
        weight += RD_HTTP2_HEADER_LEN;
        left = at + length;
        const size_t part = least(len - at, payload_of(header[3], length, weight));
        at += part;
        if (header[3] != DATA) weight += part;
    }
    return at;
}

/* ---- reading ---- */

static size_t skip(rd_http2_frames *frames, size_t len) {
    const size_t part = frames->skip < len ? frames->skip : len;
    frames->skip -= (uint32_t)part;
    return part;
}

static size_t read_header(rd_http2_frames *frames, const char *bytes, size_t len) {
    const size_t missing = RD_HTTP2_HEADER_LEN - frames->header_len;
    const size_t part = missing < len ? missing : len;
    memcpy(frames->header + frames->header_len, bytes, part);
    frames->header_len = (uint8_t)(frames->header_len + part);
    return part;
}

size_t rd_http2_frames_read(rd_http2_frames *frames, rd_http2_account *account, uint64_t now_ms,
                            const char *bytes, size_t len, rd_http2_fault *fault) {
    *fault = RD_HTTP2_FINE;
    for (size_t at = skip(frames, len); at < len; at += skip(frames, len - at)) {
        const size_t before = at;
        at += read_header(frames, bytes + at, len - at);
        if (frames->header_len < RD_HTTP2_HEADER_LEN) break;
        frames->header_len = 0;
        frames->skip = length_of(frames->header);
        *fault = check(frames, account, now_ms);
        if (*fault != RD_HTTP2_FINE) return before;
    }
    return len;
}
