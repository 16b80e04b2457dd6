/* SPDX-License-Identifier: MIT
 *
 * SipHash-1-3: known answers (those of CPython's hash() with a key of zeros), and a key that
 * counts. The weak one spreads.
 */
#include "base/hash.h"
#include "check.h"

static void test_known_answers(void) {
    static const struct {
        const char *text;
        uint64_t hash;
    } rows[] = {
        {"a", UINT64_C(4644417185603328019)},         {"news", UINT64_C(16090430620975649479)},
        {"1234567", UINT64_C(11762668945129975425)},  {"12345678", UINT64_C(3785724242978802311)},
        {"123456789", UINT64_C(1133797698992234447)},
    };
    const rd_hash_key zero = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const rd_slice text = {rows[i].text, strlen(rows[i].text)};
        CHECK_SAYS(rd_hash(zero, text) == rows[i].hash, "%s", rows[i].text);
    }
    char bytes[64];
    for (int i = 0; i < 64; i++) bytes[i] = (char)i;
    CHECK(rd_hash(zero, rd_slice_of(bytes, 64)) == UINT64_C(8493894268803903686));
}

static void test_keys(void) {
    const rd_hash_key one = rd_hash_key_random(), two = rd_hash_key_random();
    CHECK(one.k0 != two.k0 || one.k1 != two.k1);
    CHECK(rd_hash(one, RD_SLICE("news")) == rd_hash(one, RD_SLICE("news")));
    CHECK(rd_hash(one, RD_SLICE("news")) != rd_hash(two, RD_SLICE("news")));
    CHECK(rd_hash(one, RD_SLICE("")) != rd_hash(one, RD_SLICE("\0")));
}

/* Tables take its lower bits: names that differ in their last byte must not share all of them. */
static void test_the_weak_one_spreads(void) {
    static const char *const before[] = {"", "file", "segment/", "segment/of"};
    for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
        uint64_t places = 0;
        for (char last = 'a'; last <= 'z'; last++) {
            char name[16];
            const int len = snprintf(name, sizeof(name), "%s%c", before[i], last);
            places |= UINT64_C(1) << rd_hash_weak(rd_slice_of(name, (size_t)len)) % 64;
        }
        CHECK_SAYS(__builtin_popcountll(places) > 13, "%s", before[i]);
    }
}

int main(void) {
    test_known_answers();
    test_the_weak_one_spreads();
    test_keys();
    return check_summary();
}
