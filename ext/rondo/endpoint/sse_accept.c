/* SPDX-License-Identifier: MIT
 *
 * Reads Accept; see sse_accept.h.
 */
#include "endpoint/sse_accept.h"

#include "http/field_list.h"

/* Matches "q=0", with up to three more zeros. */
static bool is_refusal(rd_slice parameter) {
    if (parameter.len < 3 || !rd_field_is_word(rd_slice_of(parameter.ptr, 1), RD_SLICE("q")))
        return false;
    if (parameter.ptr[1] != '=') return false;
    for (size_t i = 2; i < parameter.len; i++) {
        if (parameter.ptr[i] != (i == 3 ? '.' : '0')) return false;
    }
    return true;
}

static bool is_wanted(rd_slice element) {
    rd_slice part;
    if (!rd_field_list_next(&element, ';', &part)) return false;
    if (!rd_field_is_word(part, RD_SLICE("text/event-stream"))) return false;
    while (rd_field_list_next(&element, ';', &part)) {
        if (is_refusal(part)) return false;
    }
    return true;
}

/* A quick check: "-s" is rare in Accept. The values that browsers send for pages, and that of curl,
 * do not contain it. */
static bool may_be_wanted(rd_slice list) {
    const char *end = list.ptr + list.len, *at = list.ptr;
    while ((at = memchr(at, '-', (size_t)(end - at))) != NULL) {
        if (++at < end && (*at | 0x20) == 's') return true;
    }
    return false;
}

bool rd_sse_is_accepted(const rd_head *head, const char *buf) {
    if (!rd_head_has(head, RD_HEADER_ACCEPT)) return false;
    for (unsigned i = 0; i < head->header_count; i++) {
        if (head->headers[i].id != RD_HEADER_ACCEPT) continue;
        rd_slice element, list = rd_header_value(&head->headers[i], buf);
        if (!may_be_wanted(list)) continue;
        while (rd_field_list_next(&list, ',', &element)) {
            if (is_wanted(element)) return true;
        }
    }
    return false;
}
