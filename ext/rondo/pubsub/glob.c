/* SPDX-License-Identifier: MIT
 *
 * Globs; see glob.h. When a byte does not match, the last * takes one byte more and everything
 * behind it starts again. An earlier * needs no second try: what lies between the two has matched
 * at the first place it could, and any later place leaves the rest less to match with.
 */
#include "pubsub/glob.h"

#include <stdint.h>

static uint8_t byte_at(rd_slice slice, size_t at) {
    return (uint8_t)slice.ptr[at];
}

static bool is_between(uint8_t byte, uint8_t low, uint8_t high) {
    return low <= high ? byte >= low && byte <= high : byte >= high && byte <= low;
}

/* The class that begins behind its [ at *at; leaves *at behind its end. */
static bool class_matches(rd_slice pattern, size_t *at, uint8_t byte) {
    size_t i = *at;
    bool is_found = false;
    const bool is_negated = i < pattern.len && pattern.ptr[i] == '^';
    if (is_negated) i++;
    while (i < pattern.len && pattern.ptr[i] != ']') {
        if (pattern.ptr[i] == '\\' && i + 1 < pattern.len) {
            is_found |= byte_at(pattern, i + 1) == byte;
            i += 2;
        } else if (i + 2 < pattern.len && pattern.ptr[i + 1] == '-') {
            is_found |= is_between(byte, byte_at(pattern, i), byte_at(pattern, i + 2));
            i += 3;
        } else {
            is_found |= byte_at(pattern, i) == byte;
            i++;
        }
    }
    *at = i < pattern.len ? i + 1 : i;
    return is_found != is_negated;
}

/* One byte against the element at *at, which is no *; leaves *at behind it. */
static bool element_matches(rd_slice pattern, size_t *at, uint8_t byte) {
    const char first = pattern.ptr[(*at)++];
    if (first == '?') return true;
    if (first == '[') return class_matches(pattern, at, byte);
    if (first == '\\' && *at < pattern.len) return byte_at(pattern, (*at)++) == byte;
    return (uint8_t)first == byte;
}

bool rd_glob_matches(rd_slice pattern, rd_slice string) {
    size_t at = 0, i = 0;
    size_t star = SIZE_MAX; /* behind the last *, once there was one */
    size_t star_i = 0;      /* where what follows it was tried last */
    while (i < string.len) {
        if (at < pattern.len && pattern.ptr[at] == '*') {
            star = ++at;
            star_i = i;
            if (star == pattern.len) return true;
        } else if (at < pattern.len && element_matches(pattern, &at, byte_at(string, i))) {
            i++;
        } else {
            if (star == SIZE_MAX) return false;
            at = star;
            i = ++star_i;
        }
    }
    while (at < pattern.len && pattern.ptr[at] == '*') at++;
    return at == pattern.len;
}
