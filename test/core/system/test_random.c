/* SPDX-License-Identifier: MIT
 *
 * system/random: all bytes are written, and two reads differ.
 */
#include "check.h"
#include "system/random.h"

int main(void) {
    uint8_t one[256] = {0}, other[256] = {0};
    unsigned different = 0;
    rd_random(one, sizeof(one));
    rd_random(other, sizeof(other));
    for (size_t i = 0; i < sizeof(one); i++) different += one[i] != other[i];
    CHECK(different > 128); /* 255 are to be expected */
    rd_random(one, 0);
    return check_summary();
}
