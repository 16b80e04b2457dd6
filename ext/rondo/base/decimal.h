/* SPDX-License-Identifier: MIT
 *
 * A number in decimal digits, for the fast path: snprintf takes ten times as long. Any thread.
 */
#ifndef RD_BASE_DECIMAL_H
#define RD_BASE_DECIMAL_H

#include <stdint.h>

#include "base/slice.h"

#define RD_DECIMAL_MAX 20

/* The digits end where `room` ends. */
static inline rd_slice rd_decimal(uint64_t number, char room[RD_DECIMAL_MAX]) {
    size_t at = RD_DECIMAL_MAX;
    do {
        room[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return rd_slice_of(room + at, RD_DECIMAL_MAX - at);
}

#endif
