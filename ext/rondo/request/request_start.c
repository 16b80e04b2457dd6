/* SPDX-License-Identifier: MIT
 *
 * The time in X-Request-Start; see request_start.h.
 */
#include "request/request_start.h"

#include <stdbool.h>
#include <stddef.h>

#define SECONDS_MIN 1000000000ll /* 2001 */
#define SECONDS_END 100000000000ll

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Reads digits at `*at`. Returns -1 for more than 17, so that nothing overflows. */
static int64_t read_digits(rd_slice text, size_t *at) {
    int64_t number = 0;
    for (size_t count = 0; *at < text.len && is_digit(text.ptr[*at]); count++, ++*at) {
        if (count >= 17) return -1;
        number = number * 10 + (text.ptr[*at] - '0');
    }
    return number;
}

/* Reads six digits behind the point; missing ones are zeros. */
static int64_t read_millionths(rd_slice text, size_t *at) {
    int64_t number = 0;
    for (int place = 0; place < 6; place++) {
        bool more = *at < text.len && is_digit(text.ptr[*at]);
        number = number * 10 + (more ? text.ptr[(*at)++] - '0' : 0);
    }
    while (*at < text.len && is_digit(text.ptr[*at])) ++*at;
    return number;
}

int64_t rd_request_start_us(rd_slice value) {
    size_t at = value.len > 2 && value.ptr[0] == 't' && value.ptr[1] == '=' ? 2 : 0;
    int64_t whole = read_digits(value, &at), millionths = 0;
    if (at < value.len && value.ptr[at] == '.') {
        at++;
        millionths = read_millionths(value, &at);
    }
    if (at != value.len || whole < SECONDS_MIN) return -1;
    if (whole < SECONDS_END) return whole * 1000000 + millionths;
    if (whole < SECONDS_END * 1000) return whole * 1000 + millionths / 1000;
    return whole < SECONDS_END * 1000000 ? whole : -1;
}
