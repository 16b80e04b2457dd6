/* SPDX-License-Identifier: MIT
 *
 * Is this UTF-8 (RFC 3629)? Answers over any cut of the text, and says no at the first byte after
 * which no continuation could make it valid: overlong forms, surrogates and what lies above
 * U+10FFFF fail at their second byte. For WebSocket texts and the reasons of their closes. One
 * owner, no lock.
 */
#ifndef RD_BASE_UTF8_H
#define RD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Zeroed, it stands at the beginning of a text. */
typedef struct rd_utf8 {
    uint8_t left; /* bytes the character begun still wants */
    uint8_t low;  /* the next of them is in low..high */
    uint8_t high;
} rd_utf8;

/*
 * Takes the next piece. Returns `len` when the text may still become valid, else the offset of the
 * byte that rules it out; after that the state is not to be used again.
 */
size_t rd_utf8_feed(rd_utf8 *utf8, const char *bytes, size_t len);

/* No character has begun that is not complete: the text may end here. */
static inline bool rd_utf8_is_boundary(const rd_utf8 *utf8) {
    return utf8->left == 0;
}

/* Whether all of it is UTF-8. */
bool rd_utf8_is_text(rd_slice text);

/* Whether it is UTF-8 without CR, LF and NUL. */
bool rd_utf8_is_line(rd_slice text);

#endif
