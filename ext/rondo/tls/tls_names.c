/* SPDX-License-Identifier: MIT
 *
 * A sorted table of names; see tls_names.h.
 */
#include "tls/tls_names.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/ascii.h"

static int compare_slices(rd_slice a, rd_slice b) {
    const int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    if (order != 0) return order;
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}

static rd_slice text_of(const rd_tls_name *row) {
    return rd_slice_of(row->text, row->len);
}

static int compare_rows(const void *a, const void *b) {
    return compare_slices(text_of(a), text_of(b));
}

/* `lower` has room for RD_TLS_NAME_MAX bytes. */
static rd_slice lowered(rd_slice name, char *lower) {
    for (size_t i = 0; i < name.len; i++) lower[i] = rd_ascii_lower(name.ptr[i]);
    return rd_slice_of(lower, name.len);
}

void rd_tls_names_add(rd_tls_names *names, rd_slice name, uint32_t set) {
    if (name.len == 0 || name.len > RD_TLS_NAME_MAX) return;
    names->rows = rd_realloc(names->rows, (names->count + 1) * sizeof(names->rows[0]));
    rd_tls_name *row = &names->rows[names->count++];
    *row = (rd_tls_name){.text = rd_alloc(name.len), .len = (uint32_t)name.len, .set = set};
    lowered(name, row->text);
}

void rd_tls_names_sort(rd_tls_names *names) {
    if (names->count > 1) qsort(names->rows, names->count, sizeof(names->rows[0]), compare_rows);
}

static int64_t find_exactly(const rd_tls_names *names, rd_slice name) {
    size_t from = 0, to = names->count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const int order = compare_slices(name, text_of(&names->rows[middle]));
        if (order == 0) return names->rows[middle].set;
        if (order < 0) to = middle;
        if (order > 0) from = middle + 1;
    }
    return -1;
}

/* The row of a wildcard is "*" and what follows the first label. */
static int64_t find_wildcard(const rd_tls_names *names, rd_slice name) {
    char text[RD_TLS_NAME_MAX + 1];
    const char *dot = memchr(name.ptr, '.', name.len);
    if (dot == NULL || dot == name.ptr) return -1;
    const size_t rest = name.len - (size_t)(dot - name.ptr);
    text[0] = '*';
    memcpy(text + 1, dot, rest);
    return find_exactly(names, rd_slice_of(text, rest + 1));
}

int64_t rd_tls_names_find(const rd_tls_names *names, rd_slice name) {
    char lower[RD_TLS_NAME_MAX];
    if (names->count == 0 || name.len == 0 || name.len > RD_TLS_NAME_MAX) return -1;
    if (name.ptr[0] == '*') return -1; /* a wildcard is no name */
    const rd_slice wanted = lowered(name, lower);
    const int64_t exact = find_exactly(names, wanted);
    return exact >= 0 ? exact : find_wildcard(names, wanted);
}

void rd_tls_names_clear(rd_tls_names *names) {
    for (size_t i = 0; i < names->count; i++) rd_free(names->rows[i].text);
    rd_free(names->rows);
    *names = (rd_tls_names){0};
}
