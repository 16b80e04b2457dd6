/* SPDX-License-Identifier: MIT
 *
 * SHA-1; see sha1.h. Names are those of RFC 3174, section 6.1.
 */
#include "base/sha1.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_AT = BLOCK - 8 };

static uint32_t rotate(uint32_t word, unsigned bits) {
    return word << bits | word >> (32 - bits);
}

static uint32_t load(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* f(t; B, C, D) + K(t) */
static uint32_t mix(unsigned t, uint32_t b, uint32_t c, uint32_t d) {
    if (t < 20) return ((b & c) | (~b & d)) + 0x5a827999;
    if (t < 40) return (b ^ c ^ d) + 0x6ed9eba1;
    if (t < 60) return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(uint32_t h[5], const uint8_t *block) {
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (unsigned t = 0; t < 16; t++) w[t] = load(block + (size_t)4 * t);
    for (unsigned t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (unsigned t = 0; t < 80; t++) {
        const uint32_t sum = rotate(a, 5) + mix(t, b, c, d) + e + w[t];

        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = sum;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

/* The last block or two: the rest of the bytes, a single one bit, zeros, and the length in bits. */
static void add_end(uint32_t h[5], const char *rest, size_t rest_len, uint64_t bits) {
    uint8_t block[BLOCK] = {0};

    if (rest_len > 0) memcpy(block, rest, rest_len);
    block[rest_len] = 0x80;
    if (rest_len >= LENGTH_AT) {
        add_block(h, block);
        memset(block, 0, sizeof block);
    }
    for (unsigned i = 0; i < 8; i++) block[LENGTH_AT + i] = (uint8_t)(bits >> (56 - 8 * i));
    add_block(h, block);
}

void rd_sha1(const char *bytes, size_t len, uint8_t digest[RD_SHA1_LEN]) {
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const size_t rest = len % BLOCK, whole = len - rest;

    for (size_t at = 0; at < whole; at += BLOCK) add_block(h, (const uint8_t *)bytes + at);
    add_end(h, bytes + whole, rest, (uint64_t)len * 8);
    for (unsigned i = 0; i < RD_SHA1_LEN; i++)
        digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
