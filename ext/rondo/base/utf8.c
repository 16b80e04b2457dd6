/* SPDX-License-Identifier: MIT
 *
 * Validation of UTF-8; see utf8.h. Table 3-7 of the Unicode standard says which bytes may follow a
 * lead byte: only the range of the second byte ever differs from 80..bf.
 */
#include "base/utf8.h"

#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

static uint64_t high_bits(const char *bytes) {
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word & HIGH_BITS;
}

/* Returns the offset behind the ASCII bytes from `at` on, as far as it can see by whole words. The
 * last word of a text may overlap the one before. */
static size_t skip_ascii(const char *bytes, size_t at, size_t len) {
    while (len - at >= 4 * sizeof(uint64_t)) {
        if (high_bits(bytes + at) | high_bits(bytes + at + 8) | high_bits(bytes + at + 16) |
            high_bits(bytes + at + 24))
            break;
        at += 4 * sizeof(uint64_t);
    }
    while (len - at >= sizeof(uint64_t)) {
        if (high_bits(bytes + at)) return at;
        at += sizeof(uint64_t);
    }
    if (len < sizeof(uint64_t) || high_bits(bytes + len - sizeof(uint64_t))) return at;
    return len;
}

/*
 * The length of the character at `bytes`, or 0 when it is not a valid one of two bytes or more.
 * Reads up to four bytes. Going byte by byte would take about twice as long for such texts.
 */
static size_t character_len(const uint8_t *bytes) {
    const uint32_t first = bytes[0], second = bytes[1] ^ 0x80u, third = bytes[2] ^ 0x80u,
                   fourth = bytes[3] ^ 0x80u;
    uint32_t point;

    if (first >= 0xc2 && first < 0xe0) return second < 0x40 ? 2 : 0;
    if ((first & 0xf0) == 0xe0) {
        point = (first & 0x0f) << 12 | second << 6 | third;
        if ((second | third) >= 0x40 || point < 0x800) return 0;
        return point >= 0xd800 && point < 0xe000 ? 0 : 3;
    }
    if ((first & 0xf8) != 0xf0 || (second | third | fourth) >= 0x40) return 0;
    point = (first & 0x07) << 18 | second << 12 | third << 6 | fourth;
    return point >= 0x10000 && point < 0x110000 ? 4 : 0;
}

/* Returns the offset behind the whole characters from `at` on. Stops early near the end and at
 * anything unusual. */
static size_t skip_characters(rd_utf8 *utf8, const char *bytes, size_t at, size_t len) {
    size_t taken;

    do {
        if ((uint8_t)bytes[at] < 0x80) return skip_ascii(bytes, at, len);
        utf8->has_more = true;
        taken = len - at < 4 ? 0 : character_len((const uint8_t *)bytes + at);
        at += taken;
    } while (taken > 0 && at < len);
    return at;
}

/* Sets what must follow `byte`, the first one of a character beyond ASCII. Returns false when
 * nothing may follow it. */
static bool begin(rd_utf8 *utf8, uint8_t byte) {
    if (byte < 0xc2 || byte > 0xf4) return false;
    utf8->left = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    utf8->low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    utf8->high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    return true;
}

size_t rd_utf8_feed(rd_utf8 *utf8, const char *bytes, size_t len) {
    rd_utf8 now = *utf8;
    size_t at = 0;

    while (at < len) {
        const uint8_t byte = (uint8_t)bytes[at];

        if (now.left > 0) {
            if (byte < now.low || byte > now.high) return at;
            now.left--;
            now.low = 0x80;
            now.high = 0xbf;
            at++;
        } else {
            const size_t skipped = skip_characters(&now, bytes, at, len);

            if (skipped == at && byte >= 0x80 && !begin(&now, byte)) return at;
            at = skipped > at ? skipped : at + 1;
        }
    }
    *utf8 = now;
    return len;
}

bool rd_utf8_is_text(rd_slice text) {
    rd_utf8 utf8 = {0};
    return rd_utf8_feed(&utf8, text.ptr, text.len) == text.len && rd_utf8_is_boundary(&utf8);
}

bool rd_utf8_is_line(rd_slice text) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\r' || text.ptr[i] == '\n' || text.ptr[i] == '\0') return false;
    }
    return rd_utf8_is_text(text);
}
