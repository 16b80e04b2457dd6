/* SPDX-License-Identifier: MIT
 *
 * Reads Range; see file_range.h.
 */
#include "files/file_range.h"

#include <stdbool.h>

#include "http/field_list.h"

/* A range as it is written. */
typedef struct range_spec {
    uint64_t first, last; /* in a suffix, `last` is its length */
    bool is_suffix;
} range_spec;

/* Takes the digits at the beginning of `text`, possibly none. A number that does not fit becomes
 * the largest one: both are beyond every file. */
static bool take_number(rd_slice *text, uint64_t *number) {
    size_t at = 0;
    for (*number = 0; at < text->len && text->ptr[at] >= '0' && text->ptr[at] <= '9'; at++) {
        const uint64_t digit = (uint64_t)(text->ptr[at] - '0');
        *number = *number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *number * 10 + digit;
    }
    *text = rd_slice_of(text->ptr + at, text->len - at);
    return at > 0;
}

/* Parses "first-last", "first-" or "-length". */
static bool parse_spec(range_spec *spec, rd_slice text) {
    spec->is_suffix = !take_number(&text, &spec->first);
    if (text.len == 0 || text.ptr[0] != '-') return false;
    text = rd_slice_of(text.ptr + 1, text.len - 1);
    if (!take_number(&text, &spec->last)) {
        if (spec->is_suffix) return false;
        spec->last = UINT64_MAX;
    }
    return text.len == 0 && (spec->is_suffix || spec->first <= spec->last);
}

/* Whether any byte of it is in the file. A suffix of an empty file counts (RFC 9110, section
 * 14.1.2). */
static bool is_satisfiable(const range_spec *spec, uint64_t size) {
    return spec->is_suffix ? spec->last > 0 : spec->first < size;
}

static rd_file_range range_of(const range_spec *spec, uint64_t size) {
    if (spec->is_suffix) {
        const uint64_t len = spec->last < size ? spec->last : size;
        return (rd_file_range){size - len, len};
    }
    const uint64_t last = spec->last < size ? spec->last : size - 1;
    return (rd_file_range){spec->first, last - spec->first + 1};
}

static bool overlaps(const rd_file_range *ranges, int count, rd_file_range range) {
    for (int i = 0; i < count; i++) {
        if (range.first < ranges[i].first + ranges[i].len &&
            ranges[i].first < range.first + range.len)
            return true;
    }
    return false;
}

static bool take_unit(rd_slice *value) {
    const size_t len = sizeof("bytes=") - 1;
    if (value->len < len || value->ptr[len - 1] != '=') return false;
    if (!rd_field_is_word(rd_slice_of(value->ptr, len - 1), RD_SLICE("bytes"))) return false;
    *value = rd_slice_of(value->ptr + len, value->len - len);
    return true;
}

int rd_file_ranges_parse(rd_slice value, uint64_t size, rd_file_range ranges[RD_RANGES_MAX]) {
    int asked = 0, count = 0;
    rd_slice element;

    if (!take_unit(&value)) return 0;
    while (rd_field_list_next(&value, ',', &element)) {
        range_spec spec;
        if (element.len == 0) continue;
        if (asked++ == RD_RANGES_MAX || !parse_spec(&spec, element)) return 0;
        if (!is_satisfiable(&spec, size)) continue;
        if (size == 0) return 0; /* Content-Range could not name a first byte */
        ranges[count] = range_of(&spec, size);
        if (overlaps(ranges, count, ranges[count])) return 0;
        count++;
    }
    return count > 0 || asked == 0 ? count : RD_RANGE_UNSATISFIABLE;
}
