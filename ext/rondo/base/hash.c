/* SPDX-License-Identifier: MIT
 *
 * SipHash with one round a word and three at the end (Aumasson and Bernstein, 2012); see hash.h.
 */
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

typedef struct lanes {
    uint64_t v0, v1, v2, v3;
} lanes;

rd_hash_key rd_hash_key_random(void) {
    rd_hash_key key;
    if (getentropy(&key, sizeof(key)) != 0) {
        perror("rondo: the system gives no random bytes");
        abort();
    }
    return key;
}

static uint64_t rotated(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

static void mix(lanes *v) {
    v->v0 += v->v1;
    v->v2 += v->v3;
    v->v1 = rotated(v->v1, 13) ^ v->v0;
    v->v3 = rotated(v->v3, 16) ^ v->v2;
    v->v0 = rotated(v->v0, 32);
    v->v2 += v->v1;
    v->v0 += v->v3;
    v->v1 = rotated(v->v1, 17) ^ v->v2;
    v->v3 = rotated(v->v3, 21) ^ v->v0;
    v->v2 = rotated(v->v2, 32);
}

static void take(lanes *v, uint64_t word) {
    v->v3 ^= word;
    mix(v);
    v->v0 ^= word;
}

/* Up to eight bytes as a number. The first byte is the lowest, on every machine. */
static uint64_t word_of(const char *bytes, size_t len) {
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++) word |= (uint64_t)(uint8_t)bytes[i] << (8 * i);
    return word;
}

uint64_t rd_hash(rd_hash_key key, rd_slice bytes) {
    lanes v = {key.k0 ^ UINT64_C(0x736f6d6570736575), key.k1 ^ UINT64_C(0x646f72616e646f6d),
               key.k0 ^ UINT64_C(0x6c7967656e657261), key.k1 ^ UINT64_C(0x7465646279746573)};
    const size_t tail = bytes.len % 8, whole = bytes.len - tail;
    for (size_t i = 0; i < whole; i += 8) take(&v, word_of(bytes.ptr + i, 8));
    take(&v, word_of(bytes.ptr + whole, tail) | (uint64_t)bytes.len << 56);
    v.v2 ^= 0xff;
    for (int i = 0; i < 3; i++) mix(&v);
    return v.v0 ^ v.v1 ^ v.v2 ^ v.v3;
}

/* The first byte is the lowest: of a short tail the product keeps in its upper half what no lower
 * bit depends on. */
static uint64_t lowest_first(uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Takes eight bytes at a time, multiplies and folds. Any distribution will do for a direct-mapped
 * table. */
uint32_t rd_hash_weak(rd_slice bytes) {
    uint64_t hash = 0x9e3779b97f4a7c15u ^ bytes.len, word;
    const char *at = bytes.ptr;
    size_t len = bytes.len;
    for (; len >= 8; at += 8, len -= 8) {
        memcpy(&word, at, 8);
        hash = (hash ^ lowest_first(word)) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, at, len);
    hash = (hash ^ lowest_first(word)) * 0xff51afd7ed558ccdu;
    return (uint32_t)(hash ^ (hash >> 32));
}
