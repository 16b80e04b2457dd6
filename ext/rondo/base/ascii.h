/* SPDX-License-Identifier: MIT
 *
 * Letter case of ASCII, whatever the locale: toupper(3) and strncasecmp(3) follow it, and Ruby sets
 * the one of the environment. Under tr_TR 'i' is no upper case 'I' of theirs. Any thread.
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

/* Compares without case; `lower` has no upper case letter. Most names are in lower case already,
 * and for a literal the compiler makes a few words of the memcmp. */
static inline bool rd_ascii_is(rd_slice text, rd_slice lower) {
    if (text.len != lower.len) return false;
    if (memcmp(text.ptr, lower.ptr, lower.len) == 0) return true;
    for (size_t i = 0; i < lower.len; i++)
        if (rd_ascii_lower(text.ptr[i]) != lower.ptr[i]) return false;
    return true;
}

#endif
