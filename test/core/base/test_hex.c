/* SPDX-License-Identifier: MIT
 *
 * base/hex: every byte as a digit, and escapes that are cut off.
 */
#include "check.h"

#include "base/hex.h"

static void test_digits(void) {
    for (int byte = 0; byte < 256; byte++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *at = byte ? strchr(digits, byte) : NULL;

        CHECK_INT(rd_hex_value((char)byte), at ? (at - digits) % 16 : -1);
    }
}

static void test_escapes(void) {
    CHECK_INT(rd_hex_escape("%00", 3), 0);
    CHECK_INT(rd_hex_escape("%2fa", 4), '/');
    CHECK_INT(rd_hex_escape("%fF", 3), 255);
    CHECK_INT(rd_hex_escape("%2f", 2), -1);
    CHECK_INT(rd_hex_escape("%2f", 1), -1);
    CHECK_INT(rd_hex_escape("%2g", 3), -1);
    CHECK_INT(rd_hex_escape("%g2", 3), -1);
    CHECK_INT(rd_hex_escape("%+2", 3), -1);
}

int main(void) {
    test_digits();
    test_escapes();
    return check_summary();
}
