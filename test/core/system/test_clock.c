/* SPDX-License-Identifier: MIT
 *
 * system/clock: points in time as the system takes them.
 */
#include "check.h"
#include "system/clock.h"

static void test_seconds_and_the_rest(void) {
    const uint64_t times[] = {0, 1, 999999999, 1000000000, 1000000001, UINT64_C(12345678901234567)};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        const struct timespec time = rd_clock_timespec(times[i]);
        CHECK((uint64_t)time.tv_sec == times[i] / 1000000000);
        CHECK((uint64_t)time.tv_nsec == times[i] % 1000000000);
    }
}

int main(void) {
    test_seconds_and_the_rest();
    return check_summary();
}
