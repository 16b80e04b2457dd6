/* SPDX-License-Identifier: MIT
 *
 * A clock that stands still until the test moves it. These take the place of system/clock.c when
 * the program is linked, so every deadline of the core can be tried without waiting for it.
 */
#ifndef HAND_CLOCK_H
#define HAND_CLOCK_H

#include "system/clock.h"

/* What the wall clock shows when this one shows 0. */
#define HAND_CLOCK_WALL_S INT64_C(1800000000)

static uint64_t hand_clock_ns = UINT64_C(1000000000000);

uint64_t rd_clock_ns(void) {
    return hand_clock_ns;
}

uint64_t rd_clock_ms(void) {
    return hand_clock_ns / 1000000;
}

int64_t rd_clock_wall_seconds(void) {
    return HAND_CLOCK_WALL_S + (int64_t)(hand_clock_ns / 1000000000);
}

int64_t rd_clock_wall_us(void) {
    return HAND_CLOCK_WALL_S * 1000000 + (int64_t)(hand_clock_ns / 1000);
}

__attribute__((unused)) static void pass_ms(uint64_t ms) {
    hand_clock_ns += ms * 1000000;
}

#endif
