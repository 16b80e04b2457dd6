/* SPDX-License-Identifier: MIT
 *
 * base/sha1: the vectors of RFC 3174, section 7.3, and every length around the ends of blocks.
 */
#include "check.h"

#include <stdlib.h>

#include "base/sha1.h"

static void check_digest(const char *bytes, size_t len, const char *expected) {
    uint8_t digest[RD_SHA1_LEN];
    char hex[2 * RD_SHA1_LEN + 1];

    rd_sha1(bytes, len, digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    CHECK_STR(hex, expected);
}

static void check_repeated(const char *piece, size_t times, const char *expected) {
    const size_t len = strlen(piece);
    char *bytes = malloc(len * times);

    for (size_t i = 0; i < times; i++) memcpy(bytes + i * len, piece, len);
    check_digest(bytes, len * times, expected);
    free(bytes);
}

static void test_vectors(void) {
    check_digest("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    check_repeated("abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d");
    check_repeated("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                   "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    check_repeated("a", 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    check_repeated("0123456701234567012345670123456701234567012345670123456701234567", 10,
                   "dea356a2cddd90c7a7ecedc5ebb563934f460452");
}

/* The digest of the digests of 0 to 200 letters, taken with coreutils' sha1sum. */
static void test_lengths(void) {
    enum { LENGTHS = 201 };
    char letters[LENGTHS];
    static char digests[LENGTHS * RD_SHA1_LEN];

    memset(letters, 'a', sizeof letters);
    for (size_t len = 0; len < LENGTHS; len++)
        rd_sha1(letters, len, (uint8_t *)digests + len * RD_SHA1_LEN);
    check_digest(digests, sizeof digests, "f6f332e8f89c35ee3df74d34ef8fda777d9647b9");
}

int main(void) {
    test_vectors();
    test_lengths();
    return check_summary();
}
