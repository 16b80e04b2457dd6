/* SPDX-License-Identifier: MIT
 *
 * The glob of Redis once more, by trying everything: obviously right and of exponential time. What
 * test_glob.c and the fuzz target compare with, on short inputs.
 */
#ifndef NAIVE_GLOB_H
#define NAIVE_GLOB_H

#include <stdbool.h>

#include "base/slice.h"

static bool naive_glob_matches(rd_slice pattern, rd_slice string);

static rd_slice naive_rest(rd_slice slice, size_t from) {
    return rd_slice_of(slice.ptr + from, slice.len - from);
}

/* `members` is the text between the brackets. */
static bool naive_is_member(rd_slice members, unsigned char byte) {
    const unsigned char *at = (const unsigned char *)members.ptr;
    if (members.len == 0) return false;
    if (at[0] == '\\' && members.len > 1) {
        return at[1] == byte || naive_is_member(naive_rest(members, 2), byte);
    }
    if (members.len > 2 && at[1] == '-') {
        const bool rising = at[0] <= byte && byte <= at[2];
        const bool falling = at[2] <= byte && byte <= at[0];
        return rising || falling || naive_is_member(naive_rest(members, 3), byte);
    }
    return at[0] == byte || naive_is_member(naive_rest(members, 1), byte);
}

/* The position of the ] that ends the class, or the end of the pattern. */
static size_t naive_class_end(rd_slice pattern, size_t at) {
    if (at >= pattern.len) return pattern.len;
    if (pattern.ptr[at] == ']') return at;
    if (pattern.ptr[at] == '\\' && at + 1 < pattern.len) return naive_class_end(pattern, at + 2);
    if (at + 2 < pattern.len && pattern.ptr[at + 1] == '-') return naive_class_end(pattern, at + 3);
    return naive_class_end(pattern, at + 1);
}

static bool naive_class(rd_slice pattern, rd_slice string) {
    const bool negated = pattern.len > 1 && pattern.ptr[1] == '^';
    const size_t first = negated ? 2 : 1, end = naive_class_end(pattern, first);
    const rd_slice members = {pattern.ptr + first, end - first};
    if (naive_is_member(members, (unsigned char)string.ptr[0]) == negated) return false;
    const size_t behind = end < pattern.len ? end + 1 : end;
    return naive_glob_matches(naive_rest(pattern, behind), naive_rest(string, 1));
}

static bool naive_glob_matches(rd_slice pattern, rd_slice string) {
    if (pattern.len == 0) return string.len == 0;
    if (pattern.ptr[0] == '*') {
        for (size_t taken = 0; taken <= string.len; taken++) {
            if (naive_glob_matches(naive_rest(pattern, 1), naive_rest(string, taken))) return true;
        }
        return false;
    }
    if (string.len == 0) return false;
    if (pattern.ptr[0] == '?') {
        return naive_glob_matches(naive_rest(pattern, 1), naive_rest(string, 1));
    }
    if (pattern.ptr[0] == '[') return naive_class(pattern, string);
    const size_t literal = pattern.ptr[0] == '\\' && pattern.len > 1 ? 1 : 0;
    return pattern.ptr[literal] == string.ptr[0] &&
           naive_glob_matches(naive_rest(pattern, literal + 1), naive_rest(string, 1));
}

#endif
