/* SPDX-License-Identifier: MIT
 *
 * What the readers of field values share: words, blanks, lists (RFC 9110, section 5.6). Any thread.
 */
#ifndef RD_HTTP_FIELD_LIST_H
#define RD_HTTP_FIELD_LIST_H

#include <stdbool.h>

#include "base/slice.h"

static inline bool rd_field_is_blank(unsigned char byte) {
    return byte == ' ' || byte == '\t';
}

/* The text without the blanks around it. */
rd_slice rd_field_trim(rd_slice text);

/* Compares without case. `word` is in lower case and consists of letters, digits, '-' and '/'. */
bool rd_field_is_word(rd_slice text, rd_slice word);

/*
 * Takes the first element off a list, without the blanks around it. Returns false at the end of the
 * list. A separator within a quoted string does not count. Elements may be empty.
 */
bool rd_field_list_next(rd_slice *rest, char separator, rd_slice *element);

#endif
