/* SPDX-License-Identifier: MIT
 *
 * base/ascii: every byte in both cases, and comparing without case.
 */
#include "check.h"

#include "base/ascii.h"

static void test_letters(void) {
    const char *lower = "abcdefghijklmnopqrstuvwxyz", *upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int byte = 0; byte < 256; byte++) {
        const char *of_lower = byte ? strchr(lower, byte) : NULL;
        const char *of_upper = byte ? strchr(upper, byte) : NULL;
        CHECK_INT(rd_ascii_upper((char)byte), of_lower ? upper[of_lower - lower] : (char)byte);
        CHECK_INT(rd_ascii_lower((char)byte), of_upper ? lower[of_upper - upper] : (char)byte);
    }
}

static void test_comparing(void) {
    CHECK(rd_ascii_is(RD_SLICE("Content-LENGTH"), RD_SLICE("content-length")));
    CHECK(rd_ascii_is(RD_SLICE(""), RD_SLICE("")));
    CHECK(!rd_ascii_is(RD_SLICE("content-lengt"), RD_SLICE("content-length")));
    CHECK(!rd_ascii_is(RD_SLICE("content\rlength"), RD_SLICE("content-length")));
    CHECK(!rd_ascii_is(RD_SLICE("\xcaost"), RD_SLICE("host")));
    CHECK(!rd_ascii_is(RD_SLICE("@[`{"), RD_SLICE("`{@[")));
}

int main(void) {
    test_letters();
    test_comparing();
    return check_summary();
}
