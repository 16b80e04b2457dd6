/* SPDX-License-Identifier: MIT
 *
 * Words, blanks and lists; see field_list.h.
 */
#include "http/field_list.h"

rd_slice rd_field_trim(rd_slice text) {
    while (text.len > 0 && rd_field_is_blank((unsigned char)text.ptr[0])) text.ptr++, text.len--;
    while (text.len > 0 && rd_field_is_blank((unsigned char)text.ptr[text.len - 1])) text.len--;
    return text;
}

bool rd_field_is_word(rd_slice text, rd_slice word) {
    if (text.len != word.len) return false;
    for (size_t i = 0; i < word.len; i++)
        if ((text.ptr[i] | 0x20) != word.ptr[i]) return false;
    return true;
}

bool rd_field_list_next(rd_slice *rest, char separator, rd_slice *element) {
    bool quoted = false;
    size_t at = 0;
    if (rest->ptr == NULL) return false;
    for (; at < rest->len && (quoted || rest->ptr[at] != separator); at++) {
        if (rest->ptr[at] == '"') quoted = !quoted;
        if (rest->ptr[at] == '\\' && quoted) at++;
    }
    if (at > rest->len) at = rest->len; /* the last byte was a backslash */
    *element = rd_field_trim(rd_slice_of(rest->ptr, at));
    *rest =
        at < rest->len ? rd_slice_of(rest->ptr + at + 1, rest->len - at - 1) : (rd_slice){NULL, 0};
    return true;
}
