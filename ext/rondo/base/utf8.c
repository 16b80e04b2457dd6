/* SPDX-License-Identifier: MIT
 *
 * Validation of UTF-8; see utf8.h. Which bytes may follow a lead byte is table 3-7 of the Unicode
 * standard: only the second byte's range ever differs from 80..bf.
 */
#include "base/utf8.h"

#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* How many bytes from `at` on are ASCII, as far as whole words tell. */
static size_t skip_ascii(const char *bytes, size_t at, size_t len) {
    uint64_t word;

    while (len - at >= sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        if (word & HIGH_BITS) break;
        at += sizeof word;
    }
    return at;
}

/* What must follow `byte`, the first of a character beyond ASCII; false when nothing can. */
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
        } else if (byte >= 0x80) {
            if (!begin(&now, byte)) return at;
            at++;
        } else {
            const size_t ascii = skip_ascii(bytes, at, len);

            at = ascii > at ? ascii : at + 1;
        }
    }
    *utf8 = now;
    return len;
}
