/* SPDX-License-Identifier: MIT
 *
 * UTF-8. First byte: how many bytes at a time. Holds: whole and in pieces, the answer is that of a
 * decoder that knows the whole text and compares numbers; a text is ruled out at the first byte
 * after which nothing could save it.
 */
#include "fuzz.h"
#include "base/utf8.h"

/* How many bytes a character that begins with `byte` has; 0: none begins with it. */
static size_t length_of(uint8_t byte) {
    if (byte < 0x80) return 1;
    if ((byte & 0xe0) == 0xc0) return 2;
    if ((byte & 0xf0) == 0xe0) return 3;
    return (byte & 0xf8) == 0xf0 ? 4 : 0;
}

/* Some number from `low` to `high` is a character, and needs `len` bytes. */
static int has_character(uint32_t low, uint32_t high, size_t len) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    if (low < least[len]) low = least[len];
    if (high > 0x10ffff) high = 0x10ffff;
    return low <= high && (low < 0xd800 || high > 0xdfff);
}

/* Some character of `len` bytes begins with these `known` ones. */
static int can_begin(const uint8_t *bytes, size_t known, size_t len) {
    const unsigned open = 6 * (unsigned)(len - known);
    uint32_t point = len == 1 ? bytes[0] : bytes[0] & (0x7fu >> len);

    for (size_t i = 1; i < known; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (bytes[i] & 0x3f);
    }
    return has_character(point << open, (point << open) | ((1u << open) - 1), len);
}

/* The offset of the byte that rules the text out, else its length. */
static size_t reference(const uint8_t *bytes, size_t len, int *boundary) {
    size_t at = 0;

    *boundary = 1;
    while (at < len) {
        const size_t wanted = length_of(bytes[at]);

        if (wanted == 0) return at;
        for (size_t known = 1; known <= wanted; known++) {
            if (at + known > len) {
                *boundary = 0;
                return len;
            }
            if (!can_begin(bytes + at, known, wanted)) return at + known - 1;
        }
        at += wanted;
    }
    return len;
}

static size_t in_pieces(const char *bytes, size_t len, size_t step, int *boundary) {
    rd_utf8 utf8 = {0};

    for (size_t at = 0; at < len; at += step) {
        const size_t piece = len - at < step ? len - at : step;
        char *copy = fuzz_copy(bytes + at, piece);
        const size_t taken = rd_utf8_feed(&utf8, copy, piece);

        free(copy);
        FUZZ_CHECK(taken <= piece);
        if (taken < piece) return at + taken;
    }
    *boundary = rd_utf8_is_boundary(&utf8);
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    const size_t step = len ? bytes[0] % 24 + 1u : 1;
    int expected, whole = 0, pieces = 0;
    size_t end;

    if (len < 2 || len > 4096) return 0;
    bytes++;
    len--;
    end = reference(bytes, len, &expected);
    FUZZ_CHECK(in_pieces((const char *)bytes, len, len, &whole) == end);
    FUZZ_CHECK(in_pieces((const char *)bytes, len, step, &pieces) == end);
    FUZZ_CHECK(end < len || (whole == expected && pieces == expected));
    return 0;
}
