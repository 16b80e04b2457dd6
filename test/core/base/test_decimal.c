/* SPDX-License-Identifier: MIT
 *
 * base/decimal: numbers of each length, as snprintf writes them.
 */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/decimal.h"

static void same(uint64_t number) {
    char room[RD_DECIMAL_MAX], expected[RD_DECIMAL_MAX + 1];
    const rd_slice digits = rd_decimal(number, room);

    snprintf(expected, sizeof(expected), "%" PRIu64, number);
    CHECK_INT(digits.len, strlen(expected));
    CHECK(memcmp(digits.ptr, expected, digits.len) == 0);
}

static void test_each_length(void) {
    for (uint64_t power = 1;; power *= 10) {
        same(power - 1);
        same(power);
        same(power + 1);
        if (power > UINT64_MAX / 10) break;
    }
    same(UINT64_MAX - 1);
    same(UINT64_MAX);
}

int main(void) {
    test_each_length();
    return check_summary();
}
