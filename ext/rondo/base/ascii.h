/* SPDX-License-Identifier: MIT
 *
 * Letter case of ASCII, independent of the locale. toupper(3) and strncasecmp(3) depend on the
 * locale, and Ruby sets it from the environment. Under tr_TR the upper case of 'i' is not 'I'. Any
 * thread.
 */
#ifndef RD_BASE_ASCII_H
#define RD_BASE_ASCII_H

#include <stdbool.h>

#include "base/slice.h"

static inline char rd_ascii_upper(char byte) {
    if (byte < 'a' || byte > 'z') return byte;
    return (char)(byte - 0x20);
}

static inline char rd_ascii_lower(char byte) {
    if (byte < 'A' || byte > 'Z') return byte;
    return (char)(byte + 0x20);
}

/* Compares without regard to case. `lower` must not contain upper case letters. Most names are in
 * lower case already, so memcmp comes first; for a literal the compiler turns it into a few word
 * comparisons. */
static inline bool rd_ascii_is(rd_slice text, rd_slice lower) {
    if (text.len != lower.len) return false;
    if (memcmp(text.ptr, lower.ptr, lower.len) == 0) return true;
    for (size_t i = 0; i < lower.len; i++)
        if (rd_ascii_lower(text.ptr[i]) != lower.ptr[i]) return false;
    return true;
}

#endif
