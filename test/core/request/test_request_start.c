/* SPDX-License-Identifier: MIT
 *
 * X-Request-Start in every unit that proxies send, and what is none of them.
 */
#include "check.h"
#include "request/request_start.h"

static const struct {
    const char *text;
    int64_t us;
} rows[] = {
    {"1700000000", 1700000000000000},
    {"t=1700000000", 1700000000000000},
    {"t=1700000000.123", 1700000000123000},
    {"1700000000.1234567", 1700000000123456},
    {"1700000000.", 1700000000000000},
    {"1700000000123", 1700000000123000},
    {"t=1700000000123.456", 1700000000123456},
    {"1700000000123456", 1700000000123456},
    {"t=1700000000123456.9", 1700000000123456},
    {"", -1},
    {"t=", -1},
    {"t", -1},
    {"x=1700000000", -1},
    {"123", -1},
    {"-1700000000", -1},
    {"1700000000 ", -1},
    {"1700000000s", -1},
    {"1700000000.1.2", -1},
    {"99999999999999999", 99999999999999999},
    {"999999999999999999", -1},
    {"99999999999999999999999999999999999", -1},
};

int main(void) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rd_slice text = rd_slice_of(rows[i].text, strlen(rows[i].text));
        CHECK_SAYS(rd_request_start_us(text) == rows[i].us, "%s: %lld", rows[i].text,
                   (long long)rd_request_start_us(text));
    }
    return check_summary();
}
