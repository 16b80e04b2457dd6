/* SPDX-License-Identifier: MIT
 *
 * The value of a hexadecimal digit, for chunk sizes and percent escapes. Any thread.
 */
#ifndef RD_BASE_HEX_H
#define RD_BASE_HEX_H

#include <stddef.h>

/* 0 to 15, in either letter case; -1 for every other byte. */
static inline int rd_hex_value(char byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte = (char)(byte | 0x20);
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* The byte that the escape %XX at `ptr` stands for, or -1 when fewer than three bytes are left or
 * the two are not digits. The caller has checked the percent sign. */
static inline int rd_hex_escape(const char *ptr, size_t left) {
    const int high = left >= 3 ? rd_hex_value(ptr[1]) : -1;
    const int low = left >= 3 ? rd_hex_value(ptr[2]) : -1;

    return high >= 0 && low >= 0 ? high * 16 + low : -1;
}

#endif
