/* SPDX-License-Identifier: MIT
 *
 * Checks whether a text is UTF-8 (RFC 3629). The text may arrive in pieces, cut anywhere. It is
 * refused at the first byte after which nothing could make it valid: overlong forms, surrogates and
 * code points above U+10FFFF fail at their second byte. For WebSocket texts and the reasons of
 * Close frames. One owner, no lock.
 */
#ifndef RD_BASE_UTF8_H
#define RD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Zeroed, it is at the beginning of a text. */
typedef struct rd_utf8 {
    uint8_t left : 2;  /* bytes that the character begun still needs */
    bool has_more : 1; /* than ASCII, so far */
    uint8_t low;       /* the next of these bytes must be in low..high */
    uint8_t high;
} rd_utf8;

/*
 * Takes the next piece. Returns `len` when the text may still become valid, else the offset of the
 * byte that makes it invalid. After that the state must not be used again.
 */
size_t rd_utf8_feed(rd_utf8 *utf8, const char *bytes, size_t len);

/* Whether the text may end here: no character is incomplete. */
static inline bool rd_utf8_is_boundary(const rd_utf8 *utf8) {
    return utf8->left == 0;
}

/* Whether the whole text is UTF-8. */
bool rd_utf8_is_text(rd_slice text);

/* Whether the text is UTF-8 without CR, LF and NUL. */
bool rd_utf8_is_line(rd_slice text);

#endif
