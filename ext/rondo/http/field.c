/* SPDX-License-Identifier: MIT
 *
 * The syntax of fields; see field.h.
 */
#include "http/field.h"

#include "base/error.h"

_Static_assert((RD_NAME_BYTE | RD_NAME_UNDERSCORE) == 3, "the table below spells it out");

const uint8_t rd_field_name_bytes[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1, ['*'] = 1, ['+'] = 1,
    ['-'] = 1, ['.'] = 1, ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1,  ['4'] = 1, ['5'] = 1,
    ['6'] = 1, ['7'] = 1, ['8'] = 1, ['9'] = 1, ['A'] = 1, ['B'] = 1,  ['C'] = 1, ['D'] = 1,
    ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1, ['I'] = 1, ['J'] = 1,  ['K'] = 1, ['L'] = 1,
    ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1, ['Q'] = 1, ['R'] = 1,  ['S'] = 1, ['T'] = 1,
    ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1, ['Y'] = 1, ['Z'] = 1,  ['^'] = 1, ['`'] = 1,
    ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1,  ['g'] = 1, ['h'] = 1,
    ['i'] = 1, ['j'] = 1, ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1,  ['o'] = 1, ['p'] = 1,
    ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1, ['u'] = 1, ['v'] = 1,  ['w'] = 1, ['x'] = 1,
    ['y'] = 1, ['z'] = 1, ['|'] = 1, ['~'] = 1, ['_'] = 3,
};

int rd_field_name_error(unsigned char byte) {
    if (rd_field_is_blank(byte)) return RD_ERR_FIELD_NAME_BLANK;
    return byte == '\r' || byte == '\n' ? RD_ERR_FIELD_NO_COLON : RD_ERR_FIELD_NAME_BYTE;
}

bool rd_field_next_element(rd_slice *list, rd_slice *element) {
    const char *ptr = list->ptr, *end, *comma;

    if (!ptr) return false;
    end = ptr + list->len;
    comma = memchr(ptr, ',', list->len);
    *list = comma ? (rd_slice){comma + 1, (size_t)(end - comma) - 1} : (rd_slice){NULL, 0};
    if (comma) end = comma;
    *element = rd_field_trim((rd_slice){ptr, (size_t)(end - ptr)});
    return true;
}

static bool has_underscore(rd_slice name) {
    return memchr(name.ptr, '_', name.len) != NULL;
}

/* Equal when folded the way env keys are: without case, '_' as '-'. */
static bool is_twin(rd_slice a, rd_slice b) {
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++) {
        const int x = a.ptr[i] == '_' ? '-' : a.ptr[i] | 0x20;
        const int y = b.ptr[i] == '_' ? '-' : b.ptr[i] | 0x20;

        if (x != y) return false;
    }
    return true;
}

static bool is_reserved(rd_slice name) {
    static const uint8_t reserved[] = {RD_HEADER_CONTENT_LENGTH, RD_HEADER_TRANSFER_ENCODING,
                                       RD_HEADER_CONTENT_TYPE, RD_HEADER_PROXY};

    for (size_t i = 0; i < sizeof reserved; i++)
        if (is_twin(name, rd_header_id_name(reserved[i]))) return true;
    return false;
}

static bool has_dashed_twin(const rd_head *head, const char *buf, rd_slice name) {
    for (unsigned i = 0; i < head->header_count; i++) {
        const rd_slice other = rd_header_name(&head->headers[i], buf);

        if (!has_underscore(other) && is_twin(name, other)) return true;
    }
    return false;
}

void rd_field_drop_twins(rd_head *head, const char *buf) {
    uint16_t kept = 0;

    for (unsigned i = 0; i < head->header_count; i++) {
        const rd_header header = head->headers[i];
        const rd_slice name = rd_header_name(&header, buf);

        if (has_underscore(name) && (is_reserved(name) || has_dashed_twin(head, buf, name)))
            continue;
        head->headers[kept++] = header;
    }
    head->header_count = kept;
}
