/* SPDX-License-Identifier: MIT
 *
 * Parameters, one after the other; see query.h.
 */
#include "request/query.h"

#include <string.h>

/* Takes the next parameter off `rest`. Empty ones are none. */
static bool next(rd_slice *rest, rd_slice *name, rd_slice *value) {
    while (rest->len > 0) {
        size_t end = 0;
        while (end < rest->len && rest->ptr[end] != '&' && rest->ptr[end] != ';') end++;
        const rd_slice part = rd_slice_of(rest->ptr, end);
        const size_t taken = end < rest->len ? end + 1 : end;
        *rest = rd_slice_of(rest->ptr + taken, rest->len - taken);
        if (part.len == 0) continue;
        const char *equals = memchr(part.ptr, '=', part.len);
        const size_t len = equals != NULL ? (size_t)(equals - part.ptr) : part.len;
        const size_t begin = equals != NULL ? len + 1 : len;
        *name = rd_slice_of(part.ptr, len);
        *value = rd_slice_of(part.ptr + begin, part.len - begin);
        return true;
    }
    return false;
}

static bool is(rd_slice name, const char *known) {
    return rd_slice_equal(name, rd_slice_of(known, strlen(known)));
}

bool rd_query_find(const rd_request *request, const char *name, rd_slice *value) {
    rd_slice rest = rd_request_slice(request, request->head.query), found;
    while (next(&rest, &found, value)) {
        if (is(found, name)) return true;
    }
    return false;
}

uint64_t rd_query_number(const rd_request *request, const char *name) {
    rd_slice value;
    uint64_t number = 0;
    if (!rd_query_find(request, name, &value)) return 0;
    for (size_t at = 0; at < value.len && number < 1000000; at++) {
        if (value.ptr[at] < '0' || value.ptr[at] > '9') break;
        number = number * 10 + (uint64_t)(value.ptr[at] - '0');
    }
    return number;
}

static bool is_one_of(rd_slice name, const char *const *known) {
    for (; *known != NULL; known++) {
        if (is(name, *known)) return true;
    }
    return false;
}

bool rd_query_find_other(const rd_request *request, const char *const *known, rd_slice *name) {
    rd_slice rest = rd_request_slice(request, request->head.query), value;
    while (next(&rest, name, &value)) {
        if (!is_one_of(*name, known)) return true;
    }
    return false;
}

int64_t rd_query_seconds(rd_slice text) {
    int64_t ms = 0;
    int digits = 0, decimals = -1;
    for (size_t at = 0; at < text.len; at++) {
        if (text.ptr[at] == '.' && decimals < 0 && digits > 0) {
            decimals = 0;
        } else if (text.ptr[at] >= '0' && text.ptr[at] <= '9' && decimals < 3 && digits < 9) {
            ms = ms * 10 + (text.ptr[at] - '0');
            digits++;
            if (decimals >= 0) decimals++;
        } else {
            return -1;
        }
    }
    if (digits == 0 || decimals == 0) return -1;
    for (int left = decimals < 0 ? 0 : decimals; left < 3; left++) ms *= 10;
    return ms;
}
