/* SPDX-License-Identifier: MIT
 *
 * SipHash-1-3: known answers (those of CPython's hash() with a key of zeros), and a key that
 * counts.
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

int main(void) {
    test_known_answers();
    test_keys();
    return check_summary();
}
